package memory

import (
	"fmt"
	"slices"
	"testing"

	"reverie/internal/memory/testset"
)

// TestFloorIsQuiet: small talk brings nothing up, and questions lose next to nothing by
// that. TestMeaningLosesNothing measures the same with vectors.
func TestFloorIsQuiet(t *testing.T) {
	t.Parallel()
	f, set := labelled(t)
	if languages := len(slices.Compact(slices.Sorted(func(yield func(string) bool) {
		for _, q := range set.SmallTalk {
			if !yield(q.Language) {
				return
			}
		}
	}))); len(set.SmallTalk) < 100 || languages < 3 {
		t.Fatalf("%d messages of small talk in %d languages; 100 in 3 are the least", len(set.SmallTalk), languages)
	}
	quiet(t, f, set)
}

// The most that the floor may cost of the evidence within a prompt's room, in points,
// and how many of 100 messages of small talk may bring something up. Measured: .3 and
// 2.5.
const (
	floorCosts = 1
	mostNoise  = 6
)

func quiet(t *testing.T, x index, set testset.Set) {
	t.Helper()
	ask := func(q testset.Question, floor float64) []Hit {
		hits := must(x.Search(t.Context(), Query{Text: q.Query, Scopes: []Scope{Scope(q.Scope)}, Tokens: 1_500, Floor: floor}))(t)
		return hits
	}
	share := func(q testset.Question, hits []Hit) float64 {
		found := 0.0
		for _, h := range hits {
			if slices.Contains(q.Evidence, h.Entry.Ref) {
				found++
			}
		}
		return found / float64(len(q.Evidence))
	}
	var with, without float64
	for _, q := range set.Questions {
		all := share(q, ask(q, 0))
		without += all
		if all > 0 {
			with += share(q, ask(q, DefaultFloor))
		}
	}
	n := float64(len(set.Questions)) / 100
	var noise []string
	for _, q := range set.SmallTalk {
		if len(ask(q, DefaultFloor)) > 0 {
			noise = append(noise, fmt.Sprint(q.Language, " ", q.Query))
		}
	}
	share100 := 100 * float64(len(noise)) / float64(len(set.SmallTalk))
	t.Logf("recall within 1,500 tokens %.1f, with the floor %.1f; of 100 messages of small talk %.1f bring something up: %q", without/n, with/n, share100, noise)
	if with/n < without/n-floorCosts {
		t.Errorf("the floor costs %.1f points of recall within 1,500 tokens; %d is the most", without/n-with/n, floorCosts)
	}
	if share100 > mostNoise {
		t.Errorf("%.1f of 100 messages of small talk bring something up; %d is the most", share100, mostNoise)
	}
}

// leastNear is how many memories pass the floor at least of which a question has no
// word, of testset.Meanings. Measured: 6 of 24; by their words 1.
const leastNear = 5

// passes tells memories that questions share no word with, and asks for them as a prompt does.
func passes(t *testing.T, f *FTS, h *Hybrid) {
	t.Helper()
	const scope = "room:!en0:test"
	var lines []string
	for i, m := range testset.Meanings {
		lines = append(lines, fmt.Sprintf(`{"text":%q,"ref":"m%d","scope":%q}`, m.Fact, i, scope))
	}
	remember(t, f, lines...)
	complete(t, h.vectors)
	byWords, byMeaning := 0, 0
	for i, m := range testset.Meanings {
		q := Query{Text: m.Question, Scopes: []Scope{scope}, Tokens: 1_500, Floor: DefaultFloor}
		ref := fmt.Sprint("m", i)
		if slices.Contains(refs(t, f, q), ref) {
			byWords++
		}
		hits := must(h.Search(t.Context(), q))(t)
		// A prompt leaves out what has nothing of the question, and is not near.
		if slices.ContainsFunc(hits, func(h Hit) bool { return h.Entry.Ref == ref && (h.Near || h.Covered >= DefaultFloor/2) }) {
			byMeaning++
		}
	}
	t.Logf("of %d memories that share no word with the question, %d pass the floor by meaning, %d by words", len(testset.Meanings), byMeaning, byWords)
	if byMeaning < leastNear || byWords > 2 {
		t.Errorf("%d pass by meaning, %d by words; %d and 2 are expected", byMeaning, byWords, leastNear)
	}
}
