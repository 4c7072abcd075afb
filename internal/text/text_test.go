package text

import (
	"regexp"
	"strings"
	"testing"
)

// TestLists: each word of each language is a pattern, in a list that English explains.
func TestLists(t *testing.T) {
	if got := Languages(); len(got) != 9 {
		t.Errorf("languages %q", got)
	}
	named := map[string]bool{}
	for language, of := range lists() {
		for name, words := range of {
			named[name] = true
			for _, w := range words {
				if _, err := regexp.Compile(w); err != nil || strings.TrimSpace(w) != w || w == "" {
					t.Errorf("%s, %s: %q, %v", language, name, w, err)
				}
			}
		}
	}
	if len(named) < 20 {
		t.Errorf("only the lists %v", named)
	}
}

// TestPattern: a word is found by itself, in whatever language, and the whole of it; Chinese
// and Japanese are found within a sentence.
func TestPattern(t *testing.T) {
	not := WordPattern("negation")()
	for in, want := range map[string]string{" he is not here ": " not ", " er ist nie da ": " nie ", " the knot holds ": "", " he works there no longer ": " no longer ", " elle n'y va plus jamais ": " n'y va plus "} {
		if got := not.FindString(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if wide := SpacelessPattern("negation")(); !wide.MatchString("今日は行きません") || !wide.MatchString("我不去") || wide.MatchString("we do not go") {
		t.Error("Chinese and Japanese")
	}
	if set := Set("article"); !set["the"] || !set["der"] || set["den "] {
		t.Errorf("articles %v", set)
	}
	if words := Words("en", "numeral"); words[0] != "two" || Words("xx", "numeral") != nil {
		t.Errorf("numerals %q", words)
	}
}
