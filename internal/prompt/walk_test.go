package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/llm"
	"reverie/internal/task"
)

// TestAnyConversation walks at random through what can happen in a room. After
// every request (send checks that it extends the one before, or that a new
// epoch says why not): everything remembered stands in it, in the prefix or
// later; a line that was taken out stands in no block of the program; the tasks
// shown last are those that are open; all fences are closed.
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
		_, err := w.world.tasks.Complete(w.t.Context(), w.caller(), w.tasks[0].ID, "it is done")
		w.must(err)
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

// change puts something new in the place of what *now says, or nothing.
func (w *walk) change(what string, now *[]string) {
	w.old = append(w.old, *now...)
	*now = nil
	if rapid.Bool().Draw(w.rt, what) {
		w.number++
		*now = []string{fmt.Sprintf("%s %d of %s.", what, w.number, w.room)}
	}
}

// checkGoal makes sure that goal, steps, current task and summary stand in the
// request, and that what held before is nowhere said to hold now: not in the
// prefix, and not in the block of its kind that came last.
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

// request has a message answered, perhaps with a tool call and perhaps with a
// failed attempt in between.
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
