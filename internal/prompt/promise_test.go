package prompt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt/section"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// Equal files, rows and turns give equal bytes, whatever the order of the contributors and among
// equal ranks.
func TestSameBytes(t *testing.T) {
	w := newWorld(t, Stable)
	fill(w)
	turn := w.turn()
	for _, turn.Layout = range append(Layouts(), minimal, baseOnly, Bare) {
		first := ""
		for range 30 {
			w.restart()
			p := w.assembles(turn)
			got := flat(p.Messages())
			if first == "" {
				first = got
			}
			if got != first {
				t.Fatalf("%s: other bytes for the same turn:\n%s\n--- and ---\n%s", turn.Layout, first, got)
			}
		}
	}
}

// fill gives a world content for every contributor, with ties in every ranking.
func fill(w *world) {
	for _, f := range []string{"SOUL", "AGENTS", "TOOLS", "COMMANDS", "AGENT", "PREFERENCES", "USER"} {
		w.file(f+".md", "What "+f+".md says.")
	}
	w.file("prompts/SANITY.txt", "Check it.")
	w.file("prompts/tools/task.txt", "Give it a date.")
	w.file("prompts/assistant/tier1.txt", "Be short.")
	for i := range 8 {
		w.remembers(fmt.Sprintf("Fact %d.", i))
		w.file(fmt.Sprintf("skills/skill%d.md", 7-i), "# The same summary\n")
		w.addTask(5, "The same task")
	}
	w.mode, w.tier, w.goal, w.steps, w.pin = "assistant", 3, []string{"Ship it."}, []string{"🔄 one", "⏳ two"}, "One."
	w.summary, w.thinking, w.model, w.context = "They talked.", "high", "qwen3:8b", "What this room is about."
	w.instruct("Prefer metric units.")
	w.tools = append(w.tools, "call_tool")
	w.programs = []section.Program{{Name: "github", Tools: []section.ProgramTool{{Name: "github.list", Summary: "List issues."}},
		Prompts: []string{"Titles are short."}}}
	w.says("Hello")
	w.uses("read_file", `{"path":"data/skills/skill1.md"}`, "# The same summary")
	w.now = w.now.Add(time.Minute)
}

// The clock, a new memory, a task, a step of the goal, thinking and a restart leave the prefix
// unchanged.
// Holds P4.
func TestPrefixStays(t *testing.T) {
	w := newWorld(t, Stable)
	fill(w)
	before := w.send()
	w.answers("Well.")
	for what, change := range map[string]func(){
		"clock": func() { w.now = w.now.Add(3 * time.Hour) }, "memory": func() { w.remembers("Something new.") },
		"task": func() { w.addTask(1, "Something to do") }, "step": func() { w.steps = []string{"✅ one", "🔄 two"} },
		"pin": func() { w.pin = "Two." }, "thinking": func() { w.thinking = "low" }, "model": func() { w.model = "another" },
		"restart": func() { w.restart() },
	} {
		change()
		if p := w.tells("And now?"); p.Prefix != before.Prefix || p.Report.Epoch.New {
			t.Errorf("%s: another prefix, new epoch %v: %s", what, p.Report.Epoch.New, p.Report.Epoch.Reason)
		}
		w.answers("Well.")
	}
}

// For any window and content, the request fits and holds the newest message whole, or an error says
// so.
func TestEveryWindow(t *testing.T) {
	w := newWorld(t, Stable)
	fill(w)
	rapid.Check(t, func(t *rapid.T) {
		w.room = fmt.Sprintf("!%s:example.org", rapid.StringMatching(`[a-z]{16}`).Draw(t, "room"))
		w.file("MEMORIES.txt", manyLines(rapid.IntRange(0, 300).Draw(t, "memories")))
		w.file("SOUL.md", strings.Repeat("Warm and dry. ", rapid.IntRange(0, 500).Draw(t, "soul")))
		w.file("BASE_PROMPT.txt", strings.Repeat("Be kind. ", rapid.IntRange(1, 400).Draw(t, "base")))
		for range rapid.IntRange(0, 6).Draw(t, "turns") {
			w.says(strings.Repeat("and then? ", rapid.IntRange(1, 60).Draw(t, "question")))
			w.answers(strings.Repeat("it is so. ", rapid.IntRange(1, 200).Draw(t, "answer")))
		}
		newest := strings.Repeat("What about it? ", rapid.IntRange(1, 200).Draw(t, "newest")) + "END"
		w.says(newest)
		turn := w.turn()
		turn.Layout = rapid.SampledFrom(append(Layouts(), minimal, baseOnly, Bare)).Draw(t, "layout")
		turn.Window = rapid.IntRange(600, 12_000).Draw(t, "window")
		p, err := w.assembler.Assemble(w.t.Context(), turn)
		var large *TooLargeError
		if errors.As(err, &large) {
			if large.Needed <= large.Room {
				t.Fatalf("%d are needed and there is room for %d", large.Needed, large.Room)
			}
			return
		}
		expect.OK(t, err)
		used := turn.ToolTokens
		for _, m := range p.Messages() {
			used += messageFrame + llm.EstimateTokens(m.Content)
			for _, c := range m.ToolCalls {
				used += llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
			}
		}
		if most := turn.Window - turn.MaxOutput; used > most {
			t.Fatalf("%s: %d tokens are sent and %d fit:\n%s", turn.Layout, used, most, p.Report)
		}
		if all := p.Messages(); !strings.Contains(all[len(all)-1].Content, newest) {
			t.Fatalf("the newest message is not whole in\n%s", all[len(all)-1].Content)
		}
	})
}

// Two rooms talk concurrently, in changing layouts. Neither sees the other's memories, tasks, goal,
// files, skills or nonce.
func TestRoomsApart(t *testing.T) {
	w := newWorld(t, Stable)
	w.assembler.nonce = func() string { return strings.ToLower(fmt.Sprintf("n%x", time.Now().UnixNano())) }
	rooms := []string{"!one:example.org", "!two:example.org"}
	turns := make([]Turn, len(rooms))
	for i, room := range rooms {
		w.room, w.private = room, false
		secret := fmt.Sprintf("canary%d", i)
		_, _, err := w.memory.Add(t.Context(), memory.Entry{Scope: memory.Room(room), Text: "The " + secret + " memory.", Source: memory.Assistant, Integrity: trust.User}, "assistant")
		w.must(err)
		w.addTask(3, "The "+secret+" task")
		w.skillFile(fmt.Sprintf("way%d", i), secret, 0, "The "+secret+" way.")
		w.add(history.Message{Role: llm.User, Sender: testUser, Text: "Hello " + secret, Header: "[now]"})
		turns[i] = w.turn()
		turns[i].Goal, turns[i].Pin, turns[i].Summary = []string{secret + " goal"}, secret+" pin", secret+" summary"
	}
	var all sync.WaitGroup
	for i := range rooms {
		all.Go(func() {
			for n := range 60 {
				turn := turns[i]
				if n%2 == 1 {
					turn.Layout = Layouts()[n%len(Layouts())]
				}
				p, err := w.assembler.Assemble(t.Context(), turn)
				if err == nil {
					err = w.assembler.Commit(t.Context(), p)
				}
				if err == nil {
					turns[i].History, err = w.history.Load(t.Context(), history.Timeline(turn.Room))
				}
				if err != nil {
					t.Error(err)
					return
				}
				got := flat(p.Messages())
				if other := fmt.Sprintf("canary%d", 1-i); strings.Contains(got, other) {
					t.Errorf("room %d sees %s:\n%s", i, other, got)
					return
				}
				if mine := fmt.Sprintf("canary%d", i); strings.Count(got, mine) < 2 {
					t.Errorf("room %d does not see its own:\n%s", i, got)
					return
				}
			}
		})
	}
	all.Wait()
	first, err := w.assembler.Assemble(t.Context(), turns[0])
	w.must(err)
	second, err := w.assembler.Assemble(t.Context(), turns[1])
	w.must(err)
	if a, b := nonceOf(first), nonceOf(second); a == "" || a == b {
		t.Errorf("nonces %q and %q", a, b)
	}
}

func nonceOf(p Prompt) string {
	_, after, _ := strings.Cut(p.Prefix, `<data id="`)
	nonce, _, _ := strings.Cut(after, `"`)
	return nonce
}

// TestAnyConversation is a random walk through the events of a room. After every request (send
// checks that it extends the previous one, or that a new epoch has a reason): all entries are in
// it, in the prefix or later; a removed line is in no block; the tasks shown last are the open
// ones; all fences are closed.
func TestAnyConversation(t *testing.T) {
	w := newWorld(t, Stable)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		w.room = fmt.Sprintf("!room%d:example.org", runs)
		w.file("MEMORIES.txt", "# mine\n")
		w.file("BASE_PROMPT.txt", "You are {agent_name}.\n")
		w.now = time.Date(2026, 11, 21, 8, 14, 0, 0, time.UTC)
		w.goal, w.steps, w.pin, w.summary = nil, nil, "", ""
		w.restart()
		w.last = nil
		walk := &walk{world: w, rt: rt}
		walk.request(false)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			walk.step()
			if t.Failed() {
				rt.Fatalf("see above")
			}
		}
	})
}

type walk struct {
	*world
	rt     *rapid.T
	lines  []string // of MEMORIES.txt
	gone   []string
	tasks  []task.Task
	number int
	old    []string // goals, steps, current tasks and summaries that hold no more
}

func (w *walk) step() {
	switch what := rapid.IntRange(0, 13).Draw(w.rt, "step"); {
	case what <= 2:
		w.request(false)
	case what == 3:
		w.request(true)
	case what == 4: // told to the assistant
		w.number++
		line := fmt.Sprintf("fact %d of %s.", w.number, w.room)
		w.remembers(line)
		w.lines = append(w.lines, line)
	case what == 5 && len(w.lines) > 0: // taken out by hand
		i := rapid.IntRange(0, len(w.lines)-1).Draw(w.rt, "line")
		w.gone = append(w.gone, w.lines[i])
		w.lines = slices.Delete(w.lines, i, i+1)
		w.file("MEMORIES.txt", "# mine\n"+strings.Join(w.lines, "\n")+"\n")
	case what == 6:
		w.tasks = append(w.tasks, w.addTask(5, "something to do"))
	case what == 7 && len(w.tasks) > 0:
		expect.Must(w.world.tasks.Complete(w.t.Context(), w.caller(), w.tasks[0].ID, "it is done"))(w.t)
		w.tasks = w.tasks[1:]
	case what == 8:
		w.now = w.now.Add(20 * time.Hour)
	case what == 9:
		w.restart()
	case what == 10:
		w.change("goal", &w.goal)
	case what == 11:
		w.change("step", &w.steps)
	case what == 12:
		pin := []string{w.pin}
		w.change("pin", &pin)
		w.pin = strings.Join(pin, "")
	case what == 13:
		summary := []string{w.summary}
		w.change("summary", &summary)
		w.summary = strings.Join(summary, "")
	}
}

// change replaces the text in *now by something new, or by nothing.
func (w *walk) change(what string, now *[]string) {
	w.old = append(w.old, *now...)
	*now = nil
	if rapid.Bool().Draw(w.rt, what) {
		w.number++
		*now = []string{fmt.Sprintf("%s %d of %s.", what, w.number, w.room)}
	}
}

// checkGoal checks that goal, steps, current task and summary are in the request, and that outdated
// ones are presented as current neither in the prefix nor in the last block of their kind.
func (w *walk) checkGoal(request, blocks string) {
	now := slices.Concat(w.goal, w.steps, []string{w.pin, w.summary})
	for _, s := range now {
		if !strings.Contains(blocks, s) {
			w.rt.Fatalf("%q holds, but does not stand in\n%s", s, request)
		}
	}
	prefix := w.world.last[0].Content
	for _, s := range w.old {
		if s == "" {
			continue
		}
		if strings.Contains(prefix, s) {
			w.rt.Fatalf("%q holds no more, but stands in the prefix of\n%s", s, request)
		}
	}
	for title, want := range map[string]string{"Goal steps now:": strings.Join(w.steps, ""), "Current Task:": w.pin} {
		i := strings.LastIndex(blocks, title)
		if i < 0 {
			continue
		}
		shown, _, _ := strings.Cut(blocks[i:], closeNote("k3f9"))
		shown, _, _ = strings.Cut(shown, "\nCurrent Task:") // which may follow in the same note
		for _, s := range w.old {
			if s != "" && s != want && strings.Contains(shown, s) {
				w.rt.Fatalf("%q holds no more, but was shown last in\n%s", s, request)
			}
		}
	}
}

// request has a message answered, sometimes with a tool call and sometimes after a failed attempt.
func (w *walk) request(tool bool) {
	w.tells("Hello")
	w.check()
	if tool {
		w.callsTool("append_memory", "{}")
		w.number++
		if rapid.Bool().Draw(w.rt, "edit") { // an epoch begins in the middle of the turn
			w.file("BASE_PROMPT.txt", fmt.Sprintf("You are {agent_name}, edition %d.\n", w.number))
		}
		if rapid.Bool().Draw(w.rt, "midnight") {
			w.now = w.now.Add(20 * time.Hour)
		}
		line := fmt.Sprintf("fact %d of %s.", w.number, w.room)
		w.remembers(line)
		w.lines = append(w.lines, line)
		w.result("Remembered:\n" + line)
		w.send()
		w.check()
		if rapid.Bool().Draw(w.rt, "retry") {
			w.retries()
			w.send()
			w.check()
		}
	}
	w.answers("Well.")
}

func (w *walk) check() {
	if e := w.sent.Report.Epoch; e.New && e.Reason == "new day" && w.sent.History[len(w.sent.History)-1].Role == llm.Tool {
		w.rt.Fatalf("a new day ended the epoch in the middle of a turn")
	}
	request := flat(w.world.last)
	var blocks strings.Builder // what the program itself says
	for i, m := range w.world.last {
		if m.Role == llm.System {
			blocks.WriteString(m.Content)
		}
		if _, note, ok := strings.Cut(m.Content, openNote("k3f9")); ok && i > 0 {
			blocks.WriteString(note)
		}
	}
	for _, l := range w.lines {
		if !strings.Contains(request, l) {
			w.rt.Fatalf("%q is remembered, but stands nowhere in\n%s", l, request)
		}
		if n := strings.Count(blocks.String(), l); n > 1 {
			w.rt.Fatalf("%q is told %d times in\n%s", l, n, request)
		}
	}
	for _, l := range w.gone {
		if strings.Contains(blocks.String(), l) {
			w.rt.Fatalf("%q was taken out, but is still told in\n%s", l, request)
		}
	}
	w.checkGoal(request, blocks.String())
	shown := ""
	if i := strings.LastIndex(request, "Active tasks now:\n"); i >= 0 {
		shown, _, _ = strings.Cut(request[i:], closeNote("k3f9"))
	}
	for _, made := range w.tasks {
		if !strings.Contains(shown, made.ID+":") {
			w.rt.Fatalf("%s is open, but not shown last in\n%s", made.ID, request)
		}
	}
	if n := strings.Count(shown, "[P5]"); n != len(w.tasks) {
		w.rt.Fatalf("%d tasks are shown last, %d are open:\n%s", n, len(w.tasks), request)
	}
	if err := checkFences(request, "k3f9"); err != nil {
		w.rt.Fatalf("%v in\n%s", err, request)
	}
}

// edited is a file that people edit, and a function of its content.
type edited struct {
	name string
	text string // of it, with %s
}

var editedFiles = []edited{
	{"SOUL.md", "%s"}, {"AGENTS.md", "%s"}, {"TOOLS.md", "%s"}, {"COMMANDS.md", "%s"}, {"AGENT.md", "%s"}, {"PREFERENCES.md", "%s"},
	{"USER.md", "%s"}, {"BASE_PROMPT.txt", "<!-- section: core requires: always -->\n%s\n"}, {"prompts/assistant/tier3.txt", "%s"},
	{"prompts/tools/task.txt", "%s"}, {"prompts/SANITY.txt", "%s"}, {"skills/one.md", "# %s\n"}, {"skills/two/SKILL.md", "# %s\n"},
	{"skills/three.md", "# %s\n"}, {"MEMORIES.txt", "%s\n"}, {"memories/shared.txt", "%s\n"},
}

// TestEditsCountAtOnce: the next prompt shows any edit of a prompt file, however recent.
func TestEditsCountAtOnce(t *testing.T) {
	w := newWorld(t, Stable)
	w.mode, w.tier = "assistant", 3
	w.asks("Hello")
	w.says("And now?")
	path := func(name string) string { return filepath.Join(w.dir, filepath.FromSlash(name)) }
	write := func(to string, f edited, words string) { w.file(to, fmt.Sprintf(f.text, words)) }
	inPlace := func(f edited, words string) {
		w.must(os.WriteFile(path(f.name), fmt.Appendf(nil, f.text, words), 0o600))
	}
	steps := []struct {
		what  string
		words string // "" = none
		do    func(f edited, words string)
	}{
		{"made", "first of", func(f edited, words string) { write(f.name, f, words) }},
		{"written to", "second of", inPlace},
		{"written to, with its old time", "third of", func(f edited, words string) {
			info := expect.Must(os.Stat(path(f.name)))(w.t)
			inPlace(f, words)
			w.must(os.Chtimes(path(f.name), info.ModTime(), info.ModTime()))
		}},
		{"replaced", "fifth of", func(f edited, words string) {
			write("new", f, words)
			w.must(os.Rename(path("new"), path(f.name)))
		}},
		{"removed", "", func(f edited, _ string) { w.must(os.Remove(path(f.name))) }},
		{"made again", "latest of", func(f edited, words string) { write(f.name, f, words) }},
	}
	was := ""
	for _, step := range steps {
		for _, f := range editedFiles {
			step.do(f, step.words+" "+f.name+".")
		}
		text := said(w)
		for _, f := range editedFiles {
			memories := f.text == "%s\n"
			if words := step.words + " " + f.name + "."; step.words != "" && !strings.Contains(text, words) {
				t.Errorf("%s: the prompt lacks %q", step.what, words)
			}
			// A file of memories that is gone takes none with it.
			if words := was + " " + f.name + "."; was != "" && (step.words != "" || !memories) && strings.Contains(text, words) {
				t.Errorf("%s: the prompt still has %q", step.what, words)
			}
		}
		was = step.words
	}
}

// said returns the prompts of three layouts now; a single one lacks some files.
func said(w *world) string {
	w.t.Helper()
	turn := w.turn()
	turn.Window = 0
	var all []string
	for _, turn.Layout = range []Layout{Stable, Classic, tiered} {
		p := w.assembles(turn)
		all = append(all, flat(p.Messages()))
	}
	return strings.Join(all, "\n")
}
