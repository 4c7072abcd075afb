package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/llm/encoder"
	"reverie/internal/search/qdrant"
	"reverie/internal/search/vector"
)

// embedding is the configured model for vectors, nil if there is none.
func (b *bot) embedding() (*llm.Embedding, error) {
	e := b.cfg.LLM.Embedding
	if e == nil {
		return nil, nil
	}
	return llm.NewEmbedding(llm.EmbeddingConfig{
		BaseURL: e.BaseURL, APIKey: string(e.APIKey), Model: e.Model, Timeout: e.Timeout, Log: b.log,
	})
}

// openVectors opens the vectors of memories that memory.backend asks for, made by
// the configured model or else by the one that is part of the program. It is nil if
// the backend has none or nothing can make them; the log says which. patience is
// how long a question waits for its vector; 0 = not longer than an answer may.
func (b *bot) openVectors(ctx context.Context, patience time.Duration) (*vector.Vectors, error) {
	if !b.cfg.ByMeaning() {
		return nil, nil
	}
	c := vector.Config{DB: b.db, Patience: patience, Log: b.log}
	configured, err := b.embedding()
	if err != nil {
		return nil, err
	}
	if configured != nil {
		c.Embedder = configured
		return vector.Open(ctx, c)
	}
	v, err := vector.OpenBuiltIn(ctx, c)
	if errors.Is(err, encoder.ErrNoWeights) {
		b.log.Info(wordsOnly, "err", err)
		return nil, nil
	}
	return v, err
}

// runVectors reads memories for their meaning until ctx ends, and sends what it
// reads to where it is searched.
func (b *bot) runVectors(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if b.vectors != nil {
		g.Go(func() error { return b.vectors.Run(ctx) })
	}
	if b.points != nil {
		g.Go(func() error { return b.points.Run(ctx) })
	}
	return g.Wait()
}

// withVectors adds to a status how far memories are read for their meaning.
func (b *bot) withVectors(status func(context.Context, i18n.Say) []string) func(context.Context, i18n.Say) []string {
	if !b.cfg.ByMeaning() {
		return status
	}
	return func(ctx context.Context, say i18n.Say) (lines []string) {
		if status != nil {
			lines = status(ctx, say)
		}
		if b.vectors == nil {
			return append(lines, say("why.by_words_only"))
		}
		if s := b.vectors.Status(ctx); !s.Settled() {
			lines = append(lines, s.Line(b.cfg.Zone).In(say))
		}
		if b.points != nil {
			lines = append(lines, b.points.Line(b.cfg.Zone).In(say))
		}
		return lines
	}
}

func (b *bot) examineEmbedding(ctx context.Context) []finding {
	const area = "vectors"
	e, err := b.embedding()
	if err != nil {
		return []finding{{area, ill, err.Error(), "mend llm.embedding in the configuration"}}
	}
	if e == nil {
		return b.examineBuiltIn()
	}
	return probe(ctx, area, e.Name(),
		"see that it runs and answers; its address, key and name stand under llm.embedding in the configuration",
		func(ctx context.Context) (string, error) {
			vectors, err := e.Embed(ctx, []string{"Good morning."})
			if err != nil {
				return "", err
			}
			return fmt.Sprintf(" with %d numbers a text", len(vectors[0])), nil
		})
}

// wordsOnly is what the operator reads where nothing makes vectors.
const wordsOnly = "memories are found by their words only: there is nothing that makes vectors; " +
	"llm.embedding in the configuration names a model that does"

// examineBuiltIn says how memories are found where no model for vectors is named.
func (b *bot) examineBuiltIn() []finding {
	const area = "vectors"
	switch {
	case b.cfg.Memory.Backend != "local_vector":
		return nil
	case encoder.BuiltIn():
		return []finding{{area, well, "memories are found by their words and, with the encoder that is built in, by their meaning", ""}}
	}
	return []finding{{area, note, wordsOnly + "; or take a program that has the encoder built in", ""}}
}

// openPoints opens the server that memory.backend asks for; nil if it asks for none. Without vectors, what is
// forgotten leaves it all the same. patience is how long a question waits for it; 0 = not longer than an answer may.
func (b *bot) openPoints(v *vector.Vectors, patience time.Duration) *qdrant.Points {
	q := b.cfg.Memory.Qdrant
	if q == nil || b.cfg.Memory.Backend != "qdrant" {
		return nil
	}
	return qdrant.Open(qdrant.Config{Vectors: v, URL: q.URL, Key: string(q.APIKey), Collection: q.Collection,
		Patience: patience, Log: b.log})
}

func (b *bot) examineQdrant(ctx context.Context) []finding {
	const area = "qdrant"
	points := b.openPoints(nil, 0)
	if points == nil {
		return nil
	}
	const remedy = "see that it runs and answers; its address and key stand under memory.qdrant in the configuration. " +
		"Memories are found by their words meanwhile"
	return probe(ctx, area, b.cfg.Memory.Qdrant.URL, remedy, func(ctx context.Context) (string, error) { return "", points.Probe(ctx) })
}
