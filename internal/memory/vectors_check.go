package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// tidy removes vectors that nobody needs any more: of texts that no entry has,
// and of other models once the present one has read everything.
func (v *Vectors) tidy(ctx context.Context) bool {
	space, _ := v.current()
	if space == 0 {
		return false
	}
	const orphans = `hash NOT IN (SELECT hash FROM memory WHERE state <> 'forgotten')`
	for _, which := range []string{`space <> ?1`, `space = ?1 AND ` + orphans} {
		for {
			done, err := v.db.ExecContext(ctx, `DELETE FROM memory_vector WHERE rowid IN (SELECT rowid FROM memory_vector WHERE `+which+` LIMIT 1000)`, space)
			if err != nil {
				v.log.LogAttrs(ctx, slog.LevelWarn, "vectors that nobody needs are still there", slog.String("err", err.Error()))
				return false
			}
			if n, err := done.RowsAffected(); err != nil || n < 1000 {
				break
			}
			if v.sleep(ctx, 50*time.Millisecond) != nil {
				return false
			}
		}
	}
	_, err := v.db.ExecContext(ctx, `DELETE FROM memory_space WHERE no <> ?1 AND NOT EXISTS (SELECT 1 FROM memory_vector WHERE space = no)`, space)
	return err == nil
}

// Rebuild makes what is in memory anew, with the vectors that are damaged or
// missing; those that are good stay. progress may be nil.
func (v *Vectors) Rebuild(ctx context.Context, progress func(done, total int)) error {
	v.following.Lock()
	space, dim := v.current()
	v.reset(space, dim)
	v.following.Unlock()
	if err := v.Complete(ctx, progress); err != nil {
		return err
	}
	if space, _ := v.current(); space != 0 && !v.tidy(ctx) {
		return errors.Join(errors.New("vectors that nobody needs could not be removed; try again"), ctx.Err())
	}
	return nil
}

// Verify lists in words where the vectors are not what the entries ask for.
func (v *Vectors) Verify(ctx context.Context) ([]string, error) {
	var damaged, without, orphaned int
	space, dim := v.current()
	err := v.db.QueryRowContext(ctx, `SELECT coalesce(sum(v.hash IS NOT NULL AND `+unmade+`), 0),
		coalesce(sum(v.hash IS NULL), 0)`+withVector, space, dim).Scan(&damaged, &without)
	if err == nil {
		err = v.db.QueryRowContext(ctx, `SELECT count(*) FROM memory_vector
			WHERE hash NOT IN (SELECT hash FROM memory WHERE state <> 'forgotten')`).Scan(&orphaned)
	}
	if err != nil {
		return nil, fmt.Errorf("verify vectors: %w", err)
	}
	var said []string
	for _, f := range []struct {
		n    int
		what string
	}{{damaged, "vectors are damaged"}, {without, "memories " + noVectorYet}, {orphaned, "vectors belong to no memory"}} {
		if f.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	return said, nil
}

// noVectorYet is what Verify says of work that is still to be done.
const noVectorYet = "have no vector yet"
