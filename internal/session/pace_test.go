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
	for _, c := range []struct {
		name     string
		most     int
		gap      time.Duration // after our last answer
		pause    int           // a pause after so many; 0 = never
		messages int
		stops    int // at this message; 0 = never
	}{
		{"fast loop", mostInGroup, time.Second / 2, 0, 60, mostInGroup + 1},
		{"loop in a direct chat", mostInDirect, time.Second, 0, 300, mostInDirect + 1},
		{"a person talks", mostInGroup, 25 * time.Second, 15, 200, 0},
		{"a person talks for long, alone", mostInDirect, 4 * time.Second, 90, 400, 0},
	} {
		p, now, stopped := &pace{}, time.Unix(1_800_000_000, 0), 0
		for i := range c.messages {
			now = now.Add(c.gap)
			if c.pause > 0 && i%c.pause == 0 {
				now = now.Add(calmGap)
			}
			answer, stops := p.hears(fmt.Sprint(i), now, c.most)
			if again, _ := p.hears(fmt.Sprint(i), now.Add(time.Hour), c.most); again != answer {
				t.Fatalf("%s: message %d is answered %v, and tried again, %v", c.name, i, answer, again)
			}
			if stops {
				stopped = i + 1
			}
			if want := c.stops == 0 || i+1 < c.stops; answer != want {
				t.Fatalf("%s: message %d is answered: %v", c.name, i+1, answer)
			}
			if answer {
				now = now.Add(work)
				p.at = now
			}
		}
		if stopped != c.stops {
			t.Errorf("%s: stops at %d, want %d", c.name, stopped, c.stops)
		}
		if answer, _ := p.hears("later", now.Add(calmGap), c.most); !answer {
			t.Errorf("%s: a pause does not end it", c.name)
		}
	}
}

// TestLoopIsBroken: another program is answered no more, the room is told once, commands
// work all along, others are answered, and !retry ends it.
// Holds F37, M38.
func TestLoopIsBroken(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FlatFile, 16_000)
	w.inGroup()
	n := 0
	say := func(from, text string) Outgoing {
		t.Helper()
		n++
		return w.deliver(t, Inbound{ID: fmt.Sprint("$", n), Room: "!group", Sender: from, Text: text, At: time.Now()})
	}
	for range mostInGroup {
		equal(t, say(friend, "hello").Text, "fine")
	}
	told := say(friend, "hello")
	if asked := len(w.script.asked()); asked != mostInGroup || !told.Notice || !strings.Contains(told.Text, friend) || !strings.Contains(told.Text, "!retry") {
		t.Errorf("after %d answers the room reads %+v", asked, told)
	}
	if again := say(friend, "hello?"); again.Text != "" || len(w.script.asked()) != mostInGroup {
		t.Errorf("told twice: %+v", again)
	}
	wants(t, say(friend, "!stop").Text, "nothing to stop")
	for range mostInGroup + 2 { // an owner is a person
		equal(t, say(owner, "the very same words again").Text, "fine")
	}
	equal(t, say(friend, "hello?").Text, "")
	equal(t, say(friend, "!retry").Text, "fine")
	equal(t, say(friend, "thanks").Text, "fine")
}
