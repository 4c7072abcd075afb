package memory

import (
	"context"
	"database/sql"
	"errors"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// What tests do to entries that the program does in other ways.

// Retire takes an entry out of use. It stays in the journal and can be undone.
func (s *Store) Retire(ctx context.Context, a Access, id string) error {
	return s.change(ctx, a, id, func(c *change, e Entry) error { return c.retire(e) })
}

// Supersede puts a new entry with text in the place of an entry.
func (s *Store) Supersede(ctx context.Context, a Access, id, text string) (next Entry, err error) {
	text, err = clean(text)
	if err != nil {
		return Entry{}, err
	}
	err = s.change(ctx, a, id, func(c *change, e Entry) error {
		next = Entry{Text: text, Scope: e.Scope, Subject: e.Subject, Kind: e.Kind, Pinned: e.Pinned, Source: UserExplicit, Integrity: a.Integrity}
		next, err = c.supersede(e, next)
		return err
	})
	return next, err
}

// Pin makes an entry one that is always shown, or not any more.
func (s *Store) Pin(ctx context.Context, a Access, id string, pinned bool) error {
	return s.change(ctx, a, id, func(c *change, e Entry) error {
		if e.Pinned == pinned {
			return nil
		}
		after, op := e, "unpin"
		if after.Pinned = pinned; pinned {
			op = "pin"
		}
		return c.set(e, after, op, 0)
	})
}

// Append notes text in scope as the assistant's own doing, from words of a person who may
// use it; see Add.
func (s *Store) Append(ctx context.Context, scope Scope, text string) (entry Entry, added bool, err error) {
	return s.Add(ctx, Entry{Scope: scope, Text: text, Source: Assistant, Integrity: trust.User}, string(Assistant))
}

// Unhear takes a message back: it was redacted, or is to be forgotten. One that
// is not there is no error.
func (f *FTS) Unhear(ctx context.Context, scope Scope, event string) error {
	return store.InTx(ctx, f.db, func(tx *sql.Tx) error {
		var n int64
		err := tx.QueryRowContext(ctx, `DELETE FROM memory_turn WHERE scope = ? AND event = ? AND event <> '' RETURNING n`, scope, event).Scan(&n)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return errors.Join(err, f.updateTurns(ctx, tx, n), mergeIndex(ctx, tx))
	})
}

// Complete makes the vectors that are missing, and sends them; progress may be nil.
func (h *Hybrid) Complete(ctx context.Context, progress func(done, total int)) error {
	if err := h.vectors.Complete(ctx, progress); err != nil || h.points == nil {
		return err
	}
	return h.points.Complete(ctx)
}
