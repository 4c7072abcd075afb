package memory

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"reverie/internal/i18n"
)

const (
	shyness    = 10 * time.Second // a server that failed is left alone by questions
	firstPause = time.Second      // after a failure; doubled each time
	lastPause  = 5 * time.Minute
	lookAgain  = 10 * time.Second // for what other processes wrote
)

// health is how an embedder or a server does. It tells the operator when that changes.
type health struct {
	log       *slog.Logger
	bad, good string // what it says

	mu     sync.Mutex
	since  time.Time // of its failing; zero = it is well
	last   time.Time // it failed
	reason string
}

func (h *health) failed(now time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() {
		h.since = now
		h.log.Warn(h.bad, "err", err)
	}
	h.last, h.reason = now, err.Error()
}

func (h *health) works() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.since.IsZero() {
		h.log.Info(h.good)
	}
	h.since, h.reason = time.Time{}, ""
}

// state says since when it fails, and why; zero = it is well.
func (h *health) state() (since time.Time, reason string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.reason
}

// resting reports whether it failed just now.
func (h *health) resting(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.since.IsZero() && now.Sub(h.last) < shyness
}

// waker lets work in the background rest until there is something to do.
type waker struct {
	wake chan struct{}
	nap  func(context.Context, time.Duration) // until Wake
}

func newWaker() waker {
	w := waker{wake: make(chan struct{}, 1)}
	w.nap = func(ctx context.Context, d time.Duration) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		select {
		case <-ctx.Done():
		case <-w.wake:
		}
	}
	return w
}

// Wake tells Run that there may be something to do. It never blocks.
func (w waker) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// repeat calls do until ctx ends, and rests in between as long as do says. While it fails
// it is called ever more rarely.
func (w waker) repeat(ctx context.Context, do func() (time.Duration, error)) error {
	pause := firstPause
	for ctx.Err() == nil {
		rest, err := do()
		if err == nil {
			pause = firstPause
		} else {
			rest, pause = pause, min(2*pause, lastPause)
		}
		w.nap(ctx, rest)
	}
	return nil
}

// Question is the vector of what is looked for, or nil when there is none in time
// or the model makes nothing of it: then words have to do. What was asked last
// costs nothing, and an embedder that just failed is not waited for.
func (v *Vectors) Question(ctx context.Context, text string) []float32 {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return nil
	}
	v.mu.RLock()
	asked, answer := v.asked, v.answer
	v.mu.RUnlock()
	if text == asked {
		return answer
	}
	if v.health.resting(v.now()) {
		return nil
	}
	within, cancel := context.WithTimeoutCause(ctx, v.patience, fmt.Errorf("no answer within %s", v.patience))
	defer cancel()
	vectors, err := v.embed(within, []string{text})
	if err != nil && within.Err() != nil {
		err = context.Cause(within)
	}
	if err == nil {
		err = v.settle(ctx, dimension(vectors))
	}
	switch {
	case ctx.Err() != nil: // nobody waits any more
		return nil
	case err != nil:
		v.health.failed(v.now(), err)
		v.Wake() // to find out when it is back
		return nil
	}
	v.health.works()
	v.mu.Lock()
	v.asked, v.answer = text, vectors[0]
	v.mu.Unlock()
	return vectors[0]
}

// VectorStatus says how far the vectors are.
type VectorStatus struct {
	Model       string    `json:"model"`
	Dimension   int       `json:"dimension"` // 0 = not known yet
	Done        int       `json:"done"`      // entries that are read
	Total       int       `json:"total"`
	Unreachable time.Time `json:"unreachable,omitzero"` // since when; zero = it is not
	Reason      string    `json:"reason,omitempty"`     // of that, for the operator
}

// Status says how far the vectors are. It asks no model.
func (v *Vectors) Status(ctx context.Context) VectorStatus {
	s := VectorStatus{Model: v.embedder.Name()}
	var space int64
	space, s.Dimension = v.current()
	err := v.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(NOT `+unmade+`), 0)`+withVector, space, s.Dimension).Scan(&s.Total, &s.Done)
	if err != nil && ctx.Err() == nil {
		v.log.LogAttrs(ctx, slog.LevelWarn, "how many memories have a vector cannot be counted", slog.String("err", err.Error()))
	}
	s.Unreachable, s.Reason = v.health.state()
	return s
}

// Settled reports whether there is nothing to be told: all is read.
func (s VectorStatus) Settled() bool { return s.Unreachable.IsZero() && s.Total == s.Done }

// Line is the status in one line for people, with times in their zone.
func (s VectorStatus) Line(zone *time.Location) i18n.Text {
	switch {
	case !s.Unreachable.IsZero():
		return i18n.New("why.vectors_unreachable", "at", s.Unreachable.In(zone).Format("2006-01-02 15:04"))
	case s.Done < s.Total:
		return i18n.New("why.vectors_some", "done", s.Done, "total", s.Total, "model", s.Model)
	}
	return i18n.New("why.vectors_all", "total", s.Total, "model", s.Model)
}
