package main

import (
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/store"
)

// TestDoctorNamesTemplates: one that cannot be used, with what to write, and one that nothing reads.
func TestDoctorNamesTemplates(t *testing.T) {
	data := t.TempDir()
	must(t, store.WriteFile(filepath.Join(data, "DREAM_TASK_PROMPT.txt"), []byte("What is done?\n{tasks}\n")))
	must(t, store.WriteFile(filepath.Join(data, "DREAM_SKILL_PROMPT.txt"), []byte("of an earlier release: {skills}")))
	_, report := doctorSays(t, data, "")
	for _, want := range []string{
		"the text that came with the program is used in the place of DREAM_TASK_PROMPT.txt", "DREAM_TASK_PROMPT.txt, line 2: {tasks} is no placeholder there; write {content}",
		"nothing reads DREAM_SKILL_PROMPT.txt", "→ delete it",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("doctor does not say %q:\n%s", want, report)
		}
	}
}
