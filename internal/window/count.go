package window

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Tokens are estimated by the class of their characters, and each model counts them in
// its own way. The server says with each answer how many there were; what that makes of
// the estimate is kept per model, and everything that weighs a window goes by it.

// Bounds of what is believed: a smaller share means that the server did not read, or did
// not count, all that was sent; a larger one that it counts something else.
const (
	leastDense = 0.67
	mostDense  = 5.0
	leastTotal = 300 // tokens; in less the frame of the messages weighs too much
)

// density is how many tokens were counted for one by estimate; false = there is nothing
// to be learned from it.
func density(estimated, counted int) (float64, bool) {
	if estimated < leastTotal || counted <= 0 {
		return 1, false
	}
	d := float64(counted) / float64(estimated)
	return d, d >= leastDense && d <= mostDense
}

// learned is a factor after another observation: at once when more is counted, as a request
// that is too large is refused, and by a quarter of the way when less is.
func learned(before, seen float64, answers int) float64 {
	if answers == 0 || seen >= before {
		return seen
	}
	return before + (seen-before)/4
}

// Dense is how many tokens model counts for one by estimate; 1 = nothing is known.
func (s Store) Dense(ctx context.Context, model string) (float64, error) {
	factor, _, err := s.factor(ctx, model)
	return factor, err
}

// factor is what is stored of a model, and from how many answers it was learned.
func (s Store) factor(ctx context.Context, model string) (factor float64, answers int, err error) {
	err = s.DB.QueryRowContext(ctx, `SELECT factor, answers FROM token_ratio WHERE model = ?`, model).Scan(&factor, &answers)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 1, 0, nil
	case err != nil:
		return 1, 0, fmt.Errorf("window: read how a model counts: %w", err)
	}
	return factor, answers, nil
}

// Learn takes from an answer how its model counts what was estimated.
func (s Store) Learn(ctx context.Context, model string, estimated, counted int) error {
	seen, ok := density(estimated, counted)
	if !ok {
		return nil
	}
	before, answers, err := s.factor(ctx, model)
	if err == nil {
		_, err = s.DB.ExecContext(ctx, `INSERT INTO token_ratio (model, factor, answers, at) VALUES (?1, ?2, 1, ?3)
			ON CONFLICT (model) DO UPDATE SET factor = ?2, answers = answers + 1, at = ?3`,
			model, learned(before, seen, answers), s.Now().UnixMilli())
	}
	return err
}
