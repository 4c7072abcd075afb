package encoder

import (
	"context"
	"sync"
)

// Lazy makes vectors with the built-in encoder, which it loads on first use.
type lazy struct{ load func() (*Encoder, error) }

// NewLazy returns a Lazy that has loaded nothing.
func NewLazy() lazy { return lazy{sync.OnceValues(Embedded)} }

// Name implements vector.Embedder.
func (lazy) Name() string { return Model }

// Embed implements vector.Embedder.
func (l lazy) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e, err := l.load()
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		vector, unknown, err := e.Encode(ctx, text)
		if err != nil {
			return nil, err
		}
		if unknown <= MaxUnknown {
			out[i] = vector
		}
	}
	return out, nil
}
