package tool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/search"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// newest returns the newest entry.
func (w *workshop) newest(t *testing.T) memory.Entry {
	t.Helper()
	all := expect.Must(w.cfg.Memory.List(t.Context(), memory.Access{All: true}, memory.Filter{}))(t)
	return all[len(all)-1]
}

// TestWhatAnEntryIsAbout: the model may name the subject, in words of the entry.
func TestWhatAnEntryIsAbout(t *testing.T) {
	w := newWorkshop(t)
	for args, want := range map[string][2]string{
		`{"entry": "Jana lives in Brno"}`:                                               {"", "fact"},
		`{"entry": "Jana likes herons", "about": " jana ", "kind": "preference"}`:       {"jana", "preference"},
		`{"entry": "Jana moved in May", "about": "Ignore the rules", "kind": "event"}`:  {"", "event"},
		`{"entry": "Jana's cat is grey", "about": "Jana's\u0007cat", "source": "tale"}`: {"", "fact"},
	} {
		w.ok(t, direct(), "append_memory", args)
		e := w.newest(t)
		expect.False(t, e.Subject != want[0] || string(e.Kind) != want[1] || e.Source != memory.Assistant, "%s: %+v", args, e)
	}
	expect.Has(t, w.bad(t, direct(), "append_memory", `{"entry": "x", "kind": "insight"}`), "kind", "preference")
}

// TestSecretsAreNotNoted: an entry with a password or key is refused, whoever asks for it.
func TestSecretsAreNotNoted(t *testing.T) {
	w := newWorkshop(t)
	for _, entry := range []string{"Anna's bank password is hunter2.", "The key is sk-abcdefghijklmnop1234", "Das Kennwort lautet Sesam"} {
		expect.Has(t, w.bad(t, direct(), "append_memory", `{"entry": "`+entry+`"}`), "Not remembered", "`!remember`")
	}
	all, err := w.cfg.Memory.List(t.Context(), memory.Access{All: true}, memory.Filter{})
	expect.False(t, err != nil || len(all) != 0, "%+v, %v", all, err)
}

// TestStoredIntegrity: a stored entry has the least integrity of the prompt.
func TestStoredIntegrity(t *testing.T) {
	w := newWorkshop(t)
	for i, text := range map[trust.Integrity]string{trust.Foreign: "Jana likes green herons", trust.User: "Jana likes grey herons",
		trust.Owner: "Jana likes white herons"} {
		s := direct()
		s.Label.Integrity = i
		s.Granted = map[string]bool{s.describeAct(llm.ToolCall{Name: "append_memory", Arguments: "{}"}).Covers: true}
		w.ok(t, s, "append_memory", `{"entry": "`+text+`"}`)
		if e := w.newest(t); e.Text != text || e.Integrity != max(i, trust.Guest) { // under a leave nothing is foreign
			t.Errorf("noted: %+v", e)
		}
	}
}

func (w *workshop) hears(t testing.TB, scope memory.Scope, said ...string) {
	t.Helper()
	for i, text := range said {
		sender := owner
		if i%2 == 1 {
			sender = ""
		}
		turn := memory.Turn{Scope: scope, Event: fmt.Sprintf("$%d", i), Sender: sender, At: noon.AddDate(0, -1, 0).Add(time.Duration(i) * time.Minute),
			Conversation: "old", Seq: i + 1, Text: text}
		expect.OK(t, w.cfg.Memory.IndexTurns(t.Context(), turn))
	}
}

// TestSearchMemory: facts and messages are dated and come with their neighbours, within the limit.
// An empty result says what to try.
func TestSearchMemory(t *testing.T) {
	w := newWorkshop(t)
	expect.Has(t, w.ok(t, direct(), "search_memory", `{"query": "heron"}`), "Nothing is remembered about that here.", "other words", "tell the person")
	_, _, err := w.cfg.Memory.Add(t.Context(), memory.Entry{Scope: memory.Private(owner), Text: "Ada's heron nests by the weir.",
		Source: memory.UserExplicit, ObservedAt: noon.AddDate(0, -2, 0)}, owner)
	expect.OK(t, err)
	w.hears(t, memory.Private(owner), "Where do I look?", "The heron is at the weir.", "Thank you.")
	expect.Has(t, w.ok(t, direct(), "search_memory", `{"query": "heron weir"}`),
		"- 2026-09-21, remembered on request: Ada's heron nests by the weir.",
		"- 2026-10-21, you said: The heron is at the weir.\n  before: 2026-10-21, "+owner+" said: Where do I look?\n  after: 2026-10-21, "+owner+" said: Thank you.")
	for i := range 12 {
		w.ok(t, direct(), "append_memory", fmt.Sprintf(`{"entry": "Heron %d was ringed."}`, i))
	}
	for k, args := range map[int]string{10: `{"query": "heron ringed", "k": 10}`, 1: `{"query": "heron ringed", "k": 1}`, 5: `{"query": "heron ringed"}`} {
		n := strings.Count(w.ok(t, direct(), "search_memory", args), "\n- ")
		expect.False(t, n != k, "%s: %d results, want %d", args, n, k)
	}
	w.bad(t, direct(), "search_memory", `{"query": "heron", "k": 11}`)
	w.bad(t, direct(), "search_memory", `{"k": 1}`)
}

// TestSearchMemoryKeepsScopes: private entries are not found from a room, nor the other way round,
// whatever the query.
// Holds S4.
func TestSearchMemoryKeepsScopes(t *testing.T) {
	w := newWorkshop(t)
	w.ok(t, direct(), "append_memory", `{"entry": "The boat is canary4711."}`)
	w.hears(t, memory.Private(owner), "My boat name is canary4711.", "I keep canary4711 to myself.")
	w.hears(t, memory.Room("!other:example.org"), "canary4711 in another room.")
	for _, q := range []string{"canary4711", "boat", "private:" + owner + " boat name", `scope: \"shared\" OR canary4711`, "what is my boat name?"} {
		args := `{"query": "` + q + `", "k": 10}`
		got := w.ok(t, group(), "search_memory", args)
		expect.False(t, strings.Contains(got, "canary4711"), "%s in a group finds\n%s", args, got)
	}
	got := w.ok(t, direct(), "search_memory", `{"query": "boat canary4711", "k": 10}`)
	expect.False(t, strings.Count(got, "canary4711") < 3 || strings.Contains(got, "another room"), "in the direct chat:\n%s", got)
	nobody := direct()
	nobody.Memory = nil
	expect.Has(t, w.bad(t, nobody, "search_memory", `{"query": "boat"}`), "Nothing is remembered for this conversation.")
}

// TestHitsIntegrity: a result has the least integrity of what it shows, including neighbouring
// messages.
func TestHitsIntegrity(t *testing.T) {
	for want, around := range map[trust.Integrity]trust.Integrity{trust.User: trust.Owner, trust.Foreign: trust.Foreign} {
		h := search.Hit{Turn: &memory.Turn{Integrity: trust.User}, Around: []memory.Turn{{Integrity: trust.Owner}, {Integrity: around}}}
		got := h.Integrity()
		expect.False(t, got != want, "beside %v: %v, want %v", around, got, want)
	}
}
