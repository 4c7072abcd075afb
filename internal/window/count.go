package window

import (
	"cmp"
	"context"
	"reverie/internal/store"
)

// Token estimates are corrected per model: each answer reports how many tokens the server counted.
// The ratio of both is stored and scales all estimates.

// Bounds of a plausible ratio. A smaller one means that the server did not read or count
// everything, a larger one that it counts something else.
const (
	minRatio  = 0.67
	maxRatio  = 5.0
	minSample = 300 // tokens; below, message overhead dominates
)

// tokenRatio returns counted per estimated token; false if it is not plausible.
func tokenRatio(estimated, counted int) (float64, bool) {
	if estimated < minSample || counted <= 0 {
		return 1, false
	}
	d := float64(counted) / float64(estimated)
	return d, d >= minRatio && d <= maxRatio
}

// updateRatio returns the ratio after an observation: a larger one counts at once, since too large
// requests are refused, a smaller one by a quarter.
func updateRatio(before, seen float64, answers int) float64 {
	if answers == 0 || seen >= before {
		return seen
	}
	return before + (seen-before)/4
}

// TokenRatio returns the tokens that model counts per estimated one; 1 if unknown.
func (s Store) TokenRatio(ctx context.Context, model string) (float64, error) {
	factor, _, err := s.factor(ctx, model)
	return factor, err
}

// factor returns the stored ratio of a model. answers is how many answers it was learned from.
func (s Store) factor(ctx context.Context, model string) (factor float64, answers int, err error) {
	err = s.DB.QueryRowContext(ctx, `SELECT factor, answers FROM token_ratio WHERE model = ?`, model).Scan(&factor, &answers)
	_, err = store.Found(err)
	return cmp.Or(factor, 1), answers, store.Wrap(err, "window: read how a model counts")
}

// LearnRatio updates the model's ratio from an answer.
func (s Store) LearnRatio(ctx context.Context, model string, estimated, counted int) error {
	seen, ok := tokenRatio(estimated, counted)
	if !ok {
		return nil
	}
	before, answers, err := s.factor(ctx, model)
	if err == nil {
		_, err = s.DB.ExecContext(ctx, `INSERT INTO token_ratio (model, factor, answers, at) VALUES (?1, ?2, 1, ?3)
			ON CONFLICT (model) DO UPDATE SET factor = ?2, answers = answers + 1, at = ?3`,
			model, updateRatio(before, seen, answers), s.Now().UnixMilli())
	}
	return err
}
