package session

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/llm"
	"reverie/internal/tool"
)

// TestSharedFiles: what a sub-session keeps is there for those that come after it in the
// same work, also after a restart, marked as another's words; the conversation is not
// offered the tool; and when all is told, nothing is left.
// Holds L20.
func TestSharedFiles(t *testing.T) {
	w := newWorld(t, t.TempDir())
	var mu sync.Mutex
	asked := map[string][]string{} // by objective, what stood last
	hold := make(chan struct{})
	w.script.reply = func(body string) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		a, sub, last := readAsked(t, body)
		offered := strings.Contains(body, `"name":"scratch"`)
		if !sub {
			if offered {
				t.Error("the conversation is offered the shared files")
			}
			return "noted", true
		}
		if !offered {
			t.Error("a sub-session is not offered the shared files")
		}
		_, what, _ := strings.Cut(a.Messages[1].Content, "## Objective\n")
		what, _, _ = strings.Cut(what, "\n")
		asked[what] = append(asked[what], last)
		if a.Messages[len(a.Messages)-1].Role != "tool" {
			return map[string]string{"first": `{"action":"write","name":"notes.md","text":"the key is blue\n[Sat 2026-01-01 10:00 UTC]"}`,
				"second": `{"action":"read","name":"notes.md"}`, "alone": `{"action":"list"}`}[what], true
		}
		return "done", true
	}
	w.script.hold = func(body string) <-chan struct{} {
		if strings.Contains(body, `## Objective\nsecond`) {
			return hold
		}
		return nil
	}
	w.withHelpers(t)
	w.script.tool = tool.ScratchName
	first := w.spawn(t, tool.Job{Objective: "first", Tools: []string{"task"}})
	w.spawn(t, tool.Job{Objective: "second", Tools: []string{"task"}, Needs: []string{first}})
	w.spawn(t, tool.Job{Objective: "alone", Tools: []string{"task"}})
	until(t, "the first two are told", func() bool { return len(w.eventsTold(t, "!dm")) == 2 })
	equal(t, w.filesLeft(t), 1)
	w.restart(t)
	close(hold)
	until(t, "all are told", w.allTold(t))
	mu.Lock()
	defer mu.Unlock()
	wants(t, asked["second"][len(asked["second"])-1], first+"/notes.md:\n> the key is blue\n> [Sat 2026")
	equal(t, asked["alone"][len(asked["alone"])-1], "There are no shared files yet.")
	until(t, "nothing is left", func() bool { return w.filesLeft(t) == 0 })
}

func (w *world) filesLeft(t *testing.T) (n int) {
	t.Helper()
	return value[int](t, w, `SELECT count(*) FROM sub_session_file`)
}

// TestSharedFilesBounds: whose files may be read, what names and how much there may be,
// and that what is forgotten goes from them.
func TestSharedFilesBounds(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.withHelpers(t)
	w.stop() // nobody works, so that nothing is removed
	id := w.spawn(t, tool.Job{Objective: "a"})
	result(w.helpers.change(t.Context(), w.cfg.DB, `status = 'running' WHERE id = ?`, id))(t)
	inside := func(helper string, private bool) tool.Scope {
		s := spawnScope(w, "!dm", private)
		s.Helper, s.Scratch = helper, w.helpers
		return s
	}
	child := w.spawnFor(t, inside(id, true), tool.Job{Objective: "b"})
	after, other := w.spawn(t, tool.Job{Objective: "c", Needs: []string{id}}), w.spawn(t, tool.Job{Objective: "d"})
	run := func(scope tool.Scope, arguments string) tool.Result {
		return w.cfg.Tools.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: tool.ScratchName, Arguments: arguments})
	}
	write := func(name string, size int) string {
		return fmt.Sprintf(`{"action":"write","name":%q,"text":%q}`, name, strings.Repeat("x", size))
	}
	const secret = `{"action":"write","name":"notes.md","text":"canary 4711"}`
	if r := run(inside(id, true), secret); r.Failed || r.Content != "Kept as "+id+"/notes.md." {
		t.Fatal(r.Content)
	}
	read := `{"action":"read","name":"notes.md"}`
	for helper, may := range map[string]bool{id: true, child: true, after: true, other: false, "sub_nothing": false} {
		if r := run(inside(helper, true), read); strings.Contains(r.Content, "4711") != may {
			t.Errorf("%s read %q", helper, r.Content)
		}
		if r := run(inside(helper, true), fmt.Sprintf(`{"action":"read","name":"%s/notes.md"}`, id)); strings.Contains(r.Content, "4711") != may {
			t.Errorf("%s read %q by its writer", helper, r.Content)
		}
		if r := run(inside(helper, true), `{"action":"list"}`); strings.Contains(r.Content, id) != may {
			t.Errorf("%s listed %q", helper, r.Content)
		}
	}
	if r := run(inside(after, false), read); strings.Contains(r.Content, "4711") {
		t.Errorf("read with others in the room: %q", r.Content)
	}
	for _, bad := range []string{write("../x", 1), write("/etc/passwd", 1), write("a/b", 1), write(".x", 1), write("", 1), write("x", 0), write("x", 64<<10+1),
		`{"action":"read","name":"../../bot.db"}`, `{"action":"read","name":"sub_aaaaaaaa/x"}`} {
		if r := run(inside(id, true), bad); !r.Failed {
			t.Errorf("%.60s: %s", bad, r.Content)
		}
	}
	if r := run(inside(id, true), `{"action":"append","name":"notes.md","text":" and more"}`); r.Failed {
		t.Error(r.Content)
	}
	if r := run(inside(after, true), `{"action":"write","name":"notes.md","text":"of another"}`); r.Failed {
		t.Error(r.Content)
	}
	if r := run(inside(id, true), `{"action":"read","name":"`+id+`/notes.md"}`); !strings.Contains(r.Content, "> canary 4711 and more") {
		t.Errorf("after another wrote under the same name: %q", r.Content)
	}
	tx := result(w.cfg.DB.BeginTx(t.Context(), nil))(t)
	must(t, ForgetHelpers(t.Context(), tx, []string{"canary 4711"}))
	must(t, tx.Commit())
	if r := run(inside(id, true), `{"action":"read","name":"`+id+`/notes.md"}`); !strings.Contains(r.Content, "> [forgotten] and more") {
		t.Errorf("forgotten: %q", r.Content)
	}
	full := 0
	for i := range 20 {
		if r := run(inside(child, true), write(fmt.Sprint("big", i), 60<<10)); r.Failed {
			full++
		}
	}
	for i := range 50 {
		if r := run(inside(after, true), write(fmt.Sprint("small", i), 1)); r.Failed {
			full++
		}
	}
	if n := w.filesLeft(t); n != mostShared || full != 3+50-(mostShared-2-17) {
		t.Errorf("%d files, %d refused", n, full)
	}
	result(w.helpers.change(t.Context(), w.cfg.DB, `status = 'completed', told = ?`, time.Now().UnixMilli()))(t)
	if err := w.helpers.tidy(t.Context()); err != nil || w.filesLeft(t) != 0 {
		t.Errorf("%d files are left, %v", w.filesLeft(t), err)
	}
}
