package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/doctor"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/llm/encoder"
	"reverie/internal/search/backend"
	"reverie/internal/search/vector"
)

// embedding is the configured model for vectors, nil if there is none.
func (b *bot) embedding() *llm.Embedding {
	e := b.cfg.LLM.Embedding
	if e == nil {
		return nil
	}
	return llm.NewEmbedding(llm.ModelConfig{BaseURL: e.BaseURL, APIKey: string(e.APIKey), Model: e.Model, Timeout: e.Timeout},
		llm.Config{Log: b.log})
}

// openVectors opens the vectors of memories that memory.backend asks for, made by
// the configured model or else by the one that is part of the program. It is nil if
// the backend has none or nothing can make them; the log says which. patience is
// how long a question waits for its vector; 0 = not longer than an answer may.
func (b *bot) openVectors(ctx context.Context, patience time.Duration) (*vector.Vectors, error) {
	if !b.backend().Meaning {
		return nil, nil
	}
	c := vector.Config{DB: b.db, Patience: patience, Log: b.log}
	if configured := b.embedding(); configured != nil {
		c.Embedder = configured
		return vector.Open(ctx, c)
	}
	v, err := vector.OpenBuiltIn(ctx, c)
	if errors.Is(err, encoder.ErrNoWeights) {
		b.log.Info(doctor.WordsOnly, "err", err)
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
	if b.server != nil {
		g.Go(func() error { return b.server.Run(ctx) })
	}
	return g.Wait()
}

// vectorLines says for !status how far memories are read for their meaning.
func (b *bot) vectorLines(ctx context.Context, say i18n.Say) (lines []string) {
	switch {
	case !b.backend().Meaning:
		return nil
	case b.vectors == nil:
		return []string{say("why.by_words_only")}
	}
	if s := b.vectors.Status(ctx); !s.UpToDate() {
		lines = append(lines, s.Line(b.cfg.Zone).In(say))
	}
	if b.server != nil {
		lines = append(lines, b.server.Line(b.cfg.Zone).In(say))
	}
	return lines
}

// backend is the configured one.
func (b *bot) backend() backend.Backend { return backend.Of(b.cfg.Memory.Backend) }

// openServer opens the server of the configured backend; nil if it has none. Without vectors, what is
// forgotten leaves it all the same. patience is how long a question waits for it; 0 = not longer than an answer may.
func (b *bot) openServer(v *vector.Vectors, patience time.Duration) backend.Server {
	s, open := b.cfg.Memory.Server(), b.backend().Open
	if open == nil {
		return nil
	}
	return open(backend.Config{Vectors: v, URL: s.URL, Key: string(s.APIKey), Collection: s.Collection, Patience: patience, Log: b.log})
}
