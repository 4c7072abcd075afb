package vector

import (
	"cmp"
	"context"
	"time"

	"reverie/internal/llm/encoder"
)

// OpenBuiltIn is Open with the encoder built into the program. A program without one returns
// encoder.ErrNoWeights.
func OpenBuiltIn(ctx context.Context, c Config) (*Vectors, error) {
	if !encoder.BuiltIn() {
		return nil, encoder.ErrNoWeights
	}
	c.Embedder = encoder.NewLazy()
	c.Patience = cmp.Or(c.Patience, 2*time.Second) // a busy computer is slow, but reachable
	return Open(ctx, c)
}
