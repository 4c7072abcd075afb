package i18n

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// german knows one sentence more than English needs.
func german(key string, fill ...string) string {
	return Fill(map[string]string{"why.needed_failed": "es brauchte {id}: {why}", "why.helper_empty": "ohne Ergebnis", "why.file_of_kind": "{why} ({type}, {size})"}[key], fill)
}

// TestText: a sentence is said in each language with what it is filled in with; words of
// others stay as they are, and are told apart.
func TestText(t *testing.T) {
	empty := New("why.helper_empty")
	for _, c := range []struct {
		text            Text
		english, german string
		known           bool
	}{
		{empty, "it ended without a result", "ohne Ergebnis", true},
		{New("why.needed_failed", "id", "sub_1", "why", New("why.needed_failed", "id", "sub_2", "why", empty)),
			"it needed sub_1, which failed: it needed sub_2, which failed: it ended without a result", "es brauchte sub_1: es brauchte sub_2: ohne Ergebnis", true},
		{New("why.needed_failed", "id", "sub_1", "why", "the pen is broken"), "it needed sub_1, which failed: the pen is broken", "es brauchte sub_1: the pen is broken", false},
		{New("why.file_of_kind", "why", New("why.file_of_kind", "why", "x", "type", "a", "size", 1), "type", "{why}", "size", `"["`), `x (a, 1) ({why}, "[")`, `x (a, 1) ({why}, "[")`, false},
		{New("why.merged", "count", 1), "1 merged", "", true}, {New("why.questions", "count", 1), "1 question", "", true}, {New("why.questions", "count", 2), "2 questions", "", true},
		{"the disk is on fire", "the disk is on fire", "the disk is on fire", false}, {"", "", "", false},
		{`["why.nothing.like.it"]`, `["why.nothing.like.it"]`, `["why.nothing.like.it"]`, false}, {`["why.helper_empty"`, `["why.helper_empty"`, `["why.helper_empty"`, false},
	} {
		if got := c.text.String(); got != c.english || c.text.Error() != got || fmt.Sprint(c.text) != got {
			t.Errorf("%s: got %q, want %q", string(c.text), got, c.english)
		}
		if got := c.text.In(german); c.german != "" && got != c.german {
			t.Errorf("%s: got %q, want %q", string(c.text), got, c.german)
		}
		if c.text.Translatable() != c.known {
			t.Errorf("%s: known %v", string(c.text), c.text.Translatable())
		}
	}
	if got := FromError(fmt.Errorf("dream: %w", empty)); got != empty {
		t.Errorf("of a wrapped sentence: %q", got)
	}
	if got := FromError(errors.New("x")); got != "x" {
		t.Errorf("of another error: %q", got)
	}
}

// TestTextKeepsWords: whatever a place is filled in with is said as it is.
func TestTextKeepsWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.String().Draw(t, "words")
		want := "it could not be transcribed: " + words
		if got := New("why.not_transcribed", "why", words).String(); got != want && Text(words).String() == words {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add(`["why.needed_failed","id","sub_1","why",["why.helper_empty"]]`)
	f.Add(`["why.needed_failed",["why.helper_empty"],{},null,7,[`)
	f.Fuzz(func(t *testing.T, stored string) {
		text := Text(stored)
		if said := text.String(); text.key() == "" && said != stored {
			t.Errorf("words became %q", said)
		}
		text.Translatable()
	})
}
