package session

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/trust"
)

// tidier is a model that does what it is asked to: it lists, and acts on the list.
type tidier struct {
	tool string
	act  func(list string) []string // arguments of calls, one after the other
	left []string
	seen atomic.Pointer[string] // the list
	done atomic.Int32
}

// reply answers the requests of the program; false to those for people.
func (m *tidier) reply(body string) (string, bool) {
	var req struct {
		Messages []struct{ Role, Content string }
		Tools    []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		return "", false
	}
	offered := slices.ContainsFunc(req.Tools, func(t struct{ Function struct{ Name string } }) bool { return t.Function.Name == m.tool })
	if !offered {
		return "", false
	}
	last := req.Messages[len(req.Messages)-1]
	if last.Role == "user" {
		return m.tool + ` {}`, true
	}
	if m.seen.Load() == nil {
		m.seen.Store(&last.Content)
		m.left = m.act(last.Content)
	}
	if len(m.left) == 0 {
		m.done.Add(1)
		return "tidied", true
	}
	next := m.left[0]
	m.left = m.left[1:]
	return m.tool + " " + next, true
}

// toolCall takes the name of a tool from the front of its arguments.
func toolCall(answer string) (name, rest string) {
	if name, rest, ok := strings.Cut(answer, " {"); ok && regexp.MustCompile(`^[a-z_]+$`).MatchString(name) {
		return name, "{" + rest
	}
	return "append_memory", answer
}

// memoriesOf are the lines of memories in a request.
func memoriesOf(t *testing.T, body string) string {
	t.Helper()
	var req struct {
		Messages []struct{ Role, Content string }
	}
	if err := json.Unmarshal([]byte(body), &req); err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(req.Messages[0].Content, "User Memories")
	if !ok {
		t.Fatalf("no memories in %s", body)
	}
	return rest
}

// TestCondenseMemories: memories of 12,000 characters are cut to what a prompt has
// room for, at once. The model is then asked to put some together, with a tool that
// no other request has; the next prompt holds all of them again, each number and
// name, and one !undo takes a step back. Nobody else's memory is shown.
func TestCondenseMemories(t *testing.T) {
	w := newWorld(t, t.TempDir())
	var later atomic.Int64
	w.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	for i := range 100 {
		text := fmt.Sprintf("Heron%d was seen at the weir with code %d, %s", i, 4000+i, strings.Repeat("as it was before, ", 4))
		if _, _, err := w.cfg.Memory.Append(t.Context(), memory.Private(owner), text); err != nil {
			t.Fatal(err)
		}
	}
	for scope, text := range map[memory.Scope]string{memory.Private("@friend:example.org"): "the friend's canary", memory.Room("!other"): "the other room's canary"} {
		if _, _, err := w.cfg.Memory.Append(t.Context(), scope, text); err != nil {
			t.Fatal(err)
		}
	}
	line := regexp.MustCompile(`(mem_\w+) (Heron\d+) was seen at the weir with code (\d+)`)
	m := &tidier{tool: "merge_memories", act: func(list string) (calls []string) {
		found := line.FindAllStringSubmatch(list, -1)
		for some := range slices.Chunk(found, 20) {
			ids, text := "", "at the weir was seen before: "
			for _, f := range some {
				ids, text = ids+" "+f[1], text+f[2]+" with code "+f[3]+", "
			}
			calls = append(calls, fmt.Sprintf(`{"ids": %q, "text": %q}`, ids, strings.TrimSuffix(text, ", ")))
		}
		return calls
	}}
	w.script.reply, w.cfg.MaxRound = m.reply, 12
	w.say(t, "$1", "hi")
	first := memoriesOf(t, w.script.asked()[0])
	if strings.Contains(first, "Heron0 ") || !strings.Contains(first, "Heron99 ") || !strings.Contains(first, "lines shown; older ones") {
		t.Errorf("the first prompt is not cut: %.3000s", first)
	}
	w.finish(t, m)
	entries, err := w.cfg.Memory.Entries(t.Context(), memory.Private(owner))
	if err != nil || len(entries) > 65 {
		t.Fatalf("%d memories are left, %v", len(entries), err)
	}
	n := len(w.script.asked())
	w.say(t, "$2", "and now?")
	asked := w.script.asked()
	now := memoriesOf(t, asked[n])
	for i := range 100 {
		if !strings.Contains(now, fmt.Sprintf("Heron%d ", i)) || !strings.Contains(now, fmt.Sprint(4000+i)) {
			t.Errorf("Heron%d or its code is not in the next prompt", i)
		}
	}
	for i, body := range asked {
		if strings.Contains(body, "canary") {
			t.Errorf("request %d shows somebody else's memory", i)
		}
		if strings.Contains(body, `"name":"merge_memories","description"`) != (i > 0 && i < n) {
			t.Errorf("request %d of %d: the tool is offered in the wrong place", i, len(asked))
		}
	}
	if n := w.room.count(); n != 2 {
		t.Errorf("%d things were said in the room", n)
	}
	if got := w.say(t, "$3", "!undo"); !strings.Contains(got.Text, "no change of yours") {
		t.Errorf("what the program did is not the person's last change: %+v", got)
	}
	batch := regexp.MustCompile("`(!undo [a-z0-9]+)`").FindStringSubmatch(asked[n-1])
	if batch == nil {
		t.Fatalf("the model does not know how to take it back: %s", asked[n-1])
	}
	if got := w.say(t, "$4", batch[1]); !strings.Contains(got.Text, "known again: Heron") {
		t.Errorf("undo: %+v", got)
	}
}

// finish waits until m has done its work and the room is quiet.
func (w *world) finish(t *testing.T, m *tidier) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); m.done.Load() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the model was not asked to tidy up")
		}
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		past, err := w.cfg.History.Load(t.Context(), "!dm")
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(past, func(m history.Message) bool { return m.Role == llm.Assistant && m.Text == "tidied" }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", past)
		}
	}
}

// TestCondenseMemoriesOnceADay: a model that does nothing is asked again the day
// after, and not before; nor in another room that shows the same memories.
func TestCondenseMemoriesOnceADay(t *testing.T) {
	w := newWorld(t, t.TempDir())
	var later atomic.Int64
	w.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	for i := range 80 {
		if _, _, err := w.cfg.Memory.Append(t.Context(), memory.Private(owner), fmt.Sprintf("%d: %s", i, strings.Repeat("fact ", 40))); err != nil {
			t.Fatal(err)
		}
	}
	w.say(t, "$1", "hi")
	if asked := w.requests(t, 2); !strings.Contains(asked[1], "Call merge_memories without arguments first") {
		t.Errorf("%s", asked[1])
	}
	w.idle(t, 4)
	w.say(t, "$2", "hi again")
	w.deliver(t, Inbound{ID: "$3", Room: "!dm2", Sender: owner, Text: "and here?", Private: true, At: time.Now()})
	w.deliver(t, Inbound{ID: "$4", Room: "!dm2", Sender: owner, Text: "and now?", Private: true, At: time.Now()})
	time.Sleep(200 * time.Millisecond) // time for one too many to be asked
	if n := len(w.script.asked()); n != 5 {
		t.Errorf("asked %d times: it must be once a day", n)
	}
	later.Store(int64(25 * time.Hour))
	w.say(t, "$5", "good morning")
	w.requests(t, 7)
}

// TestCondenseNotWithAnIndex: where a prompt shows some memories only, there is
// nothing to gain.
func TestCondenseNotWithAnIndex(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FTS5, 32_000)
	for i := range 80 {
		if _, _, err := w.cfg.Memory.Append(t.Context(), memory.Private(owner), fmt.Sprintf("%d: %s", i, strings.Repeat("fact ", 150))); err != nil {
			t.Fatal(err)
		}
	}
	w.say(t, "$1", "hi")
	time.Sleep(200 * time.Millisecond) // time for one too many to be asked
	w.say(t, "$2", "hi again")
	if n := len(w.script.asked()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// TestCondenseSkills: the list of skills becomes shorter, and what is in them stays.
func TestCondenseSkills(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	skills := skill.Open(filepath.Join(dir, "skills"))
	for i := range 30 {
		if _, _, err := skills.Add(trust.Place{Room: "!dm", Person: owner, Private: true}, trust.Owner, fmt.Sprintf("skill-%d", i), fmt.Sprintf("How to do the %d. thing %s", i, strings.Repeat("very ", 10)), fmt.Sprintf("Step %d.", i)); err != nil {
			t.Fatal(err)
		}
	}
	m := &tidier{tool: "tidy_skills", act: func(list string) (calls []string) {
		return []string{`{"skill_name": "skill-1", "summary": "The 1. thing"}`, `{"skill_name": "skill-2", "into": "skill-3"}`}
	}}
	w.script.reply, w.cfg.MaxRound = m.reply, 12
	w.say(t, "$1", "hi")
	w.finish(t, m)
	if got := *m.seen.Load(); strings.Count(got, "How to do the ") != 30 {
		t.Errorf("the list: %s", got)
	}
	all, err := skills.All()
	if err != nil || len(all) != 29 || all[1].Summary != "The 1. thing" {
		t.Errorf("%+v, %v", all, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "skills", skill.Folder(trust.Person(owner)), "skill-3.md"))
	if err != nil || !strings.Contains(string(b), "Step 3.") || !strings.Contains(string(b), "Step 2.") {
		t.Errorf("%s, %v", b, err)
	}
	n := len(w.script.asked())
	w.deliver(t, Inbound{ID: "$2", Room: "!group", Sender: owner, Text: "hi", At: time.Now()})
	time.Sleep(200 * time.Millisecond) // time for one too many to be asked
	if got := len(w.script.asked()); got != n+1 {
		t.Errorf("asked %d times more: nobody is asked about skills in a room that has none of its own", got-n)
	}
}
