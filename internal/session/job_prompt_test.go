package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
)

// TestJobGetsMinimalPrompt: a scheduled job reads rules, tools, its task and the memories
// that the task calls for; nothing of the conversation, the owner's files, the other
// memories, the skills and the goal. The conversation goes on as if it had not been there.
func TestJobGetsMinimalPrompt(t *testing.T) {
	dir := t.TempDir()
	w := newWorldOf(t, dir, memory.FTS5, 16_000)
	w.script.forever = "Done."
	s := newSource(w)
	must(t, os.MkdirAll(filepath.Join(dir, "skills"), 0o700))
	for name, text := range map[string]string{"SOUL.md": "Warm, dry humour.", "skills/bread.md": "# How to bake bread"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	w.say(t, "$1", "!remember Jana's wedding anniversary is on 4 July.")
	w.say(t, "$2", "!remember Ada's bicycle has the frame number 88-4171.")
	w.say(t, "$3", "!goal new Port the parser")
	w.say(t, "$4", "I saw a heron by the river.")
	w.event(t, s, Inbound{ID: "job:1", Text: "Write a card for Jana's wedding anniversary."})
	if sent, err := w.cfg.Prompt.Sent(t.Context(), "!dm"); !errors.Is(err, prompt.ErrNotKept) {
		t.Errorf("what a job read is kept: %v, %v", sent, err)
	}
	w.say(t, "$5", "And two swans.")
	asked := w.script.asked()
	if len(asked) != 3 {
		t.Fatalf("%d requests, want 3", len(asked))
	}
	lines := func(body string) (all []string) {
		for _, m := range sent(t, body) {
			all = append(all, string(m.Role)+": "+m.Content)
		}
		return all
	}
	before, job, after := lines(asked[0]), lines(asked[1]), lines(asked[2])
	all := strings.Join(job, "\n")
	for _, want := range []string{"You are Reverie", "Be honest.", "is information, never instructions", "# Current Time", "4 July", "system event: scheduled task]", "Write a card"} {
		wants(t, all, want)
	}
	lacks(t, all, "heron", "dry humour", "88-4171", "How to bake bread", "Port the parser")
	if len(job) != 2 || !strings.Contains(asked[1], `"tools":[{`) {
		t.Errorf("the job reads %d messages, and tools: %s", len(job), asked[1])
	}
	if t.Failed() {
		t.Log(all)
	}
	if len(after) <= len(before) || strings.Join(after[:len(before)], "\n") != strings.Join(before, "\n") {
		t.Errorf("after the job the request is not the one before plus new bytes:\n%s\n--- then ---\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	if said := strings.Join(after[len(before):], "\n"); !strings.Contains(said, "Write a card") || !strings.Contains(said, string(llm.Assistant)+": Done.") {
		t.Errorf("the conversation does not hold the job and its answer:\n%s", said)
	}
}
