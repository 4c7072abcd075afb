package session

import (
	"strings"
	"testing"

	"reverie/internal/llm"
)

// TestSentences: between two sentences stands a blank, but not where the writing has none;
// what is empty is none.
// Holds M69.
func TestSentences(t *testing.T) {
	for want, each := range map[string][]string{
		"One. Two.": {"One.", "", "Two."}, "一。二。": {"一。", "二。"}, "一？二": {"一？", "二"}, "一！二": {"一！", "二"}, "一 (1) 二。": {"一 (1)", "二。"}, "Two.": {"", "Two.", ""}, "": {"", ""},
	} {
		if got := sentences(each...); got != want {
			t.Errorf("%q became %q, want %q", each, got, want)
		}
	}
	w := newWorld(t, t.TempDir())
	w.cfg.Messages = OpenMessages(w.dir, w.cfg.DB, "en")
	w.hears(t, owner, "!dm", "$1", "!config language ja")
	w.hears(t, owner, "!dm", "$2", "hello")
	s := w.sessionOf("!dm")
	s.usage = usage{room: 100, expected: 80, reply: llm.Reply{Usage: llm.Usage{Prompt: 80, Output: 9}}}
	for _, got := range []string{s.usageLine(t.Context()), s.calm(t.Context(), errRounds, ""), w.hears(t, owner, "!dm", "$3", "!frobnicate")} {
		if strings.Contains(got, "。 ") || strings.Count(got, "。") < 2 {
			t.Errorf("says %q", got)
		}
	}
}
