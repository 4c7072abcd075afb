package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"reverie/internal/memory/testset"
)

// table are the indexes: each answers the same questions.
var table = []struct {
	name string
	open func(testing.TB, *FTS) index
}{
	{"fts5", func(_ testing.TB, f *FTS) index { return f }},
	{"local_vector", joined},
	{"qdrant", served},
}

// labelled imports the set that the indexes are measured with.
func labelled(t testing.TB) (*FTS, testset.Set) {
	t.Helper()
	set := testset.Make(1)
	f := openIndex(t)
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	for _, l := range set.Lines {
		noError(t, encoder.Encode(l))
	}
	must(importInto(f).Import(t.Context(), "set", lines.Bytes()))(t)
	return f, set
}

// recall is the share of the evidence that is among the first ten hits, overall
// and by whatever group names.
func recall(t testing.TB, x index, questions []testset.Question, group func(testset.Question) string) (all float64, by map[string]float64) {
	t.Helper()
	sum, n := map[string]float64{}, map[string]float64{}
	for _, q := range questions {
		hits := must(x.Search(context.Background(), Query{Text: q.Query, Scopes: []Scope{Scope(q.Scope)}, K: 10}))(t)
		found := 0.0
		for _, h := range hits {
			if slices.Contains(q.Evidence, h.Entry.Ref) {
				found++
			}
		}
		for _, g := range []string{"", group(q)} {
			sum[g] += found / float64(len(q.Evidence))
			n[g]++
		}
	}
	by = map[string]float64{}
	for g := range sum {
		by[g] = 100 * sum[g] / n[g]
	}
	return by[""], by
}

// TestRecall measures search by words; TestMeaningLosesNothing measures it with vectors, and
// TestQdrantFindsAsMuch compares those of a server with them.
func TestRecall(t *testing.T) {
	t.Parallel()
	f, set := labelled(t)
	languages := map[string]bool{}
	for _, q := range set.Questions {
		languages[q.Language] = true
	}
	if len(set.Questions) < 500 || len(languages) < 3 {
		t.Fatalf("%d questions in %d languages; 500 in 3 are the least", len(set.Questions), len(languages))
	}
	begin := time.Now()
	all, by := recall(t, f, set.Questions, func(q testset.Question) string { return q.Language + " " + q.Kind })
	t.Logf("%d questions: recall@10 %.1f, %v each; %v", len(set.Questions), all, time.Since(begin)/time.Duration(len(set.Questions)), by)
	if all < 83 { // measured: 85.1
		t.Errorf("recall@10 is %.1f", all)
	}
}
