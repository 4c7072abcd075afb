package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"reverie/internal/llm"
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
	if u := checkURL(r, key+"base_url", e.BaseURL, "http://127.0.0.1:11434/v1"); u != nil {
		switch path := strings.TrimRight(u.Path, "/"); {
		case strings.HasSuffix(path, "/embeddings"), strings.HasSuffix(path, "/embed"):
			r.fault(key+"base_url", "leave out the last part; the address ends before it, in /v1 or, for Ollama's own protocol, /api")
		case path == "":
			c.warn("%sbase_url: the address has no path; most servers want /v1 at its end", key)
		}
	}
	if e.Model == "" {
		r.fault(key+"model", "missing; write the model's name on its server, such as nomic-embed-text")
	}
	if e.Timeout < 0 {
		r.fault(key+"timeout", "write how long one request may take, such as 2m")
	}
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

func (b *bot) examineEmbedding(ctx context.Context) []finding {
	const area = "vectors"
	e, err := b.cfg.embedding(b.log)
	if err != nil {
		return []finding{{area, ill, err.Error(), "mend llm.embedding in the configuration"}}
	}
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	began := time.Now()
	vectors, err := e.Embed(ctx, []string{"Good morning."})
	if err != nil {
		return []finding{{area, ill, err.Error(), "see that it runs and answers; its address, key and name stand under llm.embedding in the configuration"}}
	}
	return []finding{{area, well, fmt.Sprintf("%s answers (%s) with %d numbers a text", e.Name(), time.Since(began).Round(time.Millisecond), len(vectors[0])), ""}}
}
