package session

import (
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
	for query, want := range map[string]map[string]trust.Integrity{
		`SELECT scope, integrity FROM memory`:       {"private:" + owner: trust.Owner, "private:" + friend: trust.User},
		`SELECT sender, integrity FROM memory_turn`: {owner: trust.Owner, friend: trust.User},
	} {
		rows := result(w.cfg.DB.Query(query))(t)
		n := 0
		for rows.Next() {
			var whose string
			var got trust.Integrity
			must(t, rows.Scan(&whose, &got))
			if n++; whose == "" { // an answer is trusted as what it was made from
				want[whose] = max(got, trust.User)
			}
			if got != want[whose] {
				t.Errorf("%s: %q is %v", query, whose, got)
			}
		}
		if err := rows.Close(); err != nil || n < 2 {
			t.Errorf("%s: %d rows, %v", query, n, err)
		}
	}
}
