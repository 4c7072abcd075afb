package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reverie/internal/store"
)

// Undone is what Undo did.
type Undone struct {
	Batch   string  `json:"batch"` // of the undoing, which can be undone as well
	Of      string  `json:"of"`    // what was taken back
	Back    []Entry `json:"back"`  // what counts again
	Away    []Entry `json:"away"`  // what does not any more
	Changed []Entry `json:"changed"`
}

// maxUndone is how many entries are told of in words: an import is taken back as
// a whole, too.
const maxUndone = 20

// Lines says in words what became of each entry, or of the first and how many more.
func (u Undone) Lines() []string {
	var lines []string
	for _, part := range []struct {
		what    string
		entries []Entry
	}{{"remembered again: ", u.Back}, {"no longer remembered: ", u.Away}, {"as before: ", u.Changed}} {
		for _, e := range part.entries {
			lines = append(lines, part.what+e.Text)
		}
	}
	if more := len(lines) - maxUndone; more > 1 {
		lines = append(lines[:min(len(lines), maxUndone)], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// Undo takes back the changes of batch, or, if that is empty, the last change of
// the actor in the scopes of a that was not taken back yet. All of it happens or
// nothing: ErrChanged if something else was done to one of the entries since,
// ErrGone if one was forgotten, ErrNothing if there is no such change.
func (s *Store) Undo(ctx context.Context, a Access, batch string) (Undone, error) {
	scopes := a.Scopes
	if a.All {
		var err error
		if scopes, err = scopesOf(ctx, s.db, ofBatch, batch); err != nil {
			return Undone{}, err
		}
	}
	var u Undone
	c, err := s.write(ctx, a.Actor, scopes, func(c *change) error {
		u = Undone{Of: batch}
		if batch == "" {
			var err error
			if u.Of, err = lastBatch(c, a); err != nil {
				return err
			}
		}
		all, err := ops(ctx, c.tx, `WHERE batch = ? ORDER BY seq DESC`, u.Of)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return ErrNothing
		}
		for _, o := range all {
			now, err := entryByID(ctx, c.tx, o.Entry)
			if err != nil {
				return err
			}
			if !a.Sees(now.Scope) || o.Before != nil && !a.Sees(o.Before.Scope) {
				return ErrNotFound
			}
			undone, err := store.Column[int64](ctx, c.tx, `SELECT seq FROM memory_op WHERE undoes = ? AND undoes <> 0`, o.Seq)
			if err != nil {
				return fmt.Errorf("read the journal of memory: %w", err)
			}
			if len(undone) > 0 || o.After != nil && now.Pinned != o.After.Pinned {
				return ErrChanged
			}
			if err := c.takeBack(now, o, &u); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Undone{}, err
	}
	u.Batch = c.batch
	return u, nil
}

// UndoRun takes back what Apply did as batch, the newest first: rows are as they were
// before, to the byte, but for what was counted since. An entry that was changed
// otherwise since gets back only what the batch changed; one whose state is another
// by now is left as it is, and named with the reason. also is as for Apply. A batch that
// did nothing, or was taken back already, is ErrNothing.
func (s *Store) UndoRun(ctx context.Context, batch string, also func(context.Context, *sql.Tx) error) (Undone, []Left, error) {
	scopes, err := scopesOf(ctx, s.db, ofBatch, batch)
	if err != nil {
		return Undone{}, nil, err
	}
	var u Undone
	var left []Left
	c, err := s.write(ctx, byDream, scopes, func(c *change) error {
		u, left = Undone{Of: batch}, nil
		all, err := ops(ctx, c.tx, `o WHERE batch = ?
			AND NOT EXISTS (SELECT 1 FROM memory_op u WHERE u.undoes = o.seq AND u.undoes <> 0) ORDER BY seq DESC`, batch)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return ErrNothing
		}
		for _, o := range all {
			now, err := entryByID(ctx, c.tx, o.Entry)
			if err == nil {
				err = c.takeBack(now, o, &u)
			}
			switch {
			case errors.Is(err, ErrChanged), errors.Is(err, ErrGone):
				left = append(left, Left{Step{ID: o.Entry}, err.Error()})
			case err != nil:
				return err
			}
			s.fault("given back")
		}
		if also == nil {
			return nil
		}
		return also(ctx, c.tx)
	})
	if err != nil {
		return Undone{}, nil, err
	}
	u.Batch = c.batch
	return u, left, nil
}

// lastBatch is the newest change of the actor that still holds. What was done in
// a person's own file was done by that person.
func lastBatch(c *change, a Access) (string, error) {
	var batch string
	err := c.tx.QueryRowContext(c.ctx, `SELECT o.batch FROM memory_op o JOIN memory m ON m.id = o.entry
		WHERE o.undoes = 0 AND NOT EXISTS (SELECT 1 FROM memory_op u WHERE u.undoes = o.seq AND u.undoes <> 0)
		AND (?1 OR (o.actor = ?2 OR o.actor = '`+byFile+`' AND m.scope = ?3) AND m.scope IN (SELECT value FROM json_each(?4)))
		ORDER BY o.seq DESC LIMIT 1`, a.All, a.Actor, Private(a.Actor), store.Array(a.Scopes)).Scan(&batch)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrNothing
	}
	if err != nil {
		return "", fmt.Errorf("read the journal of memory: %w", err)
	}
	return batch, nil
}

// scopesOf lists the scopes of the memories that a condition with one parameter holds for.
func scopesOf(ctx context.Context, db store.DBTX, condition string, arg any) ([]Scope, error) {
	all, err := store.Column[Scope](ctx, db, `SELECT DISTINCT scope FROM memory WHERE id IN `+condition+` ORDER BY scope`, arg)
	if err != nil {
		return nil, fmt.Errorf("read memory: %w", err)
	}
	return all, nil
}

// ofBatch are the entries that a batch changed.
const ofBatch = `(SELECT entry FROM memory_op WHERE batch = ?)`

// takeBack makes now, the entry of o, what it was before o, but for what was done to it otherwise since.
// An entry that counts otherwise now is ErrChanged.
func (c *change) takeBack(now Entry, o Op, u *Undone) error {
	switch {
	case o.After == nil || now.State == Forgotten:
		return ErrGone
	case now.State != o.After.State || now.By != o.After.By || now.Scope != o.After.Scope:
		return ErrChanged
	}
	back := *o.After
	if o.Before == nil {
		back.State, back.ValidTo = Archived, c.now
	} else {
		back = *o.Before
	}
	if now.Hits > o.After.Hits { // counted since, without a revision
		back.Hits, back.LastHit = back.Hits+now.Hits-o.After.Hits, now.LastHit
	}
	if c.actor != byDream || now.Rev != o.After.Rev {
		back.UpdatedAt, back.Rev = c.now, now.Rev+1
	}
	if now.Pinned != o.After.Pinned {
		back.Pinned = now.Pinned
	}
	if now.Integrity != o.After.Integrity {
		back.Integrity = now.Integrity
	}
	if now.Source != o.After.Source {
		back.Source = now.Source
	}
	if !now.ObservedAt.Equal(o.After.ObservedAt) {
		back.ObservedAt = now.ObservedAt
	}
	op := "note"
	switch {
	case now.Scope != back.Scope:
		op, u.Changed = "move", append(u.Changed, back)
	case now.State != Active && back.State == Active:
		op, u.Back = "restore", append(u.Back, back)
	case now.State == Active && back.State != Active:
		op, u.Away = "retire", append(u.Away, back)
	case c.actor != byDream || now.State != back.State || now.By != back.By: // of a dream not where others were only put together in it
		u.Changed = append(u.Changed, back)
	}
	return c.put(now, back, op, o.Seq)
}
