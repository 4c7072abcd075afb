package encoder

import (
	"log/slog"
	"slices"
	"testing"
	"time"
)

// TestLazy: what it does not know has no vector, and it is let go of
// when nobody needs it.
func TestLazy(t *testing.T) {
	if !BuiltIn() {
		t.Skip("the encoder's weights are not here; `make weights` fetches them")
	}
	e := &Lazy{log: slog.New(slog.DiscardHandler), keep: time.Hour}
	held := func() *Encoder {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.loaded
	}
	if held() != nil {
		t.Error("it is loaded before it is needed")
	}
	vectors, err := e.Embed(t.Context(), []string{"good morning", "早上好，你今天怎么样", "", "good evening"})
	if err != nil || len(vectors) != 4 {
		t.Fatalf("%d vectors, %v", len(vectors), err)
	}
	for i, want := range []int{Dims, 0, 0, Dims} {
		if len(vectors[i]) != want {
			t.Errorf("vector %d has %d numbers, want %d", i, len(vectors[i]), want)
		}
	}
	first := held()
	again, err := e.Embed(t.Context(), []string{"good morning"})
	if err != nil || held() != first || first == nil {
		t.Errorf("it is loaded for each question: %v", err)
	}
	e.mu.Lock()
	e.rest.Reset(0) // the hour is over
	e.mu.Unlock()
	for begin := time.Now(); held() != nil; time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal("it is never let go of")
		}
	}
	after, err := e.Embed(t.Context(), []string{"good morning"})
	if err != nil || !slices.Equal(after[0], again[0]) {
		t.Errorf("loaded once more it makes another vector: %v", err)
	}
}
