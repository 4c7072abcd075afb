package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/llm/encoder"
	"reverie/internal/memory"
)

// EmbeddingConfig is the model that turns texts into vectors. After loading,
// APIKey holds what its file said.
type EmbeddingConfig struct {
	BaseURL    string        `yaml:"base_url"`
	Model      string        `yaml:"model"`
	APIKey     secret        `yaml:"api_key"`
	APIKeyFile string        `yaml:"api_key_file"`
	Timeout    time.Duration `yaml:"timeout"` // 0 = 2 minutes
}

func (c *Config) completeEmbedding(r *reader, dir string) {
	e := c.LLM.Embedding
	if e == nil {
		return
	}
	const key = "llm.embedding."
	c.checkModelURL(r, key+"base_url", e.BaseURL,
		"leave out the last part; the address ends before it, in /v1 or, for Ollama's own protocol, /api", "/embeddings", "/embed")
	r.check(rule{key + "model", e.Model != "", "missing; write the model's name on its server, such as nomic-embed-text"},
		rule{key + "timeout", e.Timeout >= 0, "write how long one request may take, such as 2m"})
	c.secretFile(r, dir, key+"api_key", &e.APIKey, e.APIKeyFile)
}

// embedding is the configured model for vectors, nil if there is none.
func (c *Config) embedding(log *slog.Logger) (*llm.Embedding, error) {
	e := c.LLM.Embedding
	if e == nil {
		return nil, nil
	}
	return llm.NewEmbedding(llm.EmbeddingConfig{BaseURL: e.BaseURL, APIKey: string(e.APIKey), Model: e.Model, Timeout: e.Timeout, Log: log})
}

// openVectors opens the vectors of memories that memory.backend asks for, made by
// the configured model or else by the one that is part of the program. It is nil if
// the backend has none or nothing can make them; the log says which. patience is
// how long a question waits for its vector; 0 = not longer than an answer may.
func (b *bot) openVectors(ctx context.Context, patience time.Duration) (*memory.Vectors, error) {
	if !b.cfg.byMeaning() {
		return nil, nil
	}
	c := memory.VectorConfig{DB: b.db, Patience: patience, Log: b.log}
	configured, err := b.cfg.embedding(b.log)
	switch {
	case err != nil:
		return nil, err
	case configured != nil:
		c.Embedder = configured
	default:
		if !encoder.BuiltIn() {
			if b.cfg.backend { // nobody is told over and over of what nobody asked for
				b.log.Warn(wordsOnly, "err", encoder.ErrNoWeights)
			}
			return nil, nil
		}
		c.Embedder, c.Neutral = &builtIn{log: b.log, keep: keepEncoder}, encoder.Neutral
		c.Patience = cmp.Or(patience, 2*time.Second) // a busy computer is no server that is unreachable
	}
	return memory.OpenVectors(ctx, c)
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
	if !b.cfg.byMeaning() {
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
			lines = append(lines, s.Line(b.cfg.location()).In(say))
		}
		if b.points != nil {
			lines = append(lines, b.points.Line(b.cfg.location()).In(say))
		}
		return lines
	}
}

func (b *bot) examineEmbedding(ctx context.Context) []finding {
	const area = "vectors"
	e, err := b.cfg.embedding(b.log)
	if err != nil {
		return []finding{{area, ill, err.Error(), "mend llm.embedding in the configuration"}}
	}
	if e == nil {
		return b.examineBuiltIn()
	}
	return probe(ctx, area, e.Name(), "see that it runs and answers; its address, key and name stand under llm.embedding in the configuration",
		func(ctx context.Context) (string, error) {
			vectors, err := e.Embed(ctx, []string{"Good morning."})
			if err != nil {
				return "", err
			}
			return fmt.Sprintf(" with %d numbers a text", len(vectors[0])), nil
		})
}
