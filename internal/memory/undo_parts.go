package memory

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"reverie/internal/store"
)

// A change of very many entries, such as an import, is taken back in parts, as it
// was made: a row of memory_undo says that it is, and with that row all that it
// takes away is gone from prompts, files, lists and searches. The rest is
// tidying, which whoever comes next completes if it is cut off.

// manyOps is how many operations are taken back in one transaction.
const manyOps = 2000

var errMany = errors.New("too many operations for one transaction")

// standing leaves out the entries that a large undoing takes away and has not
// come to yet. It belongs to a query FROM memory. The plus keeps SQLite from going
// through the whole batch for each entry.
const standing = `(NOT EXISTS (SELECT 1 FROM memory_undo) OR NOT EXISTS (SELECT 1 FROM memory_undo AS u CROSS JOIN memory_op AS o
	WHERE o.entry = memory.id AND o.seq < u.next AND +o.batch = u.batch AND o.op IN ('add', 'restore')))`

// stands reports whether no large undoing is about to take the active entry id away.
func stands(ctx context.Context, db queryer, id string) (bool, error) {
	var ok bool
	if err := db.QueryRowContext(ctx, `SELECT `+standing+` FROM memory WHERE id = ?`, id).Scan(&ok); err != nil {
		return false, fmt.Errorf("read memory: %w", err)
	}
	return ok, nil
}

// standingOf is what of ranked still stands.
func standingOf(ctx context.Context, db *sql.DB, ranked []scored) ([]scored, error) {
	var any bool
	if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM memory_undo)`).Scan(&any); err != nil || !any {
		return ranked, err
	}
	docs := make([]int64, len(ranked))
	for i, s := range ranked {
		docs[i] = s.doc
	}
	numbers, err := json.Marshal(docs)
	if err != nil {
		return nil, err
	}
	gone, err := list[int64](ctx, db, `SELECT n FROM json_each(?) AS j CROSS JOIN memory ON memory.n = j.value WHERE state = 'active' AND NOT `+standing, string(numbers))
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ranked, func(s scored) bool { return slices.Contains(gone, s.doc) }), nil
}

// undoing is a row of memory_undo.
type undoing struct {
	batch, by, actor string
	total            int
	next             int64
}

// undoingNow is the large undoing under way; nil = there is none.
func undoingNow(ctx context.Context, db queryer) (*undoing, error) {
	var u undoing
	err := db.QueryRowContext(ctx, `SELECT batch, by, actor, total, next FROM memory_undo LIMIT 1`).Scan(&u.batch, &u.by, &u.actor, &u.total, &u.next)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read memory: %w", err)
	}
	return &u, nil
}

// Tidy completes what a large undoing that was cut off left, part by part, so that
// others can write meanwhile. Nothing of it is to be seen in any case. If another
// process is at it, or imports, Tidy leaves it to that.
func (s *Store) Tidy(ctx context.Context) error {
	if u, err := undoingNow(ctx, s.db); err != nil || u == nil {
		return err
	}
	free, held, err := store.TryGuard(s.largeLock())
	if err != nil || held {
		return err
	}
	defer free()
	return s.tidy(ctx, nil)
}

func (s *Store) largeLock() string { return filepath.Join(s.dir, "memories", ".import") }

// guardLarge keeps imports and large undoings from each other.
func (s *Store) guardLarge() (func(), error) {
	free, err := store.Guard(s.largeLock())
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return free, nil
}

// finishUndo waits for the large undoing under way, and completes it if it was cut off.
func (s *Store) finishUndo(ctx context.Context, progress func(done, total int)) error {
	free, err := s.guardLarge()
	if err != nil {
		return err
	}
	defer free()
	return s.tidy(ctx, progress)
}

// undoInParts takes back batch, which has many operations.
func (s *Store) undoInParts(ctx context.Context, a Access, batch string, progress func(done, total int)) (Undone, error) {
	free, err := s.guardLarge()
	if err != nil {
		return Undone{}, err
	}
	defer free()
	if err := s.tidy(ctx, nil); err != nil { // somebody else's
		return Undone{}, err
	}
	scopes, err := s.scopesOf(ctx, batch)
	if err != nil {
		return Undone{}, err
	}
	u := Undone{Of: batch}
	for range attempts {
		// Looking at all of it takes time, so nobody waits for it; if something
		// was changed meanwhile, it is looked at again.
		var seen survey
		if seen, err = surveyOf(ctx, s.db, a, batch); err != nil {
			return Undone{}, err
		}
		if u.Batch, err = s.hide(ctx, a, batch, scopes, seen); !errors.Is(err, errChanged) {
			break
		}
	}
	if err != nil {
		return Undone{}, err
	}
	some, err := s.sample(ctx, batch, &u)
	if err != nil {
		return Undone{}, err
	}
	if err := s.tidy(ctx, progress); err != nil {
		s.log.Warn("what was taken back is gone from sight; the rest of the work is done at the next start", "batch", batch, "err", err)
	}
	u.More = max(0, u.More-some)
	return u, nil
}

// survey is what would keep a batch from being taken back.
type survey struct {
	ops, entries, gone, changed int
	last, change                int64
}

func surveyOf(ctx context.Context, db queryer, a Access, batch string) (survey, error) {
	var v survey
	err := db.QueryRowContext(ctx, `SELECT count(*), count(DISTINCT o.entry),
			coalesce(sum(m.state = 'forgotten' OR o.op = 'forget' OR o.after = ''), 0),
			coalesce(sum(o.after <> '' AND (m.state <> o.after ->> 'state' OR m.by_id <> coalesce(o.after ->> 'by', '') OR m.scope <> o.after ->> 'scope'
				OR m.pinned <> coalesce(o.after ->> 'pinned', 0) OR EXISTS (SELECT 1 FROM memory_op AS x WHERE x.undoes = o.seq AND x.undoes <> 0))), 0),
			coalesce(max(o.seq), 0), (SELECT n FROM memory_change)
		FROM memory_op AS o CROSS JOIN memory AS m ON m.id = o.entry WHERE o.batch = ?`, batch).Scan(&v.ops, &v.entries, &v.gone, &v.changed, &v.last, &v.change)
	if err != nil {
		return v, fmt.Errorf("read the journal of memory: %w", err)
	}
	scopes, err := list[Scope](ctx, db, `SELECT m.scope FROM memory_op AS o CROSS JOIN memory AS m ON m.id = o.entry WHERE o.batch = ?1
		UNION SELECT before ->> 'scope' FROM memory_op WHERE batch = ?1 AND before <> ''`, batch)
	if err != nil {
		return v, fmt.Errorf("read the journal of memory: %w", err)
	}
	switch {
	case slices.ContainsFunc(scopes, func(s Scope) bool { return !a.sees(s) }):
		return v, ErrNotFound
	case v.gone > 0:
		return v, ErrGone
	case v.changed > 0:
		return v, ErrChanged
	}
	return v, nil
}

// hide makes the row that takes batch back, if nothing was changed since it was seen.
func (s *Store) hide(ctx context.Context, a Access, batch string, scopes []Scope, seen survey) (by string, err error) {
	c, err := s.write(ctx, a.Actor, scopes, func(c *change) error {
		var n int64
		if err := c.tx.QueryRowContext(ctx, `SELECT n FROM memory_change`).Scan(&n); err != nil {
			return fmt.Errorf("take back: %w", err)
		}
		if n != seen.change {
			return errChanged
		}
		if _, err := c.tx.ExecContext(ctx, `INSERT INTO memory_undo (batch, by, actor, total, next) VALUES (?, ?, ?, ?, ?)`,
			batch, c.batch, a.Actor, seen.ops, seen.last+1); err != nil {
			return fmt.Errorf("take back: %w", err)
		}
		return c.count(scopes)
	})
	if err != nil {
		return "", err
	}
	return c.batch, nil
}

// count notes that what is shown of scopes changed, though no entry did yet.
func (c *change) count(scopes []Scope) error {
	if _, err := c.tx.ExecContext(c.ctx, `UPDATE memory_change SET n = n + 1`); err != nil {
		return fmt.Errorf("take back: %w", err)
	}
	for _, scope := range scopes {
		if _, err := c.tx.ExecContext(c.ctx, `INSERT INTO memory_changes (scope, n) VALUES (?, 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1`, scope); err != nil {
			return fmt.Errorf("take back: %w", err)
		}
		c.scopes = append(c.scopes, scope)
	}
	return nil
}

// sample fills u with some of what becomes of batch, and with how many more there are.
func (s *Store) sample(ctx context.Context, batch string, u *Undone) (int, error) {
	if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM memory_op WHERE batch = ?`, batch).Scan(&u.More); err != nil {
		return 0, fmt.Errorf("read the journal of memory: %w", err)
	}
	all, err := ops(ctx, s.db, `WHERE batch = ? ORDER BY seq DESC LIMIT ?`, batch, maxUndone)
	for _, o := range all {
		was := State("")
		if o.Before != nil {
			was = o.Before.State
		}
		switch {
		case o.After.State == Active && was != Active:
			u.Away = append(u.Away, *o.After)
		case was == Active && o.After.State != Active:
			u.Back = append(u.Back, *o.Before)
		default:
			u.Changed = append(u.Changed, *o.After)
		}
	}
	return len(all), err
}

const (
	firstUndone, smallestUndone, largestUndone = 200, 20, 8000 // operations of one part
	undoHold                                   = 700 * time.Millisecond
)

// grown is how many operations take about undoHold, if size took that long.
func grown(size int, took time.Duration) int {
	return min(max(int(float64(size)*min(2, float64(undoHold)/float64(took))), smallestUndone), largestUndone)
}

// tidy takes back, part by part, what is still to be taken back of the undoings
// under way. Imports and other undoings wait.
func (s *Store) tidy(ctx context.Context, progress func(done, total int)) error {
	if u, err := undoingNow(ctx, s.db); err != nil || u == nil {
		return err
	}
	conn, free, err := roomy(ctx, s.db)
	if err != nil {
		return err
	}
	defer free()
	size, done := firstUndone, 0
	if s.partly > 0 {
		size = s.partly
	}
	for {
		begin := time.Now()
		u, n, err := s.tidyPart(ctx, conn, size)
		if err != nil || u == nil {
			return err
		}
		if done += n; progress != nil && n > 0 {
			progress(min(done, u.total), u.total)
		}
		if s.partly > 0 {
			continue
		}
		took := max(time.Since(begin), time.Millisecond)
		if n > 0 {
			size = grown(size, took)
		}
		if err := pause(ctx, conn); err != nil {
			return err
		}
	}
}

// mergedPages is how much of the index is merged in one transaction.
const mergedPages = 2000

// mergePart merges some of the index, so that nothing is left hidden in it, and
// ends the undoing of batch when there is nothing to merge.
func (s *Store) mergePart(ctx context.Context, on beginner, batch string) error {
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	_, err = s.commitOn(ctx, on, "", func(c *change) error {
		var before, after int
		if err := c.tx.QueryRowContext(ctx, `SELECT total_changes()`).Scan(&before); err != nil {
			return err
		}
		if _, err := c.tx.ExecContext(ctx, `INSERT INTO index_fts (index_fts, rank) VALUES ('merge', ?)`, -mergedPages); err != nil {
			return err
		}
		if err := c.tx.QueryRowContext(ctx, `SELECT total_changes()`).Scan(&after); err != nil || after-before >= 2 {
			return err
		}
		_, err := c.tx.ExecContext(ctx, `DELETE FROM memory_undo WHERE batch = ?`, batch)
		return err
	})
	if err != nil {
		return fmt.Errorf("take back: %w", err)
	}
	return nil
}

// tidyPart takes back up to size operations, or merges some of the index; nil =
// there was nothing to do.
func (s *Store) tidyPart(ctx context.Context, on beginner, size int) (u *undoing, n int, err error) {
	if u, err = undoingNow(ctx, s.db); err != nil || u == nil {
		return nil, 0, err
	}
	if u.next == 0 {
		return u, 0, s.mergePart(ctx, on, u.batch)
	}
	unlock, err := s.lock()
	if err != nil {
		return nil, 0, err
	}
	defer unlock()
	c, err := s.commitOn(ctx, on, u.actor, func(c *change) error {
		c.batch = u.by
		all, err := ops(ctx, c.tx, `WHERE batch = ? AND seq < ? ORDER BY seq DESC LIMIT ?`, u.batch, u.next, size)
		if err != nil {
			return err
		}
		var told Undone
		for _, o := range all {
			// What was done to one of them since is newer, and holds.
			err := c.takeBack(Access{Actor: u.actor, All: true}, o, &told)
			if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrChanged) {
				return err
			}
		}
		next := int64(0)
		if n = len(all); n == size {
			next = all[n-1].Seq
		}
		_, err = c.tx.ExecContext(ctx, `UPDATE memory_undo SET next = ? WHERE batch = ?`, next, u.batch)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("take back: %w", err)
	}
	for _, scope := range c.scopes {
		if err := s.sync(context.WithoutCancel(ctx), scope); err != nil {
			s.log.Error("memory is stored, but its file could not be written; it is tried again", "file", s.File(scope), "err", err)
		}
	}
	return u, n, nil
}
