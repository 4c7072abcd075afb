package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory"
)

// TestPace: who writes as a program does is found out, and people are not.
// Holds F37, M38.
func TestPace(t *testing.T) {
	const work = 3 * time.Second // an answer takes so long
	say := func(gap time.Duration, text string) func(i int) (time.Duration, string) {
		return func(i int) (time.Duration, string) {
			return gap, strings.ReplaceAll(text, "#", fmt.Sprint("nr", strings.Repeat("x", i)))
		}
	}
	for _, c := range []struct {
		name  string
		group bool
		of    func(i int) (after time.Duration, text string) // after our last answer
		n     int
		stops int // at this message; 0 = never
	}{
		{"fast loop", true, say(500*time.Millisecond, "# # # something new"), 30, 9},
		{"fast loop in a direct chat", false, say(time.Second, "# # # something new"), 30, 9},
		{"loop that says the same", false, say(10*time.Second, "I am sorry, but I cannot do that for you"), 30, 9},
		{"loop that says nearly the same", false, say(10*time.Second, "I am sorry, but I cannot do request # for you"), 30, 9},
		{"slow loop in a group", true, say(7*time.Second, "# # # something new"), 60, 21},
		{"a person talks", true, say(25*time.Second, "# # # something new"), 200, 0},
		{"a person talks quickly, alone", false, say(4*time.Second, "# # # something new"), 200, 0},
		{"a person writes while the answer is made", false, say(-time.Second, "# # # something new"), 100, 0},
		{"a person says next", false, say(5*time.Second, "next"), 200, 0},
		{"a person hurries now and then", true, func(i int) (time.Duration, string) {
			if i%5 == 0 {
				return 20 * time.Second, "now something else # # #"
			}
			return time.Second + time.Duration(i%5)*10*time.Second, fmt.Sprint("quick ", strings.Repeat("y", i))
		}, 200, 0},
		{"a person asks the same each hour", true, say(time.Hour, "what is the weather like today?"), 100, 0},
	} {
		p, now := &pace{}, time.Unix(1_800_000_000, 0)
		stopped := 0
		for i := range c.n {
			after, text := c.of(i)
			now = now.Add(after)
			answer, stops := p.hears(fmt.Sprint(i), text, now, c.group)
			if stops {
				stopped = i + 1
				break
			}
			if !answer {
				t.Fatalf("%s: message %d is not answered", c.name, i)
			}
			now = now.Add(work)
			p.answeredAt = now
		}
		if stopped != c.stops {
			t.Errorf("%s: stops at %d, want %d", c.name, stopped, c.stops)
		}
	}
}

// TestPaceHolds: it lasts ten minutes, then longer each time, and a pause of a minute ends
// it; a message that is delivered again is no other one.
func TestPaceHolds(t *testing.T) {
	p, now, n := &pace{}, time.Unix(1_800_000_000, 0), 0
	next := func(after time.Duration) (answer, stops bool) {
		now, n = now.Add(after), n+1
		answer, stops = p.hears(fmt.Sprint(n), "", now, true)
		if answer {
			p.answeredAt = now
		}
		return answer, stops
	}
	held := func() (for_ time.Duration) {
		t.Helper()
		for range 100 {
			if _, stops := next(time.Second); stops {
				begun := now
				if again, once := p.hears(fmt.Sprint(n), "", now.Add(time.Hour), true); again || !once {
					t.Errorf("delivered again: %v %v", again, once)
				}
				for {
					if answer, stops := next(10 * time.Second); answer {
						return now.Sub(begun)
					} else if stops {
						t.Fatal("it stops twice")
					}
				}
			}
		}
		t.Fatal("it does not stop")
		return 0
	}
	for _, want := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute} {
		if got := held(); got != want {
			t.Errorf("it lasts %v, want %v", got, want)
		}
	}
	for range 100 {
		if _, stops := next(time.Second); stops {
			break
		}
	}
	if answer, _ := next(30 * time.Second); answer {
		t.Error("half a minute is a pause")
	}
	if answer, _ := next(time.Minute); !answer || p.holds != 0 {
		t.Errorf("a pause does not end it; %+v", p)
	}
}

// TestLoopIsBroken: another program is answered no more, the room is told once, commands
// work all along, a restart changes nothing, and somebody else, or !retry, ends it.
// Holds F37, M38.
func TestLoopIsBroken(t *testing.T) {
	dir := t.TempDir()
	w := newWorldOf(t, dir, memory.FlatFile, 16_000)
	w.inGroup()
	n := 0
	say := func(w *world, from, text string) Outgoing {
		t.Helper()
		n++
		return w.deliver(t, Inbound{ID: fmt.Sprint("$", n), Room: "!group", Sender: from, Text: text, At: time.Now()})
	}
	loop := func(w *world) (told Outgoing, asked int) {
		t.Helper()
		for range 20 {
			before := len(w.script.asked())
			if told = say(w, friend, fmt.Sprint("hello, number ", n)); len(w.script.asked()) == before {
				return told, before
			}
		}
		t.Fatal("the loop goes on")
		return Outgoing{}, 0
	}
	told, asked := loop(w)
	if asked != mostHasty || !told.Notice || !strings.Contains(told.Text, friend) || !strings.Contains(told.Text, "!retry") {
		t.Errorf("after %d answers the room reads %+v", asked, told)
	}
	if again := say(w, friend, "hello?"); again.Text != "" || len(w.script.asked()) != asked {
		t.Errorf("told twice: %+v", again)
	}
	wants(t, say(w, friend, "!stop").Text, "nothing to stop")
	w.stop()
	w = newWorldOf(t, dir, memory.FlatFile, 16_000)
	w.inGroup()
	if got := say(w, friend, "hello, number 99"); got.Text != "" || len(w.script.asked()) > 0 {
		t.Errorf("after a restart: %+v", got)
	}
	equal(t, say(w, friend, "!retry").Text, "fine")
	equal(t, say(w, friend, "thanks").Text, "fine")
	loop(w)
	equal(t, say(w, owner, "what is going on?").Text, "fine")
	equal(t, say(w, friend, "hello again").Text, "fine")
	for range 30 { // an owner is a person
		if got := say(w, owner, "the very same words again"); got.Text != "fine" {
			t.Fatalf("an owner is not answered: %+v", got)
		}
	}
}

// TestTwoPrograms: programs do not have each other answered.
// Holds F37, M38.
func TestTwoPrograms(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FlatFile, 16_000)
	w.inGroup()
	w.cfg.Allowed = func(string) bool { return true }
	for i := range 60 { // one begins to answer the other later
		w.deliver(t, Inbound{ID: fmt.Sprint("$", i), Room: "!group", Sender: []string{friend, friend, "@other:example.org"}[i%3], Text: fmt.Sprint("hello, number ", i), At: time.Now()})
	}
	if asked := len(w.script.asked()); asked > 2*(mostHasty+1) {
		t.Errorf("%d answers", asked)
	}
}

// TestTenLinesAreNoLoop: what a person writes in a burst is one message.
func TestTenLinesAreNoLoop(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FlatFile, 16_000)
	w.inGroup()
	release := make(chan struct{})
	w.script.block = release
	for i := range 12 {
		must(t, w.Deliver(t.Context(), Inbound{ID: fmt.Sprint("$", i), Room: "!dm", Private: true, Sender: friend, Text: fmt.Sprint("line ", i), At: time.Now()}))
	}
	close(release)
	for range 12 {
		<-w.room.handled
	}
	for id, m := range w.room.final {
		if m.Notice {
			t.Errorf("%s: %+v", id, m)
		}
	}
}
