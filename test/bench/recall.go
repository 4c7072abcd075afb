package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/search"
	"reverie/internal/search/vector"
)

// percentiles returns the median and the 99th percentile of durations.
func percentiles(name string, took []time.Duration, half, most float64) []figure {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
	return []figure{
		{name + "p50", ms(took[len(took)/2]), "ms", half},
		{name + "p99", ms(took[len(took)*99/100]), "ms", most},
	}
}

// recalling measures the assembler with a memory search for each message, each with new words.
func recalling(ctx context.Context) ([]figure, error) {
	dir, err := os.MkdirTemp("", "reverie-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	of := size{memories: 10_000, skills: 200, tasks: 200, backend: "fts5"}
	a, turn, err := newAssembler(ctx, dir, prompt.Stable, of)
	if err != nil {
		return nil, err
	}
	asks := []string{"Do I like number %d more than number %d?", "What did I say about number %d by the sea?", "And fact %d, was it on a long walk?", "Tell me about fact %d, please, and number %d."}
	newest := &turn.History[len(turn.History)-1]
	var took []time.Duration
	for i := range 900 {
		newest.Text = fmt.Sprintf(asks[i%len(asks)], 7*(i*37%10_000), 3*(i*37%10_000))
		began := time.Now()
		p, err := a.Assemble(ctx, turn)
		if err != nil {
			return nil, err
		}
		if i == 100 && p.Tail == "" {
			return nil, errors.New("the message brings nothing to mind")
		}
		if i >= 100 {
			took = append(took, time.Since(began))
		}
	}
	name := fmt.Sprintf("assembly with a search for the message, fts5, %d/%d/%d: ", of.memories, of.skills, of.tasks)
	return percentiles(name, took, 3, 0), nil
}

// meaning measures queries to the full-text index together with vectors of all memories. The vectors
// are random, because real ones would take too long; the search takes the same time. It also
// measures the embedding of a real query if the model is present.
func meaning(ctx context.Context, db *sql.DB, index *search.FTS, asked []string, n int) ([]figure, error) {
	v, err := vector.Open(ctx, vector.Config{DB: db, Embedder: randomEmbedder{}, Patience: time.Minute})
	if err != nil {
		return nil, err
	}
	if err := v.Complete(ctx); err != nil {
		return nil, err
	}
	hybrid := search.OpenHybrid(index, v, nil)
	var took []time.Duration
	for _, text := range asked {
		if v.EmbedQuery(ctx, text) == nil { // it is cached from now on
			return nil, fmt.Errorf("no vector of %q", text)
		}
		began := time.Now()
		if _, err := hybrid.Search(ctx, memory.Query{Text: text, Scopes: []memory.Scope{memory.Shared}}); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	all := percentiles(fmt.Sprintf("%d memories, made-up vectors: question without its vector, ", n), took, 0, aims[n])
	e, err := encoder.Embedded()
	if err != nil || n > 10_000 { // once is enough
		return all, nil
	}
	took = nil
	for _, text := range asked[:min(len(asked), 100)] {
		began := time.Now()
		if _, _, err := e.Encode(ctx, text); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return append(all, percentiles("the vector of a question, "+encoder.Model+": ", took[1:], 0, 0)...), nil // the first reads the weights
}

// randomEmbedder gives each text a random vector, always the same.
type randomEmbedder struct{}

// Name implements vector.Embedder.
func (randomEmbedder) Name() string { return "made-up" }

// Embed implements vector.Embedder.
func (randomEmbedder) Embed(_ context.Context, texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		h := fnv.New64a()
		h.Write([]byte(text))
		random := rand.New(rand.NewPCG(h.Sum64(), 1))
		out[i] = make([]float32, encoder.Dims)
		for j := range out[i] {
			out[i][j] = float32(random.NormFloat64())
		}
	}
	return out, nil
}
