package prompt

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// What made a prompt anew is logged, once it is sent.
func TestEpochsAreLogged(t *testing.T) {
	w := newWorld(t, Stable)
	w.asks("Hello")
	w.asks("Nothing new")
	w.file("MEMORIES.txt", "Ada drinks tea.\n")
	w.asks("Something new, but no epoch")
	w.file("MEMORIES.txt", "Ada drinks coffee.\n")
	w.asks("Edited")
	w.says("a preview and one that is not sent")
	w.file("SOUL.md", "An edit.")
	if !w.previews().Report.Epoch.New || !w.assemble().Report.Epoch.New {
		t.Error("no epoch would begin")
	}
	w.must(os.Remove(w.path("SOUL.md")))
	w.room, w.last = "!other:example.org", nil
	w.asks("Hello")
	var got []string
	for _, m := range regexp.MustCompile(`msg="prompt: a new epoch" room=(\S+) reason="(.*)"`).FindAllStringSubmatch(w.log.String(), -1) {
		got = append(got, m[1]+" "+m[2])
	}
	if want := []string{testRoom + " new conversation", testRoom + " memories edited", w.room + " new conversation"}; !slices.Equal(got, want) {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// The last request can be told from what is stored: while a tool is called, and after an answer
// and a restart. send compares the bytes, also after retries and of a part of the history.
func TestSent(t *testing.T) {
	w := newWorld(t, Stable)
	sent := func() string {
		t.Helper()
		messages, err := w.assembler.Sent(t.Context(), history.Talk(w.room))
		if errors.Is(err, ErrNotKept) {
			return "not kept"
		}
		w.must(err)
		return flat(messages)
	}
	if got := sent(); got != "not kept" {
		t.Errorf("of a room in which nothing was said: %s", got)
	}
	w.remembers("Ada drinks tea.")
	w.says("Hello")
	if got := sent(); got != "not kept" {
		t.Errorf("before the first request: %s", got)
	}
	w.send()
	w.addTask(3, "Water the plants")
	w.callsTool("task", "{}")
	if got := sent(); got != flat(w.last) {
		t.Errorf("while a tool is called:\n%s", got)
	}
	w.result("done")
	first := flat(w.send().Messages())
	w.answers("Hello.")
	w.restart()
	if got := sent(); got != first {
		t.Errorf("after the answer and a restart:\n%s", got)
	}
	w.startsNew()
	if got := sent(); got != "not kept" {
		t.Errorf("after !new: %s", got)
	}
	w.says("Hello again")
	if got := sent(); got != "not kept" {
		t.Errorf("after !new and a message: %s", got)
	}
	w.layout, w.last = Classic, nil
	w.restart()
	w.send()
	if got := sent(); got != "not kept" {
		t.Errorf("of a layout that keeps no prefix: %s", got)
	}
}

// An epoch that cannot be read, or that somebody spoiled, costs a new one and no more.
func TestSpoiledEpoch(t *testing.T) {
	for column, reason := range map[string]string{
		"shown = '['":                          newConversation,
		`key = replace(key, 'soul=', 'gone=')`: "soul changed", `key = key || ' gone=1'`: "sources changed",
	} {
		w := newWorld(t, Stable)
		w.file("SOUL.md", "Warm.")
		w.asks("Hello")
		_, err := w.db.Exec(`UPDATE prompt_epoch SET ` + column)
		w.must(err)
		w.restart()
		if got := w.asks("And now?"); got != reason {
			t.Errorf("%s: %q, want %q", column, got, reason)
		}
		w.expect(true, "Hello")
	}
}

func TestRepeated(t *testing.T) {
	m := func(role llm.Role, text string) llm.Message { return llm.Message{Role: role, Content: text} }
	call := llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "task", Arguments: "{1}"}}}
	other := llm.Message{Role: llm.Assistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "task", Arguments: "{2}"}}}
	for _, tt := range []struct {
		last, now        []llm.Message
		repeated, reused float64
	}{
		{[]llm.Message{m(llm.System, "ab")}, nil, 0, 0},
		{[]llm.Message{m(llm.System, "abcd")}, []llm.Message{m(llm.System, "abcd"), m(llm.User, "efgh")}, 1, 0.5},
		{[]llm.Message{m(llm.System, "abcd"), m(llm.User, "efgh")}, []llm.Message{m(llm.System, "abcd")}, 0.5, 1},
		{[]llm.Message{m(llm.System, "abcd")}, []llm.Message{m(llm.System, "abxd"), m(llm.User, "efgh")}, 0.5, 0.25},
		{[]llm.Message{m(llm.System, "abcd"), m(llm.User, "efgh")}, []llm.Message{m(llm.User, "abcd"), m(llm.User, "efgh")}, 0, 0},
		{[]llm.Message{call, m(llm.User, "abc")}, []llm.Message{other, m(llm.User, "abc")}, 0, 0},
		{[]llm.Message{m(llm.Assistant, "abc")}, []llm.Message{{Role: llm.Assistant, Content: "abc", ToolCalls: call.ToolCalls}}, 1, 0.3},
	} {
		if got := Repeated(tt.last, tt.now); got != tt.repeated {
			t.Errorf("%s then %s: repeated %v, want %v", flat(tt.last), flat(tt.now), got, tt.repeated)
		}
		if got := reused(tt.last, tt.now); got != tt.reused {
			t.Errorf("%s then %s: reused %v, want %v", flat(tt.last), flat(tt.now), got, tt.reused)
		}
	}
}

// What a server is told to keep is what the next request begins with.
func TestMarks(t *testing.T) {
	w := newWorld(t, Stable)
	p := w.tells("Hello")
	if got := p.Marks(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("marks of the first request: %v", got)
	}
	w.uses("task", "{}", "none")
	p = w.send()
	marks, before := p.Marks(), p.Messages()
	if !slices.Equal(marks, []int{0, 2, 3}) {
		t.Errorf("marks: %v", marks)
	}
	w.answers("There are none.")
	w.says("And now?")
	next := w.send().Messages()
	for _, m := range marks {
		if flat(next[:m+1]) != flat(before[:m+1]) {
			t.Errorf("mark %d: another request begins\n%s\n--- and not ---\n%s", m, flat(next[:m+1]), flat(before[:m+1]))
		}
	}
	w = newWorld(t, Classic)
	w.says("Hello")
	if got := w.send().Marks(); got != nil {
		t.Errorf("a layout that is rebuilt has the marks %v", got)
	}
}
