package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"reverie/internal/store"
	"reverie/internal/text"
)

// ErrPutAway says that somebody took an entry that says the same out of use after
// the message was written, or corrected it.
var ErrPutAway = errors.New("it was put away or corrected since it was said")

// Learned is what became of an entry that Learn was given.
type Learned struct {
	Entry   Entry // as stored, or the one that says it already
	Added   bool
	Refused error // why it was not stored: ErrForgotten, ErrPutAway or an i18n.Text; nil if it is there
}

// Learn adds all on behalf of actor, as Add does, in one transaction with whatever also
// does in it first: both happen or neither. An error of also ends it. An entry is
// refused, and the others go on, if its text cannot be kept, if it was to be forgotten, or
// if it was put away after it was said; so is one from a message that something else was
// learned from and taken back. What is shared and says the same is as good as its own.
func (s *Store) Learn(ctx context.Context, actor string, all []Entry, also func(context.Context, *sql.Tx) error) ([]Learned, error) {
	out := make([]Learned, len(all))
	var scopes []Scope
	for i, e := range all {
		if err := e.Scope.Check(); err != nil {
			return nil, err
		}
		if e.Text, out[i].Refused = clean(e.Text); out[i].Refused != nil {
			continue
		}
		e.Quote, e.ID, e.By, e.Hits = text.Cut(e.Quote, maxQuote), "", "", 0
		out[i].Entry = e
		scopes = append(scopes, e.Scope)
	}
	_, err := s.write(ctx, actor, sorted(scopes), func(c *change) error {
		if err := also(ctx, c.tx); err != nil {
			return err
		}
		for i := range out {
			if out[i].Refused != nil {
				continue
			}
			if err := c.learn(&out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// learn stores l.Entry, or says why not.
func (c *change) learn(l *Learned) error {
	e := l.Entry
	shared := e
	shared.Scope = Shared
	for _, as := range []Entry{e, shared} {
		known, err := sameFact(c, as, Active)
		if err != nil {
			return err
		}
		if len(known) == 0 || as.Scope != e.Scope && known[0].Integrity < e.Integrity {
			continue
		}
		if l.Entry = known[0]; as.Scope != e.Scope {
			return nil
		}
		return c.bump(&l.Entry, e)
	}
	forgotten, err := c.isForgotten(e.Scope, e.Text)
	if err != nil {
		return err
	}
	if forgotten {
		l.Refused = ErrForgotten
		return nil
	}
	away, err := putAway(c, e)
	if err != nil {
		return err
	}
	if away {
		l.Refused = ErrPutAway
		return nil
	}
	l.Entry, err = c.add(e)
	l.Added = err == nil
	return err
}

// putAway reports whether what e says was taken out of use since it was said, or
// something else that was learned from the same message.
func putAway(c *change, e Entry) (bool, error) {
	if e.Event != "" {
		gone, err := undone(c.ctx, c.tx, e.Event)
		if err != nil || gone {
			return gone, err
		}
	}
	old, err := sameFact(c, e, Archived, Superseded, Merged)
	return slices.ContainsFunc(old, func(o Entry) bool { return !e.ObservedAt.After(o.UpdatedAt) }), err
}

// undone reports whether something that was learned from the message event was forgotten
// or put away.
func undone(ctx context.Context, db store.DBTX, event string) (bool, error) {
	var n int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM memory WHERE event = ? AND state IN ('forgotten', 'archived')`, event).Scan(&n)
	if err != nil {
		return false, fmt.Errorf("read memory: %w", err)
	}
	return n > 0, nil
}

// From lists the active entries that were learned from the message event of scope. gone
// means that nothing more may be learned from it: it was taken back, or something
// learned from it was forgotten or put away.
func (s *Store) From(ctx context.Context, scope Scope, event string) (known []Entry, gone bool, err error) {
	if event == "" {
		return nil, false, nil
	}
	if gone, err = undone(ctx, s.db, event); err != nil || gone {
		return nil, gone, err
	}
	if gone, err = s.index.TakenBack(ctx, scope, event); err != nil {
		return nil, false, fmt.Errorf("read memory: %w", err)
	}
	if gone {
		return nil, true, nil
	}
	known, err = entries(ctx, s.db, `WHERE event = ? AND state = 'active' ORDER BY n`, event)
	return known, false, err
}
