package main

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"reverie/internal/llm/encoder"
)

// wordsOnly is what the operator reads where nothing makes vectors.
const wordsOnly = "memories are found by their words only: there is nothing that makes vectors; llm.embedding in the configuration names a model that does"

// builtIn makes vectors with the encoder that is part of the program. It is loaded
// when it is needed, and let go of when it was not needed for a while: a bot that
// waits for somebody to say something should be small.
type builtIn struct {
	log  *slog.Logger
	keep time.Duration // how long it stays loaded

	mu     sync.Mutex
	loaded *encoder.Encoder
	rest   *time.Timer
}

// keepEncoder is longer than people think between two messages.
const keepEncoder = 2 * time.Minute

// Name implements memory.Embedder.
func (b *builtIn) Name() string { return encoder.Model }

// Embed implements memory.Embedder.
func (b *builtIn) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	e, err := b.encoder()
	if err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		vector, unknown, err := e.Encode(ctx, text)
		if err != nil {
			return nil, err
		}
		if unknown <= encoder.MaxUnknown {
			out[i] = vector
		}
	}
	return out, nil
}

func (b *builtIn) encoder() (*encoder.Encoder, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loaded != nil {
		b.rest.Reset(b.keep)
		return b.loaded, nil
	}
	e, err := encoder.Embedded()
	if err != nil {
		return nil, err
	}
	b.loaded, b.rest = e, time.AfterFunc(b.keep, b.release)
	return e, nil
}

func (b *builtIn) release() {
	b.mu.Lock()
	b.loaded = nil
	b.mu.Unlock()
	debug.FreeOSMemory() // an idle program would keep the memory for minutes
	b.log.Debug("the encoder is let go of until it is needed again")
}

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
