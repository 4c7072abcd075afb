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
// and how many of 100 messages of small talk may bring something up. Measured: .3 and 4.
const (
	floorCosts = 1
	mostNoise  = 6
)

func quiet(t *testing.T, x index, set testset.Set) {
	t.Helper()
	ask := func(q testset.Question, floor float64) []Hit {
		hits, err := x.Search(t.Context(), Query{Text: q.Query, Scopes: []Scope{Scope(q.Scope)}, Tokens: 1_500, Floor: floor})
		if err != nil {
			t.Fatal(err)
		}
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
