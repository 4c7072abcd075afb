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

// embedding returns the configured embedding model, or nil.
func (b *bot) embedding() *llm.Embedding {
	e := b.cfg.LLM.Embedding
	if e == nil {
		return nil
	}
	return llm.NewEmbedding(llm.ModelConfig{BaseURL: e.BaseURL, APIKey: string(e.APIKey), Model: e.Model, Timeout: e.Timeout},
		llm.Config{Log: b.log})
}

// openVectors opens the vectors of memories for memory.backend. It uses the configured embedding
// model or the built-in one. It returns nil if the backend has no vectors or no model exists.
// patience is how long a query waits for its vector; 0 = the default.
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
		b.log.Info(doctor.NoVectors, "err", err)
		return nil, nil
	}
	return v, err
}

// runVectors embeds memories and sends the vectors to the server, until ctx ends.
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

// vectorLines returns lines for !status on the progress of embedding.
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

// backend returns the configured backend.
func (b *bot) backend() backend.Backend { return backend.Of(b.cfg.Memory.Backend) }

// openServer opens the vector server of the backend, or returns nil. It also works without vectors,
// to delete forgotten memories. patience is how long a query waits; 0 = the default.
func (b *bot) openServer(v *vector.Vectors, patience time.Duration) backend.Server {
	s, open := b.cfg.Memory.Server(), b.backend().Open
	if open == nil {
		return nil
	}
	return open(backend.Config{Vectors: v, URL: s.URL, Key: string(s.APIKey), Collection: s.Collection, Patience: patience, Log: b.log})
}
