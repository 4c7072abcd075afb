package dream

import (
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// TestQuotesAreNotHarvested: what a message quotes is nobody's statement.
func TestQuotesAreNotHarvested(t *testing.T) {
	r := newRig(t, nil)
	m := history.Message{Room: "!group", Role: llm.User, EventID: "$1", Sender: anna, Text: "My sister Jana lives in Brno.", At: r.clock,
		Header: "[Fri 2026-11-20 09:00 UTC, " + anna + "]", Quoted: []history.Quoted{{Event: "$0", Text: "eve:\n> Anna owns the harbour"}}}
	m.Label = labelOf(m)
	if err := r.history.Append(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	r.answer = func(string) (string, error) {
		return list(oneFact(1, "Anna owns the harbour", "Anna owns the harbour"), oneFact(1, "Anna's sister Jana lives in Brno", "My sister Jana lives in Brno")), nil
	}
	r.harvest()
	if got := r.texts(); strings.Contains(got, "harbour") || !strings.Contains(got, "Brno") {
		t.Errorf("learned: %s", got)
	}
	for _, p := range r.prompts {
		if strings.Contains(p, "harbour") {
			t.Error("the model read a quote")
		}
	}
}
