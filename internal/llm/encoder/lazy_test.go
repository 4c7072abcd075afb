package encoder

import "testing"

// TestLazy: a text outside the vocabulary has no vector.
func TestLazy(t *testing.T) {
	if !BuiltIn() {
		t.Skip("the encoder's weights are not here; `make weights` fetches them")
	}
	vectors, err := NewLazy().Embed(t.Context(), []string{"good morning", "早上好，你今天怎么样", "", "good evening"})
	if err != nil || len(vectors) != 4 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for i, want := range []int{Dims, 0, 0, Dims} {
		if len(vectors[i]) != want {
			t.Errorf("vector %d has %d numbers, want %d", i, len(vectors[i]), want)
		}
	}
}
