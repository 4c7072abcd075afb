package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	reverie "reverie"
	"reverie/internal/store"
)

// TestDoctorTellsOfMovedPrompts: what the next start moves, what was moved, and what nobody reads.
func TestDoctorTellsOfMovedPrompts(t *testing.T) {
	data := t.TempDir()
	old := filepath.Join(data, "prompts", "DREAM_TASK.txt")
	put := func(path, text string) {
		t.Helper()
		must(t, store.WriteFile(path, []byte(text)))
	}
	put(old, "Mine: {content}\n")
	says := func(want ...string) {
		t.Helper()
		_, report := doctorSays(t, data, "")
		for _, w := range want {
			if !strings.Contains(report, w) {
				t.Errorf("doctor does not say %q:\n%s", w, report)
			}
		}
	}
	says("moved at the next start: prompts/DREAM_TASK.txt to DREAM_TASK_PROMPT.txt", "prompts/DREAM_TASK.txt was edited by you", "+Mine: {content}")
	if _, err := os.Stat(old); err != nil {
		t.Errorf("looking moved it: %v", err)
	}
	put(filepath.Join(data, ".defaults"), strings.Repeat("0", 64)+"  prompts/DREAM_TASK.txt\n")
	_, err := store.WriteDefaults(reverie.Data, data)
	must(t, err)
	says("were moved: prompts/DREAM_TASK.txt to DREAM_TASK_PROMPT.txt", "DREAM_TASK_PROMPT.txt was edited by you", "+Mine: {content}")
	put(old, "Another")
	says("prompts/DREAM_TASK.txt is not read: DREAM_TASK_PROMPT.txt has taken its place", "delete it")
}
