package search

import (
	"strings"
	"testing"
)

func termsOf(body, subject string) [fields][]hash {
	return [fields][]hash{inBody: hashesIn(body), inSubject: hashesIn(subject)}
}

// TestAnswersGainNothingByLength: of two messages with the words of a query, a long one of a person
// is better than a short one; an answer of the assistant is not.
func TestAnswersGainNothingByLength(t *testing.T) {
	q := parseQuery(Query{Text: "heron weir"})
	for i := range q.terms {
		q.terms[i].df = 2
	}
	c := corpus{docs: 20, words: 50}
	c.weigh(q.terms)
	q.setTerms(q.terms)
	long := "heron weir" + strings.Repeat(" more", 98)
	short := candidate{indexedText: &indexedText{doc: -1, terms: termsOf("heron weir and so on", "anna"), session: 1, chars: 20, words: 5}}
	for who, wants := range map[string]int64{"anna": -2, "": -1} {
		other := candidate{indexedText: &indexedText{doc: -2, terms: termsOf(long, who), session: 1, chars: 500, words: 100, answer: who == ""}}
		if got := rank(q, c, []candidate{short, other}); got[0].doc != wants {
			t.Errorf("said by %q: %d is first with %v, want %d", who, got[0].doc, got[0].values, wants)
		}
	}
	facts := []candidate{{indexedText: &indexedText{doc: 1, terms: termsOf("heron weir and so on", ""), chars: 20, words: 5}},
		{indexedText: &indexedText{doc: 2, terms: termsOf(long, ""), chars: 500, words: 100}}}
	if got := rank(q, c, facts); got[0].doc != 2 {
		t.Errorf("a long fact without a subject gains nothing: %v", got[1].values)
	}
}

// TestLongQuestionsHoldFacts: of two questions with the words of a query, the one that says more is
// better; beside it the short one loses against a statement.
func TestLongQuestionsHoldFacts(t *testing.T) {
	q := parseQuery(Query{Text: "heron weir"})
	for i := range q.terms {
		q.terms[i].df = 3
	}
	c := corpus{docs: 20, words: 30}
	c.weigh(q.terms)
	q.setTerms(q.terms)
	said := func(doc int64, chars int, isQuestion bool) candidate {
		return candidate{indexedText: &indexedText{doc: doc, terms: termsOf("heron weir", "anna"), session: 1, chars: chars, words: 30,
			isQuestion: isQuestion}}
	}
	got := rank(q, c, []candidate{said(-1, 20, true), said(-2, 20, false), said(-3, 400, true), said(-4, 400, false)})
	if short, long := got[2].score-got[3].score, got[0].score-got[1].score; got[3].doc != -1 || got[2].doc != -2 || short <= 0 || long != 0 {
		t.Errorf("as a question a short text loses %.2f and a long one %.2f", short, long)
	}
}
