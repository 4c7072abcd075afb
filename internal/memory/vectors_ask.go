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
	maxQuestions = 128              // vectors of questions that are kept ready
	shyness      = 10 * time.Second // an embedder that failed is left alone by questions
)

// questions keeps the vectors of what was asked last.
type questions struct {
	mu      sync.Mutex
	vectors map[string][]float32
}

func (q *questions) get(text string) ([]float32, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v, there := q.vectors[text]
	return v, there
}

func (q *questions) put(text string, vector []float32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.vectors == nil || len(q.vectors) == maxQuestions {
		q.vectors = map[string][]float32{}
	}
	q.vectors[text] = vector
}

func (q *questions) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.vectors = nil
}

// health is how the embedder does.
type health struct {
	mu     sync.Mutex
	since  time.Time // of its failing; zero = it is well
	late   bool      // it works, but too slowly for questions
	failed time.Time // last
	reason string
}

// down notes a failure and reports whether it is the first. A late vector of a
// built-in embedder is noted too, and a failure after that is the first.
func (h *health) down(now time.Time, err error, late bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	first := h.since.IsZero() || h.late && !late
	if first {
		h.since, h.late = now, late
	}
	h.failed, h.reason = now, err.Error()
	return first
}

// up notes that it works and reports whether it failed before; late is no failure.
func (h *health) up() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := !h.since.IsZero() && !h.late
	h.since, h.late, h.reason = time.Time{}, false, ""
	return again
}

// well reports whether it works, as far as is known.
func (h *health) well() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since.IsZero()
}

// resting reports whether it failed just now.
func (h *health) resting(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.since.IsZero() && now.Sub(h.failed) < shyness
}

func (v *Vectors) failed(ctx context.Context, err error) {
	if v.health.down(v.now(), err, false) {
		v.log.LogAttrs(ctx, slog.LevelWarn, "embeddings cannot be made; memory is searched by words until they can", slog.String("err", err.Error()))
	}
}

// late notes that a question got no vector in time. Nothing is wrong with a built-in
// embedder then: the computer is busy.
func (v *Vectors) late(ctx context.Context, err error) {
	if !v.builtIn {
		v.failed(ctx, err)
		return
	}
	v.health.down(v.now(), err, true)
	v.log.LogAttrs(ctx, slog.LevelDebug, "the computer is busy; a question is searched by words", slog.String("err", err.Error()))
}

func (v *Vectors) works(ctx context.Context) {
	if v.health.up() {
		v.log.LogAttrs(ctx, slog.LevelInfo, "embeddings can be made again")
	}
}

// Question is the vector of what is looked for, or nil when there is none in time
// or the model makes nothing of it: then words have to do. What was asked before
// costs nothing, and an embedder that just failed is not waited for.
func (v *Vectors) Question(ctx context.Context, text string) []float32 {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return nil
	}
	if vector, there := v.asked.get(text); there {
		return vector
	}
	if v.health.resting(v.now()) {
		return nil
	}
	within, cancel := context.WithTimeoutCause(ctx, v.patience, fmt.Errorf("no answer within %s", v.patience))
	defer cancel()
	vectors, err := v.embed(within, []string{text})
	if err == nil {
		if dim := dimension(vectors); dim > 0 {
			err = v.settle(ctx, dim)
		}
	}
	switch {
	case ctx.Err() != nil: // nobody waits any more
		return nil
	case err != nil:
		if within.Err() != nil {
			v.late(ctx, context.Cause(within))
		} else {
			v.failed(ctx, err)
		}
		v.Wake() // to find out when it is back
		return nil
	}
	v.works(ctx)
	v.asked.put(text, vectors[0])
	return vectors[0]
}

// VectorStatus says how far the vectors are.
type VectorStatus struct {
	Model       string    `json:"model"`
	Dimension   int       `json:"dimension"` // 0 = not known yet
	Done        int       `json:"done"`      // entries that are read
	Total       int       `json:"total"`
	Refused     int       `json:"refused,omitempty"`    // entries whose text the model does not take
	Unreachable time.Time `json:"unreachable,omitzero"` // since when; zero = it is not
	Late        time.Time `json:"late,omitzero"`        // since when questions of a built-in embedder get no vector in time
	Reason      string    `json:"reason,omitempty"`     // of either, for the operator
}

// Status says how far the vectors are. It asks no model.
func (v *Vectors) Status(ctx context.Context) VectorStatus {
	s := VectorStatus{Model: v.embedder.Name()}
	var space int64
	var left int
	space, s.Dimension = v.current()
	err := v.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(`+unmade+`), 0),
		coalesce(sum(`+unmade+` AND m.hash IN (SELECT value FROM json_each(?3))), 0)`+withVector,
		space, s.Dimension, v.refusedTexts()).Scan(&s.Total, &left, &s.Refused)
	if err != nil && ctx.Err() == nil {
		v.log.LogAttrs(ctx, slog.LevelWarn, "how many memories have a vector cannot be counted", slog.String("err", err.Error()))
	}
	s.Done = s.Total - left
	v.health.mu.Lock()
	if s.Reason = v.health.reason; v.health.late {
		s.Late = v.health.since
	} else {
		s.Unreachable = v.health.since
	}
	v.health.mu.Unlock()
	return s
}

// Settled reports whether there is nothing to be told: all is read that can be.
func (s VectorStatus) Settled() bool {
	return s.Unreachable.IsZero() && s.Late.IsZero() && s.Total == s.Done
}

// Line is the status in one line for people, with times in their zone.
func (s VectorStatus) Line(zone *time.Location) i18n.Text {
	at := func(t time.Time) string { return t.In(zone).Format("2006-01-02 15:04") }
	switch left := s.Total - s.Done; {
	case !s.Unreachable.IsZero():
		return i18n.New("why.vectors_unreachable", "at", at(s.Unreachable))
	case !s.Late.IsZero():
		return i18n.New("why.vectors_late", "at", at(s.Late))
	case left > s.Refused:
		return i18n.New("why.vectors_some", "done", s.Done, "total", s.Total, "model", s.Model)
	case left > 0:
		return i18n.New("why.vectors_refused", "done", s.Done, "total", s.Total, "model", s.Model, "left", left)
	default:
		return i18n.New("why.vectors_all", "total", s.Total, "model", s.Model)
	}
}
