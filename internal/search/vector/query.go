package vector

import (
	"context"
	"fmt"
	"strings"
	"time"

	"reverie/internal/i18n"
)

// EmbedQuery returns the vector of a query. It returns nil if the model cannot embed the text or
// does not answer in time; then only words are searched. The last query is cached, and an embedder
// that just failed is not called.
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
	case ctx.Err() != nil: // the caller gave up
		return nil
	case err != nil:
		v.health.Failed(v.now(), err)
		v.Wake() // so that Run notices its recovery
		return nil
	}
	v.health.Succeeded()
	v.mu.Lock()
	v.lastQuery, v.lastVector = text, vectors[0]
	v.mu.Unlock()
	return vectors[0]
}

// Status is the progress and health of the vectors.
type Status struct {
	Model       string    `json:"model"`
	Dimension   int       `json:"dimension"` // 0 = not known yet
	Done        int       `json:"done"`      // embedded documents
	Total       int       `json:"total"`
	Unreachable time.Time `json:"unreachable,omitzero"` // since when; zero = reachable
	Reason      string    `json:"reason,omitempty"`     // the error, for the operator
}

// Status returns the progress and health of the vectors. It does not call the model.
func (v *Vectors) Status(ctx context.Context) Status {
	space := v.Space()
	s := Status{Model: v.embedder.Name(), Dimension: space.Dim}
	err := v.db.QueryRowContext(ctx, `SELECT count(*), count(v.hash)`+docsWithVectors, space.No).Scan(&s.Total, &s.Done)
	if err != nil && ctx.Err() == nil {
		v.log.Warn("the memories with a vector cannot be counted", "err", err)
	}
	s.Unreachable, s.Reason = v.health.State()
	return s
}

// UpToDate reports whether all documents are embedded and the embedder is healthy.
func (s Status) UpToDate() bool { return s.Unreachable.IsZero() && s.Total == s.Done }

// Line describes the status in one line for people, with times in zone.
func (s Status) Line(zone *time.Location) i18n.Text {
	switch {
	case !s.Unreachable.IsZero():
		return i18n.New("why.vectors_unreachable", "at", s.Unreachable.In(zone).Format("2006-01-02 15:04"))
	case s.Done < s.Total:
		return i18n.New("why.vectors_some", "done", s.Done, "total", s.Total, "model", s.Model)
	}
	return i18n.New("why.vectors_all", "total", s.Total, "model", s.Model)
}
