package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reverie/internal/history"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSteeringCounters: whatever happens in a room, with messages that a summary or a
// small window takes away, with restarts, retries, new conversations and answers that
// never come, the counters are what a tally of all that ever happened says; no message
// gets more than three notes; and none comes again before it has rested.
func TestSteeringCounters(t *testing.T) {
	w := newWorld(t, Stable)
	runs, noted, cut := 0, map[string]int{}, 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		w.room, w.last, w.window = fmt.Sprintf("!room%d:example.org", runs), nil, 0
		w.goal, w.steps = nil, nil
		w.restart()
		if rapid.Bool().Draw(rt, "goal") {
			w.goal, w.steps = []string{"Ship it."}, []string{"one"}
		}
		if rapid.Bool().Draw(rt, "tasks") {
			w.addTask(5, "something to do")
		}
		c := &course{world: w, rt: rt, noted: noted, last: map[string]when{}}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			c.step()
			if t.Failed() {
				rt.Fatalf("see above")
			}
		}
		cut += c.cut
	})
	t.Logf("notes %v; messages left out %d", noted, cut)
	for _, name := range []string{"repeat", "errors", "recovered", "keep", "promised"} { // the others take long: TestRules
		if noted[name] == 0 {
			t.Errorf("%s never came: this test says nothing of it", name)
		}
	}
	if cut == 0 {
		t.Error("no window left anything out")
	}
}

// tally is what the counters should say: it is kept as things happen, in one go, and nothing
// of it is ever stored, taken away or counted again.
type tally struct {
	counters
	open       bool // the turn has no answer yet
	personally bool // the person spoke of themself in it
	call       string
	loop       int // times that rounds of tools began
}

// when a note came last.
type when struct {
	turn, loop, round int
	message           int64
}

type course struct {
	*world
	rt    *rapid.T
	now   tally
	seen  tally // when a model was asked last
	noted map[string]int
	last  map[string]when
	cut   int
}

func (c *course) draw(what string, most int) int { return rapid.IntRange(0, most).Draw(c.rt, what) }

// note counts what happened: something was said, an event, called, worked, failed, answered,
// compacted or retried. text is what was said, or the call.
func (c *course) note(what, text string) {
	n := &c.now
	if what == "event" || what == "retried" || what == "said" && !n.open {
		n.loop++
		n.Rounds, n.Errors, n.Same, n.call = 0, 0, 0, ""
	}
	switch what {
	case "said":
		if !n.open {
			n.Asked, n.personally = false, false
			for _, count := range []*int{&n.Turn, &n.Turns, &n.SinceTool, &n.SinceMemory, &n.SinceTask} {
				*count++
			}
		}
		n.Asked = n.Asked || strings.HasPrefix(text, "Remember")
		if !n.personally && strings.HasPrefix(text, "My") {
			n.personally = true
			n.Personal++
		}
	case "called":
		n.Rounds++
		if n.call != text {
			n.call, n.Same = text, 0
		}
		n.Same++
	case "worked":
		n.Errors, n.SinceTool = 0, 0
		switch text {
		case "append_memory {}":
			n.SinceMemory, n.Personal = 0, 0
		case "task {}":
			n.SinceTask = 0
		}
	case "failed":
		n.Errors++
	case "compacted":
		n.Compactions++
		return
	}
	n.open = what == "said" || what == "retried"
}

func (c *course) step() {
	switch c.draw("step", 11) {
	case 0, 1, 2, 3, 4, 5:
		c.exchange()
	case 6:
		if len(c.turn().History) > 0 {
			c.note("compacted", "")
			c.seen = c.now
			c.compacts(1 + c.draw("keep", 5))
		}
	case 7:
		c.restart()
	case 8:
		c.window = []int{0, 1400, 3000}[c.draw("window", 2)]
		c.world.last = nil
	case 9:
		c.world.event("Tidy up.")
		c.note("event", "")
		c.request()
		c.loop()
		c.world.answers("Done.")
		c.note("answered", "event")
	case 10:
		c.startsNew()
		c.seen = tally{counters: counters{Turn: c.seen.Turn}, loop: c.now.loop} // what no model was asked about is no turn
		c.now = c.seen
		for _, r := range rules {
			if r.phase == inLoop || r.once != nil {
				delete(c.last, r.name)
			}
		}
	case 11: // to look at
		c.previews()
	}
}

// exchange is what a person says, and what comes of it.
func (c *course) exchange() {
	for range 1 + c.draw("messages", 5)/5 {
		text := rapid.SampledFrom([]string{"Hello.", "My cat is hungry.", "Remember that it is so.", "Why?"}).Draw(c.rt, "text")
		c.says(text)
		c.note("said", text)
	}
	if c.draw("unsent", 9) == 0 {
		return
	}
	c.request()
	c.loop()
	if c.draw("retry", 5) == 0 {
		c.retries()
		c.note("retried", "")
		c.request()
		c.loop()
	}
	if c.draw("fails", 5) == 0 {
		return
	}
	c.answers(rapid.SampledFrom([]string{"Well.", "I'll remember that.", strings.Repeat("words, ", 300)}).Draw(c.rt, "answer"))
	c.note("answered", "")
}

// loop is some rounds of tools.
func (c *course) loop() {
	rounds := c.draw("rounds", 7) - 3
	for range rounds {
		call := rapid.SampledFrom([]string{"append_memory {}", "task {}", "read_file {}", "read_file {\"path\":\"a\"}"}).Draw(c.rt, "call")
		name, args, _ := strings.Cut(call, " ")
		c.callsTool(name, args)
		c.note("called", call)
		if c.draw("outcome", 2) == 0 {
			c.fails("no")
			c.note("failed", call)
		} else {
			c.result("yes")
			c.note("worked", call)
		}
		c.request()
	}
}

// request sends, and compares.
func (c *course) request() {
	c.send()
	c.seen = c.now
	c.cut += c.sent.Report.History.LeftOut
	if c.draw("crash", 9) == 0 { // and the same again
		c.restart()
		if p := c.send(); p.Tail != "" {
			c.rt.Fatalf("sent again, it gets %q", p.Tail)
		}
		return
	}
	seen := func(c *counters) counters {
		return counters{Turn: c.Turn, Turns: c.Turns, Compactions: c.Compactions, SinceTool: c.SinceTool, SinceMemory: c.SinceMemory,
			SinceTask: c.SinceTask, Personal: c.Personal, Asked: c.Asked, Rounds: c.Rounds, Errors: c.Errors, Same: c.Same}
	}
	if diff := cmp.Diff(seen(&c.now.counters), seen(c.counted())); diff != "" {
		c.rt.Fatalf("counters (-want +got):\n%s", diff)
	}
	c.rest()
}

// rest looks at the notes of the newest message.
func (c *course) rest() {
	notes := c.notes()
	if len(notes) > 3 {
		c.rt.Fatalf("%d notes: %v", len(notes), notes)
	}
	past := c.turn().History
	now := when{c.now.Turn, c.now.loop, c.now.Rounds, past[len(past)-1].ID}
	for _, name := range notes {
		r := rules[rank(name)]
		last, came := c.last[name]
		stands := slices.ContainsFunc(past, func(m history.Message) bool { return m.ID == last.message })
		// In force and told anew, or of the very message: it is answered again with the note it has.
		again := last.turn == now.turn && (c.sent.Report.Epoch.New || !stands) || last.message == now.message
		c.noted[name]++
		switch {
		case !came || again:
		case r.once != nil:
			if last.loop == c.now.Compactions {
				c.rt.Fatalf("%s came twice after one summary", name)
			}
		case r.phase == inLoop:
			if last.loop == now.loop && now.round-last.round < r.rest {
				c.rt.Fatalf("%s came in round %d and in %d", name, last.round, now.round)
			}
		case now.turn-last.turn < r.rest:
			c.rt.Fatalf("%s came in turn %d and in %d", name, last.turn, now.turn)
		}
		if !again {
			c.last[name] = now
		}
		if r.once != nil {
			c.last[name] = when{turn: now.turn, loop: c.now.Compactions, message: now.message}
		}
	}
}
