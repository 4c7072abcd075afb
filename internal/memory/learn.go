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

// ErrRetired says that a person retired or corrected an equal entry. That was after the message was
// written.
var ErrRetired = errors.New("it was put away or corrected since it was said")

// Learned is the result of Learn for one entry.
type Learned struct {
	Entry   Entry // as stored, or the existing entry with the same text
	Added   bool
	Refused error // why it was not stored: ErrForgotten, ErrRetired or an i18n.Text; nil if it exists
}

// Learn adds all on behalf of actor, as Add does, in one transaction. also runs first in that
// transaction; its error rolls back everything. Learn refuses an entry, and goes on with the
// others, if its text is invalid, was forgotten, or was retired after it was said. It also refuses
// entries from a message if something learned from that message was forgotten or retired. A shared
// entry with the same text counts as known.
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
	_, err := s.write(ctx, actor, sortedUnique(scopes), func(c *change) error {
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

// learn stores l.Entry, or sets l.Refused.
func (c *change) learn(l *Learned) error {
	e := l.Entry
	shared := e
	shared.Scope = Shared
	for _, as := range []Entry{e, shared} {
		known, err := entriesWithSameWords(c, as, Active)
		if err != nil {
			return err
		}
		if len(known) == 0 || as.Scope != e.Scope && known[0].Integrity < e.Integrity {
			continue
		}
		if l.Entry = known[0]; as.Scope != e.Scope {
			return nil
		}
		return c.confirm(&l.Entry, e)
	}
	forgotten, err := c.isForgotten(e.Scope, e.Text)
	if err != nil {
		return err
	}
	if forgotten {
		l.Refused = ErrForgotten
		return nil
	}
	away, err := retiredSince(c, e)
	if err != nil {
		return err
	}
	if away {
		l.Refused = ErrRetired
		return nil
	}
	l.Entry, err = c.add(e)
	l.Added = err == nil
	return err
}

// retiredSince reports whether the fact of e was retired after e was said. Another fact from the
// same message counts too.
func retiredSince(c *change, e Entry) (bool, error) {
	if e.Event != "" {
		gone, err := sourceRetired(c.ctx, c.tx, e.Event)
		if err != nil || gone {
			return gone, err
		}
	}
	old, err := entriesWithSameWords(c, e, Archived, Superseded, Merged)
	return slices.ContainsFunc(old, func(o Entry) bool { return !e.ObservedAt.After(o.UpdatedAt) }), err
}

// sourceRetired reports whether an entry learned from the message event was forgotten or archived.
func sourceRetired(ctx context.Context, db store.DBTX, event string) (bool, error) {
	return store.Value[bool](ctx, db, `SELECT EXISTS (SELECT 1 FROM memory
		WHERE event = ? AND state IN ('forgotten', 'archived'))`, event)
}

// LearnedFrom lists the active entries learned from the message event of scope. blocked means that
// nothing more may be learned from it: the message was redacted, or an entry from it was forgotten
// or archived.
func (s *Store) LearnedFrom(ctx context.Context, scope Scope, event string) (learned []Entry, blocked bool, err error) {
	if event == "" {
		return nil, false, nil
	}
	if blocked, err = sourceRetired(ctx, s.db, event); err != nil || blocked {
		return nil, blocked, err
	}
	if blocked, err = s.index.IsRedacted(ctx, scope, event); err != nil {
		return nil, false, fmt.Errorf("read memory: %w", err)
	}
	if blocked {
		return nil, true, nil
	}
	learned, err = selectEntries(ctx, s.db, `WHERE event = ? AND state = 'active' ORDER BY n`, event)
	return learned, false, err
}
