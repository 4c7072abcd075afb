package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

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
	}{{"known again: ", u.Back}, {"no longer known: ", u.Away}, {"as it was before: ", u.Changed}} {
		for _, e := range part.entries {
			lines = append(lines, part.what+e.Text)
		}
	}
	if more := len(lines) - maxUndone; more > 1 {
		lines = append(lines[:min(len(lines), maxUndone)], fmt.Sprintf("and so with %d more", more))
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
		if scopes, err = s.scopesOf(ctx, batch); err != nil {
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
			if err := c.takeBack(a, o, &u); err != nil {
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

func (s *Store) scopesOf(ctx context.Context, batch string) ([]Scope, error) {
	all, err := store.Column[Scope](ctx, s.db, `SELECT DISTINCT m.scope FROM memory m JOIN memory_op o ON o.entry = m.id WHERE o.batch = ? ORDER BY 1`, batch)
	if err != nil {
		return nil, fmt.Errorf("read the journal of memory: %w", err)
	}
	return all, nil
}

// takeBack does the contrary of o.
func (c *change) takeBack(a Access, o Op, u *Undone) error {
	now, err := entryByID(c.ctx, c.tx, o.Entry)
	if err != nil {
		return err
	}
	if !a.sees(now.Scope) || o.Before != nil && !a.sees(o.Before.Scope) {
		return ErrNotFound
	}
	if o.Op == "forget" || now.State == Forgotten || o.After == nil {
		return ErrGone
	}
	var undone int
	if err := c.tx.QueryRowContext(c.ctx, `SELECT count(*) FROM memory_op WHERE undoes = ? AND undoes <> 0`, o.Seq).Scan(&undone); err != nil {
		return fmt.Errorf("read the journal of memory: %w", err)
	}
	if undone > 0 || now.State != o.After.State || now.By != o.After.By || now.Scope != o.After.Scope || now.Pinned != o.After.Pinned {
		return ErrChanged
	}
	after, op := now, "note"
	if o.Before == nil {
		after.State, after.ValidTo = Archived, c.now
	} else {
		after.Scope, after.State, after.By, after.Pinned = o.Before.Scope, o.Before.State, o.Before.By, o.Before.Pinned
		after.ObservedAt, after.ValidTo = o.Before.ObservedAt, o.Before.ValidTo
		if now.Source == o.After.Source {
			after.Source = o.Before.Source
		}
		if now.Integrity == o.After.Integrity { // nobody said it again since
			after.Integrity = o.Before.Integrity
		}
	}
	switch {
	case after.Scope != now.Scope:
		op, u.Changed = "move", append(u.Changed, after)
	case now.State != Active && after.State == Active:
		after.ValidTo = time.Time{}
		op, u.Back = "restore", append(u.Back, after)
	case now.State == Active && after.State != Active:
		op, u.Away = "retire", append(u.Away, after)
	case after.Pinned && !now.Pinned:
		op, u.Changed = "pin", append(u.Changed, after)
	case !after.Pinned && now.Pinned:
		op, u.Changed = "unpin", append(u.Changed, after)
	default:
		u.Changed = append(u.Changed, after)
	}
	return c.set(now, after, op, o.Seq)
}
