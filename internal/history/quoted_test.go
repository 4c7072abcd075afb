package history_test

import (
	"slices"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/trust"
)

// quoting appends a message that quotes.
func quoting(t *testing.T, s *history.Store, event, text string, quotes ...history.Quoted) history.Message {
	t.Helper()
	m := history.Message{Room: here, Role: llm.User, EventID: event, Sender: "@ada:example.org", Header: "[now]", Text: text, At: noon, Quoted: quotes,
		Label: trust.Label{Integrity: trust.Guest, Readers: trust.Room(string(here))}}
	noError(t, s.Append(t.Context(), &m))
	return m
}

// TestQuoted: what a message quotes stands before it, byte for byte as it was stored, and
// leaves it when it is taken back or forgotten.
func TestQuoted(t *testing.T) {
	s, db := open(t)
	m := quoting(t, s, "$1", "and?", history.Quoted{Event: "$a", Text: "eve:\n> the \"code\" is 4711"}, history.Quoted{Event: "$b", Text: "fred:\n> hm"})
	quoting(t, s, "$2", "hm")
	load := func() string {
		t.Helper()
		past, err := s.Load(t.Context(), here)
		if err != nil || past[0].Label.Integrity != trust.Guest {
			t.Fatalf("%+v %v", past, err)
		}
		return past[0].Content()
	}
	if got, want := load(), "[now]\neve:\n> the \"code\" is 4711\nfred:\n> hm\nand?"; got != want || m.Content() != want {
		t.Errorf("it reads %q", got)
	}
	forget(t, s, db, `the "code" is 4711`)
	if got := load(); got != "[now]\neve:\n> [forgotten]\nfred:\n> hm\nand?" {
		t.Errorf("forgotten, it reads %q", got)
	}
	noError(t, s.Redact(t.Context(), "$b"))
	if got := load(); got != "[now]\neve:\n> [forgotten]\n[taken back]\nand?" {
		t.Errorf("taken back, it reads %q", got)
	}
	noError(t, s.Redact(t.Context(), "$1"))
	if got := load(); got != "[now]\n[taken back]" {
		t.Errorf("with its quotes it reads %q", got)
	}
}

// TestQuotesGoFirst: a compaction leaves out what older messages quote before it takes
// anything else, keeps what the newest one does, and gives it back when it is undone.
func TestQuotesGoFirst(t *testing.T) {
	s, _ := open(t)
	long := strings.Repeat("word ", 400)
	for _, event := range []string{"$1", "$2"} {
		quoting(t, s, event, "and?", history.Quoted{Text: "eve:\n> " + long})
		noError(t, s.Append(t.Context(), &history.Message{Room: here, Role: llm.Assistant, EventID: "re:" + event, Text: "Well.", At: noon}))
	}
	quoting(t, s, "$3", "and?", history.Quoted{Text: "eve:\n> " + long})
	past := must(s.Load(t.Context(), here))(t)
	plan := history.Compact(past, history.Limits{Room: 1_000, Summary: 100})
	shorter := plan.Shortened(past)
	if len(plan.Gone) != 0 || len(shorter) != 2 || plan.After >= plan.Before/2 || !slices.ContainsFunc(plan.Steps, func(s history.Step) bool { return s.Name == history.QuoteStep && s.Messages == 2 }) {
		t.Fatalf("%+v", plan)
	}
	c := history.Compaction{Room: here, Level: history.Trimmed, Reason: "full", At: noon}
	noError(t, s.Compact(t.Context(), &c, plan.Gone, shorter))
	quotes := func() (n []int) {
		t.Helper()
		now := must(s.Load(t.Context(), here))(t)
		for _, m := range now {
			if m.Role == llm.User {
				n = append(n, len(m.Quoted))
			}
		}
		return n
	}
	if got := quotes(); !slices.Equal(got, []int{0, 0, 1}) {
		t.Errorf("left: %v", got)
	}
}
