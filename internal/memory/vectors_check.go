package memory

import (
	"context"
	"errors"
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
