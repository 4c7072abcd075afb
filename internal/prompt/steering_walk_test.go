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
// never come, the counters are what a list of all that ever happened says; no message
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

// what happened, in words that differ from the counters'.
type happened struct {
	what string // said, event, called, worked, failed, answered, compacted, retried
	text string // said; called and worked: the call
}

// when a note came last.
type when struct {
	turn, loop, round int
	message           int64
}

type course struct {
	*world
	rt     *rapid.T
	all    []happened // in this conversation, nothing ever taken away
	before int        // turns of earlier conversations
	noted  map[string]int
	last   map[string]when
	cut    int
	seen   int // so much of all had happened when a model was asked last
}

func (c *course) draw(what string, most int) int { return rapid.IntRange(0, most).Draw(c.rt, what) }

func (c *course) note(what, text string) { c.all = append(c.all, happened{what, text}) }

func (c *course) step() {
	switch c.draw("step", 11) {
	case 0, 1, 2, 3, 4, 5:
		c.exchange()
	case 6:
		if len(c.turn().History) > 0 {
			c.note("compacted", "")
			c.seen = len(c.all)
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
		c.all = c.all[:c.seen] // what no model was asked about is no turn
		c.before += c.turns()
		c.seen = 0
		c.all, c.world.last = nil, nil
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
	c.seen = len(c.all)
	c.cut += c.sent.Report.History.LeftOut
	if c.draw("crash", 9) == 0 { // and the same again
		c.restart()
		if p := c.send(); p.Tail != "" {
			c.rt.Fatalf("sent again, it gets %q", p.Tail)
		}
		return
	}
	got := *c.counted()
	want := counters{Turn: c.before + c.turns(), Turns: c.turns(), Compactions: c.count(0, "compacted"),
		SinceTool: c.turnsFrom(c.latest("worked", "")), SinceMemory: c.turnsFrom(c.latest("worked", "append_memory {}")),
		SinceTask: c.turnsFrom(c.latest("worked", "task {}")), Personal: c.personalTurns(), Asked: c.asked(),
		Rounds: c.count(c.loopStart(), "called"), Errors: c.errorsInARow(), Same: c.sameInARow()}
	got = counters{Turn: got.Turn, Turns: got.Turns, Compactions: got.Compactions, SinceTool: got.SinceTool, SinceMemory: got.SinceMemory,
		SinceTask: got.SinceTask, Personal: got.Personal, Asked: got.Asked, Rounds: got.Rounds, Errors: got.Errors, Same: got.Same}
	if diff := cmp.Diff(want, got); diff != "" {
		c.rt.Fatalf("counters (-want +got):\n%s\nafter %v", diff, c.all)
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
	now := when{c.before + c.turns(), c.loopStart(), c.count(c.loopStart(), "called"), past[len(past)-1].ID}
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
			if last.loop == c.count(0, "compacted") {
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
			c.last[name] = when{turn: now.turn, loop: c.count(0, "compacted"), message: now.message}
		}
	}
}

// starts is where the turns of persons begin: with what is said after anything but
// what was said, or after it was to be answered anew.
func (c *course) starts() (at []int) {
	before := ""
	for i, h := range c.all {
		if h.what == "compacted" {
			continue
		}
		if h.what == "said" && before != "said" && before != "retried" {
			at = append(at, i)
		}
		before = h.what
	}
	return at
}

func (c *course) turns() int { return len(c.starts()) }

// turnsFrom counts the turns that began after all[i].
func (c *course) turnsFrom(i int) (n int) {
	for _, at := range c.starts() {
		if at > i {
			n++
		}
	}
	return n
}

// latest is the index of what happened last, -1 if it did not; call "" is any.
func (c *course) latest(what, call string) int {
	for i, h := range slices.Backward(c.all) {
		if h.what == what && (call == "" || h.text == call) {
			return i
		}
	}
	return -1
}

func (c *course) count(from int, what string) (n int) {
	for _, h := range c.all[from:] {
		if h.what == what {
			n++
		}
	}
	return n
}

// loopStart is where the newest rounds of tools began.
func (c *course) loopStart() int {
	from := max(0, c.latest("event", ""), c.latest("retried", ""))
	if at := c.starts(); len(at) > 0 {
		from = max(from, at[len(at)-1])
	}
	return from
}

func (c *course) errorsInARow() (n int) {
	for _, h := range c.all[c.loopStart():] {
		switch h.what {
		case "failed":
			n++
		case "worked":
			n = 0
		}
	}
	return n
}

func (c *course) sameInARow() (n int) {
	call := ""
	for _, h := range slices.Backward(c.all[c.loopStart():]) {
		if h.what != "called" {
			continue
		}
		if call != "" && h.text != call {
			return n
		}
		call = h.text
		n++
	}
	return n
}

// personalTurns counts the turns since the last memory in which the person first spoke
// of themself after it.
func (c *course) personalTurns() (n int) {
	at := c.starts()
	memory := c.latest("worked", "append_memory {}")
	for i, from := range at {
		to := len(c.all)
		if i+1 < len(at) {
			to = at[i+1]
		}
		first := slices.IndexFunc(c.all[from:to], func(h happened) bool { return h.what == "said" && strings.HasPrefix(h.text, "My") })
		if first >= 0 && from+first > memory {
			n++
		}
	}
	return n
}

// asked reports whether the newest turn asks to keep something.
func (c *course) asked() bool {
	at := c.starts()
	if len(at) == 0 {
		return false
	}
	return slices.ContainsFunc(c.all[at[len(at)-1]:], func(h happened) bool { return h.what == "said" && strings.HasPrefix(h.text, "Remember") })
}
