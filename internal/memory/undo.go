package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"reverie/internal/store"
)

// Undone is the result of Undo.
type Undone struct {
	Batch    string  `json:"batch"` // the batch of the undo, which can be undone as well
	Undid    string  `json:"of"`    // the batch that was undone
	Restored []Entry `json:"back"`  // entries that are active again
	Retired  []Entry `json:"away"`  // entries that are no longer active
	Changed  []Entry `json:"changed"`
}

// maxUndoneLines limits Lines: an import may have added thousands of entries.
const maxUndoneLines = 20

// Lines describes the change of each entry. If there are many, it describes the first ones and
// gives the number of the others.
func (u Undone) Lines() []string {
	var lines []string
	for _, part := range []struct {
		what    string
		entries []Entry
	}{{"remembered again: ", u.Restored}, {"no longer remembered: ", u.Retired}, {"as before: ", u.Changed}} {
		for _, e := range part.entries {
			lines = append(lines, part.what+e.Text)
		}
	}
	if more := len(lines) - maxUndoneLines; more > 1 {
		lines = append(lines[:min(len(lines), maxUndoneLines)], fmt.Sprintf("and %d more", more))
	}
	return lines
}

// Undo reverts the changes of batch. If that is empty, it reverts the actor's last change in the
// scopes of a that still holds. It does all or nothing. It returns ErrChanged if one of the entries
// was changed since, ErrGone if one was forgotten, and ErrNothing if there is no such change.
func (s *Store) Undo(ctx context.Context, a Access, batch string) (Undone, error) {
	scopes := a.Scopes
	if a.All {
		var err error
		if scopes, err = scopesOf(ctx, s.db, entriesOfBatch, batch); err != nil {
			return Undone{}, err
		}
	}
	var u Undone
	c, err := s.write(ctx, a.Actor, scopes, func(c *change) error {
		u = Undone{Undid: batch}
		if batch == "" {
			var err error
			if u.Undid, err = lastBatch(c, a); err != nil {
				return err
			}
		}
		all, err := selectOps(ctx, c.tx, `WHERE batch = ? ORDER BY seq DESC`, u.Undid)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return ErrNothing
		}
		for _, o := range all {
			current, err := entryByID(ctx, c.tx, o.Entry)
			if err != nil {
				return err
			}
			if !a.Sees(current.Scope) || o.Before != nil && !a.Sees(o.Before.Scope) {
				return ErrNotFound
			}
			undone, err := store.Column[int64](ctx, c.tx, `SELECT seq FROM memory_op WHERE undoes = ? AND undoes <> 0`, o.Seq)
			if err != nil {
				return fmt.Errorf("read the journal of memory: %w", err)
			}
			if len(undone) > 0 || o.After != nil && current.Pinned != o.After.Pinned {
				return ErrChanged
			}
			if err := c.revertOp(current, o, &u); err != nil {
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

// UndoRun reverts what Apply did as batch, the newest operation first. Rows return to their exact
// earlier state, except for counters. If an entry was changed since, only the fields that the batch
// changed are reverted; if its state changed, it is skipped and reported. also is called as by
// Apply. A batch that did nothing, or is undone already, is ErrNothing.
func (s *Store) UndoRun(ctx context.Context, batch string, also func(context.Context, *sql.Tx) error) (Undone, []Skipped, error) {
	scopes, err := scopesOf(ctx, s.db, entriesOfBatch, batch)
	if err != nil {
		return Undone{}, nil, err
	}
	var u Undone
	var skipped []Skipped
	c, err := s.write(ctx, byDream, scopes, func(c *change) error {
		u, skipped = Undone{Undid: batch}, nil
		all, err := selectOps(ctx, c.tx, `o WHERE batch = ?
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
				err = c.revertOp(now, o, &u)
			}
			switch {
			case errors.Is(err, ErrChanged), errors.Is(err, ErrGone):
				skipped = append(skipped, Skipped{Step{ID: o.Entry}, err.Error()})
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
	return u, skipped, nil
}

// lastBatch returns the actor's newest change that still holds. Edits of a person's own file count
// as theirs.
func lastBatch(c *change, a Access) (string, error) {
	var batch string
	err := c.tx.QueryRowContext(c.ctx, `SELECT o.batch FROM memory_op o JOIN memory m ON m.id = o.entry
		WHERE o.undoes = 0 AND NOT EXISTS (SELECT 1 FROM memory_op u WHERE u.undoes = o.seq AND u.undoes <> 0)
		AND (?1 OR (o.actor = ?2 OR o.actor = '`+byFile+`' AND m.scope = ?3) AND m.scope IN (SELECT value FROM json_each(?4)))
		ORDER BY o.seq DESC LIMIT 1`, a.All, a.Actor, Private(a.Actor), store.Array(a.Scopes)).Scan(&batch)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrNothing
	}
	return batch, store.Wrap(err, "read the journal of memory")
}

// scopesOf lists the scopes of the entries whose id is IN condition. condition has one parameter.
func scopesOf(ctx context.Context, db store.DBTX, condition string, arg any) ([]Scope, error) {
	return store.Column[Scope](ctx, db, `SELECT DISTINCT scope FROM memory WHERE id IN `+condition+` ORDER BY scope`, arg)
}

// entriesOfBatch selects the entries that a batch changed.
const entriesOfBatch = `(SELECT entry FROM memory_op WHERE batch = ?)`

// revertOp returns now, the entry of o, to its state before o. It keeps later changes of other
// fields. If its state, successor or scope changed since, it returns ErrChanged.
func (c *change) revertOp(current Entry, o Op, u *Undone) error {
	switch {
	case o.After == nil || current.State == Forgotten:
		return ErrGone
	case current.State != o.After.State || current.By != o.After.By || current.Scope != o.After.Scope:
		return ErrChanged
	}
	reverted := *o.After
	if o.Before == nil {
		reverted.State, reverted.ValidTo = Archived, c.now
	} else {
		reverted = *o.Before
	}
	if current.Hits > o.After.Hits { // hits are counted without a revision
		reverted.Hits, reverted.LastHit = reverted.Hits+current.Hits-o.After.Hits, current.LastHit
	}
	if c.actor != byDream || current.Rev != o.After.Rev {
		reverted.UpdatedAt, reverted.Rev = c.now, current.Rev+1
	}
	if current.Pinned != o.After.Pinned {
		reverted.Pinned = current.Pinned
	}
	if current.Integrity != o.After.Integrity {
		reverted.Integrity = current.Integrity
	}
	if current.Source != o.After.Source {
		reverted.Source = current.Source
	}
	if !current.ObservedAt.Equal(o.After.ObservedAt) {
		reverted.ObservedAt = current.ObservedAt
	}
	op := "note"
	switch {
	case current.Scope != reverted.Scope:
		op, u.Changed = "move", append(u.Changed, reverted)
	case current.State != Active && reverted.State == Active:
		op, u.Restored = "restore", append(u.Restored, reverted)
	case current.State == Active && reverted.State != Active:
		op, u.Retired = "retire", append(u.Retired, reverted)
	case c.actor != byDream || current.State != reverted.State || current.By != reverted.By:
		// A dream's notes on merge targets are not reported.
		u.Changed = append(u.Changed, reverted)
	}
	return c.updateRow(current, reverted, op, o.Seq)
}
