package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// TestFilesAreReadAgain: what the model read lately and a compaction took away is before it
// again, as it is now, once, within bounds, and only if it may still be read.
func TestFilesAreReadAgain(t *testing.T) {
	w := newWindow(t, t.TempDir(), 16_000)
	w.summarising(t, func(string) string { return "They looked at some skills, and found nothing wrong with them." })
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
	}
	write("secret.txt", "SECRET-KEY")
	names := []string{"secret.txt"}
	for i := range 7 {
		name := fmt.Sprintf("prompts/part%d.md", i)
		write(name, fmt.Sprintf("CONTENT-%d ", i)+strings.Repeat("of a skill ", 10))
		names = append(names, name)
	}
	names = append(names, "prompts/part6.md") // twice
	w.append(t, history.Message{Role: llm.User, Sender: owner, EventID: "$a", Text: "look at these"})
	for i, name := range names {
		id := fmt.Sprint("c", i)
		w.append(t, history.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: id, Name: "read_file", Arguments: fmt.Sprintf(`{"path":"data/%s"}`, name)}}})
		w.append(t, history.Message{Role: llm.Tool, CallID: id, Text: "what it said before"})
	}
	w.append(t, history.Message{Role: llm.Assistant, Text: "seen"})
	write("prompts/part6.md", "CHANGED-6")
	must(t, os.Remove(filepath.Join(w.dir, "prompts/part5.md")))
	for i := range 6 {
		w.append(t, history.Message{Role: llm.User, Sender: owner, EventID: fmt.Sprint("$b", i), Text: "well"})
		w.append(t, history.Message{Role: llm.Assistant, Text: "yes"})
	}
	if got := w.say(t, "$c", "!compact"); !strings.Contains(got.Text, "I have summarised") {
		t.Fatalf("%+v", got)
	}
	w.say(t, "$q1", "and now?")
	got := w.lastPrompt(t)
	for _, want := range []string{"Files you had read, as they are now", "CHANGED-6", "CONTENT-4", "CONTENT-3", "CONTENT-2"} {
		if strings.Count(got, want) != 1 {
			t.Errorf("%q stands there %d times", want, strings.Count(got, want))
		}
	}
	lacks(t, got, "SECRET-KEY", "CONTENT-0", "CONTENT-1", "CONTENT-5", "CONTENT-6", "what it said before")
	w.say(t, "$q2", "go on")
	if got := w.lastPrompt(t); strings.Count(got, "CHANGED-6") != 1 {
		t.Errorf("with the next message it stands there %d times", strings.Count(got, "CHANGED-6"))
	}
	write("SOUL.md", "You are kind.") // an epoch begins
	w.say(t, "$q3", "go on")
	if got := w.lastPrompt(t); strings.Contains(got, "CHANGED-6") {
		t.Error("it is shown to a model that has gone on long since")
	}
}

// TestRereadIsBounded: files take a share of the room and no more.
func TestRereadIsBounded(t *testing.T) {
	w := newWindow(t, t.TempDir(), 16_000)
	var plan history.Plan
	for i := range 5 {
		name := fmt.Sprintf("prompts/long%d.md", i)
		must(t, os.WriteFile(filepath.Join(w.dir, name), []byte(strings.Repeat("many words in a long file\n", 3000)), 0o600))
		plan.Gone = append(plan.Gone, history.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: fmt.Sprint(i), Name: "read_file", Arguments: `{"path":"` + name + `"}`}}})
	}
	s := newSession(w.Manager, "!dm")
	now := result(s.mode(t.Context()))(t)
	in := Inbound{Room: "!dm", Sender: owner, Private: true}
	for room, least := range map[int]int{500: 0, 4000: 1, 20_000: 1} {
		got, _ := s.reread(t.Context(), in, now, plan, room)
		if n := llm.EstimateTokens(strings.Join(got, "\n")); n > room/10+5 || len(got) < least {
			t.Errorf("of a room of %d, %d files take %d tokens", room, len(got), n)
		}
	}
	plan.Kept = plan.Gone[4:]
	again, _ := s.reread(t.Context(), in, now, plan, 20_000)
	for _, text := range again {
		lacks(t, text, "long4.md")
	}
}
