package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// tidy removes vectors that nobody needs any more: of texts that no entry has,
// and of other models once the present one has read everything.
func (v *Vectors) tidy(ctx context.Context) bool {
	space := v.present()
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
	v.mu.Lock()
	v.clear()
	v.mu.Unlock()
	err := v.catchUp(ctx)
	v.following.Unlock()
	if err != nil {
		return err
	}
	if err := v.Complete(ctx, progress); err != nil {
		return err
	}
	if !v.tidy(ctx) && v.present() != 0 {
		return errors.Join(errors.New("vectors that nobody needs could not be removed; try again"), ctx.Err())
	}
	return nil
}

// Verify lists in words where the vectors are not what the entries ask for.
func (v *Vectors) Verify(ctx context.Context) ([]string, error) {
	if err := v.follow(ctx); err != nil {
		return nil, err
	}
	v.following.Lock()
	defer v.following.Unlock()
	var said []string
	rows, err := v.db.QueryContext(ctx, vectorColumns+`WHERE `+indexed, v.space)
	if err != nil {
		return nil, fmt.Errorf("verify vectors: %w", err)
	}
	defer rows.Close()
	damaged, without, wrong := 0, 0, 0
	for rows.Next() {
		var l loaded
		if err := rows.Scan(&l.n, &l.scope, &l.there, &l.past, &l.talk, &l.seq, &l.observed, &l.read, &l.vec); err != nil {
			return nil, fmt.Errorf("verify vectors: %w", err)
		}
		code, err := decodeVector(l.vec, v.dim)
		switch {
		case !l.there:
		case err != nil:
			damaged++
		case !l.read:
			without++
		case !v.holds(l, code):
			wrong++
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("verify vectors: %w", err)
	}
	var orphaned int
	err = v.db.QueryRowContext(ctx, `SELECT count(*) FROM memory_vector WHERE hash NOT IN (SELECT hash FROM memory WHERE state <> 'forgotten')`).Scan(&orphaned)
	if err != nil {
		return nil, fmt.Errorf("verify vectors: %w", err)
	}
	for _, f := range []struct {
		n    int
		what string
	}{{damaged, "vectors are damaged"}, {without, "memories " + noVectorYet}, {wrong, "vectors in memory are not those of the database"}, {orphaned, "vectors belong to no memory"}} {
		if f.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", f.n, f.what))
		}
	}
	return said, nil
}

// noVectorYet is what Verify says of work that is still to be done.
const noVectorYet = "have no vector yet"

// holds reports whether l is in memory as the database has it.
func (v *Vectors) holds(l loaded, code []int8) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if code == nil {
		return v.empty[l.n]
	}
	if v.scopes[l.n] != l.scope {
		return false
	}
	if v.elsewhere {
		return true
	}
	s := v.shelves[l.scope]
	i := s.at[l.n]
	r := s.rows[i]
	return r.past == l.past && r.talk == l.talk && r.seq == l.seq && r.observed == l.observed && slices.Equal(s.code(i), code)
}
