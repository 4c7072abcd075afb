package vector

import (
	"cmp"
	"context"
	"time"

	"reverie/internal/llm/encoder"
)

// OpenBuiltIn is Open with the encoder that is part of the program. A program without one fails
// with encoder.ErrNoWeights.
func OpenBuiltIn(ctx context.Context, c Config) (*Vectors, error) {
	if !encoder.BuiltIn() {
		return nil, encoder.ErrNoWeights
	}
	c.Embedder = encoder.NewLazy()
	c.Patience = cmp.Or(c.Patience, 2*time.Second) // a busy computer is no server that is unreachable
	return Open(ctx, c)
}
