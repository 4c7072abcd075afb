package session

import (
	"fmt"
	"testing"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestRememberedIntegrity: what a person has remembered, and what was said, is trusted as
// its sender is.
func TestRememberedIntegrity(t *testing.T) {
	w := newWorldOf(t, t.TempDir(), memory.FTS5, 16_000, "Noted.")
	const friend = "@friend:example.org"
	for _, in := range []Inbound{
		{ID: "$1", Room: "!dm", Sender: owner, Text: "!remember the owner's tea", Private: true},
		{ID: "$2", Room: "!dm2", Sender: friend, Text: "!remember the friend's tea", Private: true},
		{ID: "$3", Room: "!dm2", Sender: friend, Text: "The harbour is nice.", Private: true},
		{ID: "$4", Room: "!dm", Sender: owner, Text: "The harbour is nice.", Private: true},
	} {
		w.deliver(t, in)
	}
	w.heard(t, 4)
	entries := w.column(t, `SELECT scope || ' ' || integrity FROM memory ORDER BY scope`)
	said := w.column(t, `SELECT DISTINCT sender || ' ' || integrity FROM memory_turn WHERE sender <> '' ORDER BY sender`)
	for i, of := range []string{fmt.Sprintf("%s %d", friend, trust.User), fmt.Sprintf("%s %d", owner, trust.Owner)} {
		if len(entries) != 2 || entries[i] != "private:"+of || len(said) != 2 || said[i] != of {
			t.Errorf("noted: %q, said: %q", entries, said)
		}
	}
	if least := value[trust.Integrity](t, w, `SELECT min(integrity) FROM memory_turn WHERE sender = ''`); least < trust.User {
		t.Errorf("the answers are %v", least) // they are trusted as what they were made from
	}
}
