package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// heard waits until n messages can be found again, and returns them in order.
func (w *world) heard(t *testing.T, n int) (all []string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		all = w.column(t, `SELECT scope || ' ' || sender || ': ' || text FROM memory_turn ORDER BY seq`)
		if len(all) >= n || time.Now().After(end) {
			return all
		}
	}
}

// TestConversationsAreFoundAgain: what was said stands in the request of a later
// conversation that asks for it, if it is the same person's or the same room's.
func TestConversationsAreFoundAgain(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FTS5, 16_000, "Noted: zanzibar.")
	w.say(t, "$1", "The code word of my locker is zanzibar.")
	w.heard(t, 2)
	w.say(t, "$1", "The code word of my locker is zanzibar.") // delivered again
	w.say(t, "$2", "!new")
	w.say(t, "$3", "What was the code word of my locker?")
	asked := w.script.asked()
	last := asked[len(asked)-1]
	if !strings.Contains(last, "Recalled for this message:") || !strings.Contains(last, owner+" said: The code word of my locker is zanzibar.") ||
		!strings.Contains(last, "after: "+time.Now().UTC().Format(time.DateOnly)+", you said: Noted: zanzibar.") {
		t.Errorf("not recalled: %s", last)
	}
	got := w.heard(t, 4)
	want := []string{"private:" + owner + " " + owner + ": The code word of my locker is zanzibar.", "private:" + owner + " : Noted: zanzibar.",
		"private:" + owner + " " + owner + ": What was the code word of my locker?", "private:" + owner + " : fine"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("heard:\n%s", strings.Join(got, "\n"))
	}
	for i, in := range []Inbound{
		{Room: "!group", Sender: owner, Text: "What was the code word of my locker?"},
		{Room: "!dm2", Sender: "@friend:example.org", Text: "What was the code word of the locker?", Private: true},
	} {
		in.ID, in.At = fmt.Sprintf("$other%d", i), time.Now()
		w.deliver(t, in)
		asked := w.script.asked()
		lacks(t, asked[len(asked)-1], "zanzibar")
	}
	if got := w.heard(t, 8); !strings.HasPrefix(got[len(got)-1], "room:") && !strings.HasPrefix(got[len(got)-1], "private:@friend") {
		t.Errorf("heard:\n%s", strings.Join(got, "\n"))
	}
}

// TestHeardAfterInterruption: what could not be kept before the program died is
// kept later, for those before whom it was said; what was taken back is not.
func TestHeardAfterInterruption(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FTS5, 16_000)
	for i, m := range []history.Message{
		{Role: llm.User, EventID: "$1", Sender: owner, Text: "between us two", Header: "[Sat 2026-11-21 08:14 CET]"},
		{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "c", Name: "task", Arguments: `{"action":"list"}`}}},
		{Role: llm.Tool, CallID: "c", Text: "no tasks"},
		{Role: llm.Assistant, EventID: "re:$1", Text: "nobody else"},
		{Role: llm.User, EventID: "$2", Sender: owner, Text: "[taken back]", Header: "[Sat 2026-11-21 08:15 CET]"},
		{Role: llm.User, Text: "Tidy up the tasks.", Header: "[Sat 2026-11-21 08:16 CET, system event]"},
		{Role: llm.Assistant, EventID: "re:$e", Text: "tidied"},
	} {
		m.Room, m.At = "!dm", time.Now().Add(time.Duration(i-10)*time.Minute)
		m.Label = trust.Label{Integrity: trust.Owner, Readers: trust.Person(owner)}
		must(t, w.cfg.History.Append(t.Context(), &m))
	}
	w.deliver(t, Inbound{ID: "$3", Room: "!dm", Sender: owner, Text: "before everybody", At: time.Now()}) // it has become a group
	got := strings.Join(w.heard(t, 4), "\n")
	want := "private:" + owner + " " + owner + ": between us two\nprivate:" + owner + " : nobody else\nroom:!dm " + owner + ": before everybody\nroom:!dm : fine"
	if got != want {
		t.Errorf("heard:\n%s\nwant:\n%s", got, want)
	}
}

// TestUseIsCounted: a memory counts as used when the answer has something of it
// that the question did not, not when it was only shown.
// Holds W12.
func TestUseIsCounted(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FTS5, 16_000, "She lives in Brno.", "I do not know where Jana lives.", "The number is 4711.", "It costs 900 crowns.")
	for _, text := range []string{"Ada's sister Jana lives in Brno.", "The tram pass has the number 4711.", "The piano cost 900 crowns."} {
		w.known(t, memory.Private(owner), text)
	}
	hits := func(want string) {
		t.Helper()
		var got string
		for end := time.Now().Add(30 * time.Second); got != want && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			must(t, w.cfg.DB.QueryRow(`SELECT group_concat(hits, ' ') FROM (SELECT hits FROM memory ORDER BY n)`).Scan(&got))
		}
		if got != want {
			t.Errorf("hits = %s, want %s", got, want)
		}
	}
	w.say(t, "$1", "Where does Jana live, my sister?")
	hits("1 0 0")
	w.say(t, "$2", "Where does Jana live, my sister?")
	w.say(t, "$3", "And the tram pass?")
	hits("1 1 0") // not 2 1 0: the second answer used nothing
	w.say(t, "$4", "What do 900 crowns buy?")
	w.heard(t, 8)
	hits("1 1 0") // the question brought the number itself
}
