package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

// newWindow is a world whose model has another window.
func newWindow(t *testing.T, dir string, window int, answers ...string) *world {
	t.Helper()
	return newWorldOf(t, dir, memory.FlatFile, window, answers...)
}

// isSummary tells the request for a summary from others.
func isSummary(body string) bool { return strings.Contains(body, "takes the place of the older part") }

// sent is the messages of a request.
func sent(t testing.TB, body string) []llm.Message {
	t.Helper()
	var req struct {
		Messages []struct {
			Role, Content string
			ToolCallID    string `json:"tool_call_id"`
			ToolCalls     []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	must(t, json.Unmarshal([]byte(body), &req))
	var out []llm.Message
	for _, m := range req.Messages {
		msg := llm.Message{Role: llm.Role(m.Role), Content: m.Content, ToolCallID: m.ToolCallID}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		out = append(out, msg)
	}
	return out
}

// summarising answers requests for a summary with f, which gets what is to be
// summarised, and everything else with an answer of some length.
func (w *world) summarising(t testing.TB, f func(text string) string) *int {
	n := 0
	w.script.reply = func(body string) (string, bool) {
		if isSummary(body) {
			n++
			m := sent(t, body)
			return f(m[len(m)-1].Content), true
		}
		return "", false
	}
	w.script.forever = "Understood. " + strings.Repeat("I take note of it and will come back to it when it matters. ", 3)
	return &n
}

// chatter says so many things that matter to nobody.
func (w *world) chatter(t *testing.T, name string, n int) {
	t.Helper()
	for i := range n {
		got := w.say(t, fmt.Sprintf("$%s%d", name, i), strings.Repeat("we go on talking about the weather and the garden, ", 4))
		if got.Notice || got.Text == "" {
			t.Fatalf("%s %d is answered with %+v", name, i, got)
		}
	}
}

// untilCompacted says things until there have been n compactions.
func (w *world) untilCompacted(t *testing.T, n int) {
	t.Helper()
	for len(w.compactions(t)) < n {
		w.chatter(t, fmt.Sprint("c", len(w.script.asked())), 1)
	}
}

// lastPrompt is the newest request for an answer, as one text.
func (w *world) lastPrompt(t testing.TB) string {
	t.Helper()
	asked := w.script.asked()
	for i := len(asked) - 1; i >= 0; i-- {
		if isSummary(asked[i]) {
			continue
		}
		var b strings.Builder
		for _, m := range sent(t, asked[i]) {
			b.WriteString(m.Content + "\n")
		}
		return b.String()
	}
	return ""
}

// level of the room's newest compaction, and how many there were.
func (w *world) compactions(t testing.TB) []string {
	t.Helper()
	return w.column(t, `SELECT level FROM compaction ORDER BY id`)
}

// TestCompaction is what a conversation in a small window rests on.
func TestCompaction(t *testing.T) {
	t.Run("verbatim identifiers survive", func(t *testing.T) {
		w := newWindow(t, t.TempDir(), 6000)
		w.summarising(t, func(string) string { return "They talked about this and that, at some length." })
		w.say(t, "$0", "The door code is 4711-K, see https://example.org/flat?id=9 and /home/ada/flat.txt for more.")
		w.say(t, "$1", "DECISION_LOCKED: we paint it green | because we like green")
		w.untilCompacted(t, 3)
		got := w.lastPrompt(t)
		wants(t, got, "4711-K", "https://example.org/flat?id=9", "/home/ada/flat.txt", "we paint it green")
	})
	for name, answer := range map[string]string{"failing": "500", "empty": "", "cut": "cut off in the middle of a summary that they", "garbled": "<html><body>Bad Gateway, sorry about that</body></html>", "calls a tool": `{"entry":"x"}`} {
		t.Run("a summariser that is "+name+" falls back", func(t *testing.T) {
			w := newWindow(t, t.TempDir(), 6000)
			w.summarising(t, func(string) string { return answer })
			w.say(t, "$0", "The door code is 4711-K.")
			w.say(t, "$1", "DECISION_LOCKED: we paint it green | because we like green")
			w.untilCompacted(t, 2)
			if got := strings.Join(w.compactions(t), " "); got != "extract extract" {
				t.Errorf("levels: %s", got)
			}
			if got := w.lastPrompt(t); !strings.Contains(got, "ada: The door code is 4711-K.") && !strings.Contains(got, "owner: The door code is 4711-K.") || !strings.Contains(got, "Said since, in short") {
				t.Errorf("prompt: %s", got)
			}
			wants(t, w.lastPrompt(t), "we paint it green")
			notice(t, w.say(t, "$s", "!summary"), "4711-K")
		})
	}
}

// compacted is the compaction that counts in the room.
func (w *world) compacted(t testing.TB) history.Compaction {
	t.Helper()
	c := result(w.cfg.History.Compacted(t.Context(), "!dm"))(t)
	return c
}

// TestRecoveredNote: the first message behind a summary tells the model to be careful with
// it, once.
func TestRecoveredNote(t *testing.T) {
	w := newWindow(t, t.TempDir(), 6000)
	w.summarising(t, func(string) string { return "They talked about the weather and the garden." })
	told := func() int { return strings.Count(w.lastPrompt(t), "Older messages were just replaced by a summary") }
	w.chatter(t, "a", 1)
	equal(t, told(), 0)
	w.untilCompacted(t, 1)
	equal(t, told(), 1)
	w.chatter(t, "b", 2)
	if n := told(); n != 1 { // it stays where it was said, and is not said again
		t.Errorf("told %d times two messages later", n)
	}
}
