package dream

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"testing"

	"reverie/internal/memory"
)

// meaning is an embedder that knows what some texts mean: what stands in one line of
// same means the same.
type meaning struct{ same []string }

func (meaning) Name() string { return "meaning" }

func (m meaning) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		key := text
		for _, line := range m.same {
			if strings.Contains(line, text) {
				key = line
			}
		}
		h := fnv.New64a()
		h.Write([]byte(key))
		random := rand.New(rand.NewPCG(h.Sum64(), 0))
		out[i] = make([]float32, 64)
		for k := range out[i] {
			out[i][k] = random.Float32() - .5
		}
	}
	return out, nil
}

// TestNearInMeaning: what is near in meaning and has no word in common is asked about, once,
// and put together if the model says so; what differs in a name, a number or a "not" is not
// even asked about. Both texts stay.
func TestNearInMeaning(t *testing.T) {
	dir := t.TempDir()
	db, plain := openStore(t, dir)
	texts := []string{"dusk strolls calm her down", "evening walks relax her",
		"her alarm rings at 6", "she is woken at 7", "beer is never drunk", "lager is often had",
		"Anna bakes rye bread", "dark loaves are made by Ben"}
	for i := range 60 {
		texts = append(texts, fmt.Sprintf("something of the sort %c%c", 'a'+i%26, 'a'+i/26))
	}
	for i, text := range texts {
		if _, _, err := plain.Add(t.Context(), memory.Entry{Scope: memory.Private(owner), Text: text, Source: memory.Harvest, ObservedAt: day0.AddDate(0, 0, i)}, "test"); err != nil {
			t.Fatal(err)
		}
	}
	v, err := memory.OpenVectors(t.Context(), memory.VectorConfig{DB: db, Embedder: meaning{[]string{
		texts[0] + "|" + texts[1], texts[2] + "|" + texts[3], texts[4] + "|" + texts[5], texts[6] + "|" + texts[7]}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Complete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	s, err := memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: owner, Backend: "local_vector", Vectors: v})
	if err != nil {
		t.Fatal(err)
	}
	w := worldOf(t, dir, db, s, nil, always("duplicate"))
	r := w.dream(Options{Phases: []Phase{Dedup}})
	pair := texts[0] + "|" + texts[1]
	if len(r.Grouped) != 1 || w.asked[pair] != 1 || len(w.active()) != len(texts) {
		t.Errorf("%+v, %v", r.Grouped, w.asked)
	}
	for p := range w.asked {
		for _, other := range texts[2:8] {
			if strings.Contains(p, other) {
				t.Errorf("asked about %s", p)
			}
		}
	}
	if w.dream(Options{Phases: []Phase{Dedup}}); w.asked[pair] != 1 {
		t.Error("asked again")
	}
	// Without vectors nobody is asked.
	if found, err := plain.Neighbours(t.Context(), w.active()[texts[0]].ID, 3); err != nil || len(found) > 0 {
		t.Errorf("%+v, %v", found, err)
	}
}
