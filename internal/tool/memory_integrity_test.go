package tool

import (
	"testing"

	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

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
		least := trust.Owner
		scope := Scope{saw: &least}
		for _, h := range c.hits {
			scope.Shows(h.Integrity())
		}
		if least != c.want {
			t.Errorf("%v, want %v", least, c.want)
		}
	}
}

// TestStoredIntegrity: what tools note or put together is trusted as all that stands in the
// prompt, and no more than what it was put together from.
func TestStoredIntegrity(t *testing.T) {
	w := newWorkshop(t)
	of := func(i trust.Integrity) Scope {
		s := direct()
		s.Label = trust.Label{Integrity: i, Readers: s.Place().Readers()}
		s.Granted = map[string]bool{s.act(llm.ToolCall{Name: "append_memory", Arguments: "{}"}).Covers: true}
		return s
	}
	last := func() memory.Entry {
		all, err := w.cfg.Memory.List(t.Context(), memory.Access{All: true}, memory.Filter{Last: 1})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	for i, text := range map[trust.Integrity]string{trust.Foreign: "Jana likes green herons", trust.User: "Jana likes grey herons",
		trust.Owner: "Jana likes white herons"} {
		w.ok(t, of(i), "append_memory", `{"entry": "`+text+`"}`)
		e := last()
		if e.Text != text || e.Integrity != max(i, trust.Guest) { // under a leave nothing is foreign
			t.Errorf("noted: %+v", e)
		}
	}
}
