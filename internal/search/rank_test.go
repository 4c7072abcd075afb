package search

import (
	"strings"
	"testing"
)

// TestAnswersGainNothingByLength: of two messages with the words of a query, a long one of a person
// is better than a short one; an answer of the assistant is not.
func TestAnswersGainNothingByLength(t *testing.T) {
	q := parseQuery(Query{Text: "heron weir"})
	for i := range q.terms {
		q.terms[i].df = 2
	}
	c := corpus{docs: 20, words: 50}
	c.weigh(q.terms)
	long := "heron weir" + strings.Repeat(" more", 98)
	short := candidate{doc: -1, body: "heron weir and so on", subject: "anna", session: 1, chars: 20, words: 5}
	for who, wants := range map[string]int64{"anna": -2, "": -1} {
		other := candidate{doc: -2, body: long, subject: who, session: 1, chars: 500, words: 100}
		if got := rank(q, c, []candidate{short, other}); got[0].doc != wants {
			t.Errorf("said by %q: %d is first with %v, want %d", who, got[0].doc, got[0].values, wants)
		}
	}
	facts := []candidate{{doc: 1, body: short.body, chars: 20, words: 5}, {doc: 2, body: long, chars: 500, words: 100}}
	if got := rank(q, c, facts); got[0].doc != 2 {
		t.Errorf("a long fact without a subject gains nothing: %v", got[1].values)
	}
}
