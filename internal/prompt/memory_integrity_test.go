package prompt

import (
	"testing"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestEntriesIntegrity: a list of memories is as trusted as the least trusted of them.
func TestEntriesIntegrity(t *testing.T) {
	for _, c := range []struct {
		of   []trust.Integrity
		want trust.Integrity
	}{{nil, trust.Owner}, {[]trust.Integrity{trust.Owner, trust.User}, trust.User}, {[]trust.Integrity{trust.User, trust.Foreign, trust.Owner}, trust.Foreign}} {
		var entries []memory.Entry
		for _, i := range c.of {
			entries = append(entries, memory.Entry{Integrity: i})
		}
		if got := entriesIntegrity(entries); got != c.want {
			t.Errorf("%v: %v, want %v", c.of, got, c.want)
		}
	}
}

// TestHitsIntegrity: what search finds is as trusted as the least trusted memory or message
// that it shows, those before and after a message included.
func TestHitsIntegrity(t *testing.T) {
	said := func(i trust.Integrity, around ...trust.Integrity) memory.Hit {
		h := memory.Hit{Turn: &memory.Turn{Integrity: i}}
		for _, a := range around {
			h.Around = append(h.Around, memory.Turn{Integrity: a})
		}
		return h
	}
	fact := func(i trust.Integrity) memory.Hit { return memory.Hit{Entry: memory.Entry{Integrity: i}} }
	for _, c := range []struct {
		hits []memory.Hit
		want trust.Integrity
	}{
		{nil, trust.Owner},
		{[]memory.Hit{fact(trust.Owner), fact(trust.User)}, trust.User},
		{[]memory.Hit{fact(trust.Owner), said(trust.User)}, trust.User},
		{[]memory.Hit{fact(trust.User), said(trust.User, trust.Owner, trust.Foreign)}, trust.Foreign},
		{[]memory.Hit{said(trust.Guest, trust.Owner)}, trust.Guest},
	} {
		if got := hitsIntegrity(c.hits); got != c.want {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}
