package encoder

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// Lazy makes vectors with the encoder that is part of the program. It is loaded
// when it is needed, and let go of when it was not needed for a while: a bot that
// waits for somebody to say something should be small.
type Lazy struct {
	log  *slog.Logger
	keep time.Duration // how long it stays loaded

	mu     sync.Mutex
	loaded *Encoder
	rest   *time.Timer
}

// keepLoaded is longer than people think between two messages.
const keepLoaded = 2 * time.Minute

// NewLazy returns a Lazy that is not loaded yet.
func NewLazy(log *slog.Logger) *Lazy { return &Lazy{log: log, keep: keepLoaded} }

// Name implements vector.Embedder.
func (l *Lazy) Name() string { return Model }

// Embed implements vector.Embedder.
func (l *Lazy) Embed(ctx context.Context, texts []string) ([][]float32, error) {
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

func (l *Lazy) load() (*Encoder, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded != nil {
		l.rest.Reset(l.keep)
		return l.loaded, nil
	}
	e, err := Embedded()
	if err != nil {
		return nil, err
	}
	l.loaded, l.rest = e, time.AfterFunc(l.keep, l.release)
	return e, nil
}

func (l *Lazy) release() {
	l.mu.Lock()
	l.loaded = nil
	l.mu.Unlock()
	debug.FreeOSMemory() // an idle program would keep the memory for minutes
	l.log.Debug("the encoder is let go of until it is needed again")
}
