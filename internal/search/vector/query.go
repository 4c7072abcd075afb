package vector

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reverie/internal/i18n"
)

// Question is the vector of what is looked for, or nil when there is none in time
// or the model makes nothing of it: then words have to do. What was asked last
// costs nothing, and an embedder that just failed is not waited for.
func (v *Vectors) EmbedQuery(ctx context.Context, text string) []float32 {
	if text = strings.Join(strings.Fields(text), " "); text == "" {
		return nil
	}
	v.mu.RLock()
	asked, answer := v.lastQuery, v.lastVector
	v.mu.RUnlock()
	if text == asked {
		return answer
	}
	if v.health.CoolingDown(v.now()) {
		return nil
	}
	within, cancel := context.WithTimeoutCause(ctx, v.patience, fmt.Errorf("no answer within %s", v.patience))
	defer cancel()
	vectors, err := v.embed(within, []string{text})
	if err != nil && within.Err() != nil {
		err = context.Cause(within)
	}
	if err == nil {
		err = v.ensureSpace(ctx, dimension(vectors))
	}
	switch {
	case ctx.Err() != nil: // nobody waits any more
		return nil
	case err != nil:
		v.health.Failed(v.now(), err)
		v.Wake() // to find out when it is back
		return nil
	}
	v.health.Succeeded()
	v.mu.Lock()
	v.lastQuery, v.lastVector = text, vectors[0]
	v.mu.Unlock()
	return vectors[0]
}

// Status says how far the vectors are.
type Status struct {
	Model       string    `json:"model"`
	Dimension   int       `json:"dimension"` // 0 = not known yet
	Done        int       `json:"done"`      // entries that are read
	Total       int       `json:"total"`
	Unreachable time.Time `json:"unreachable,omitzero"` // since when; zero = it is not
	Reason      string    `json:"reason,omitempty"`     // of that, for the operator
}

// Status says how far the vectors are. It asks no model.
func (v *Vectors) Status(ctx context.Context) Status {
	space := v.Space()
	s := Status{Model: v.embedder.Name(), Dimension: space.Dim}
	err := v.db.QueryRowContext(ctx, `SELECT count(*), count(v.hash)`+docsWithVectors, space.No).Scan(&s.Total, &s.Done)
	if err != nil && ctx.Err() == nil {
		v.log.Warn("how many memories have a vector cannot be counted", "err", err)
	}
	s.Unreachable, s.Reason = v.health.State()
	return s
}

// Settled reports whether there is nothing to be told: all is read.
func (s Status) UpToDate() bool { return s.Unreachable.IsZero() && s.Total == s.Done }

// Line is the status in one line for people, with times in their zone.
func (s Status) Line(zone *time.Location) i18n.Text {
	switch {
	case !s.Unreachable.IsZero():
		return i18n.New("why.vectors_unreachable", "at", s.Unreachable.In(zone).Format("2006-01-02 15:04"))
	case s.Done < s.Total:
		return i18n.New("why.vectors_some", "done", s.Done, "total", s.Total, "model", s.Model)
	}
	return i18n.New("why.vectors_all", "total", s.Total, "model", s.Model)
}
