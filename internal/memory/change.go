package memory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// maxQuote is how many characters of the source message an entry stores.
const maxQuote = 1000

// Add stores e in its scope on behalf of actor. It returns the stored entry once it is durable. The
// text becomes one line with folded white space; all fields but text, scope and source have
// defaults. Without an Integrity the entry is foreign. If the scope has the same text already,
// added is false and entry is the existing one, now observed at e.ObservedAt. A text that is empty,
// longer than 2000 characters or holds control characters is refused with an error that says what
// to change. A forgotten text is ErrForgotten, unless e.Source is UserExplicit.
func (s *Store) Add(ctx context.Context, e Entry, actor string) (entry Entry, added bool, err error) {
	if e.Text, err = clean(e.Text); err != nil {
		return Entry{}, false, err
	}
	if err := errors.Join(e.Scope.Check(), ctx.Err()); err != nil {
		return Entry{}, false, err
	}
	e.Quote = text.Cut(e.Quote, maxQuote)
	e.ID, e.By, e.Hits = "", "", 0
	_, err = s.write(ctx, actor, []Scope{e.Scope}, func(c *change) error {
		known, err := entriesWithSameWords(c, e, Active)
		if err != nil {
			return err
		}
		if len(known) > 0 {
			entry = known[0]
			return c.confirm(&entry, e)
		}
		if e.Source == UserExplicit {
			if err := c.removeTombstone(e.Scope, e.Text); err != nil {
				return err
			}
		} else if forgotten, err := c.isForgotten(e.Scope, e.Text); err != nil || forgotten {
			return errors.Join(err, ErrForgotten)
		}
		added = true
		entry, err = c.add(e)
		return err
	})
	if err != nil {
		return Entry{}, false, err
	}
	return entry, added, nil
}

// entriesWithSameWords lists the entries with the same words as e, the oldest first. They are in
// one of states.
func entriesWithSameWords(c *change, e Entry, states ...State) ([]Entry, error) {
	known, err := selectEntries(c.ctx, c.tx, `WHERE scope = ? AND hash = ? AND conversation = ?
		AND state IN (SELECT value FROM json_each(?)) ORDER BY n`,
		e.Scope, text.Hash(e.Text), e.Conversation, store.Array(states))
	words := text.PlainWords(e.Text)
	return slices.DeleteFunc(known, func(k Entry) bool { return text.PlainWords(k.Text) != words }), err
}

// confirm records that existing was said again, as repeated. A more trusted speaker raises its
// integrity. A less trusted one does not change it; the source is recorded if the speaker is at
// least a user.
func (c *change) confirm(existing *Entry, repeated Entry) error {
	if repeated.Integrity < min(existing.Integrity, trust.User) {
		return nil
	}
	if err := c.addSource(existing, repeated); err != nil {
		return err
	}
	at := repeated.ObservedAt
	if at.IsZero() {
		at = c.now
	}
	before := *existing
	existing.Integrity = max(existing.Integrity, repeated.Integrity)
	if repeated.Integrity >= before.Integrity && at.After(existing.ObservedAt) {
		existing.ObservedAt = at.UTC().Truncate(time.Millisecond)
	}
	if *existing == before {
		return nil
	}
	return c.update(before, *existing, "note")
}

// Get returns the entry id. One that a may not see is ErrNotFound.
func (s *Store) Get(ctx context.Context, a Access, id string) (Entry, error) {
	e, err := entryByID(ctx, s.db, id)
	if err == nil && !a.Sees(e.Scope) {
		return Entry{}, ErrNotFound
	}
	return e, err
}

// change runs f on the active entry id if a may see it.
func (s *Store) change(ctx context.Context, a Access, id string, f func(*change, Entry) error) error {
	e, err := s.Get(ctx, a, id)
	if err != nil {
		return err
	}
	_, err = s.write(ctx, a.Actor, []Scope{e.Scope}, func(c *change) error {
		e, err := entryByID(ctx, c.tx, id) // write may have applied a hand edit
		if err != nil {
			return err
		}
		if e.State != Active || !a.Sees(e.Scope) {
			return ErrNotFound
		}
		return f(c, e)
	})
	return err
}

// Share makes a private entry visible to everybody. Only its owner may do that.
func (s *Store) Share(ctx context.Context, a Access, id string) (shared Entry, err error) {
	err = s.change(ctx, a, id, func(c *change, e Entry) error {
		if e.Scope != Private(a.Actor) && !(a.Owner && a.All) {
			return ErrNotYours
		}
		shared, err = c.move(e, Shared)
		return err
	})
	return shared, err
}

// Unshare makes a shared entry private to the person it came from. Only that person or an owner of
// the assistant may do that.
func (s *Store) Unshare(ctx context.Context, a Access, id string) (unshared Entry, err error) {
	err = s.change(ctx, a, id, func(c *change, e Entry) error {
		if e.Scope != Shared {
			return ErrNotYours
		}
		from, err := originalPerson(c.ctx, c.tx, id)
		if err != nil {
			return err
		}
		if from != a.Actor && !a.Owner {
			return ErrNotYours
		}
		unshared, err = c.move(e, Private(cmp.Or(from, a.Actor)))
		return err
	})
	return unshared, err
}

func (c *change) move(e Entry, to Scope) (Entry, error) {
	after := e
	after.Scope = to
	return after, c.update(e, after, "move")
}

// originalPerson returns the person whose private entry id was, or who added it. The entry may have
// been shared since. For a merge it is the person of the first part; "" = no person.
func originalPerson(ctx context.Context, db store.DBTX, id string) (string, error) {
	all, err := selectOps(ctx, db, `WHERE entry = ? ORDER BY seq DESC`, id)
	if err != nil {
		return "", err
	}
	for _, o := range all {
		if o.Before != nil && o.Before.Scope.Person() != "" {
			return o.Before.Scope.Person(), nil
		}
		if o.Op == "add" && strings.HasPrefix(o.Actor, "@") {
			return o.Actor, nil
		}
	}
	parts, err := store.Column[string](ctx, db, `SELECT id FROM memory WHERE successor = ? AND state = 'merged' ORDER BY n LIMIT 1`, id)
	if err != nil || len(parts) == 0 {
		return "", err
	}
	return originalPerson(ctx, db, parts[0])
}

// Filter selects entries for List.
type Filter struct {
	Words  string  // all must be in the text, in any order; empty = any text
	States []State // nil = Active
	First  int     // a limit, applied before Words; 0 = none

	Numbers []int64 // their Entry.N; nil = any, empty = none
	Members bool    // include members, for which files show their head
}

// List lists the entries that a may see, the oldest first.
func (s *Store) List(ctx context.Context, a Access, q Filter) ([]Entry, error) {
	if q.States == nil {
		q.States = []State{Active}
	}
	which := `WHERE `
	if q.Numbers != nil {
		which += `n IN (SELECT value FROM json_each(?6)) AND `
	}
	all, err := selectEntries(ctx, s.db, which+`(?1 OR scope IN (SELECT value FROM json_each(?2)))
		AND state IN (SELECT value FROM json_each(?3))
		AND (?4 OR state <> 'active' OR NOT `+memberCondition+`) ORDER BY n LIMIT iif(?5 > 0, ?5, -1)`,
		a.All, store.Array(a.Scopes), store.Array(q.States), q.Members, q.First, store.Array(q.Numbers))
	if words := strings.Fields(fold(q.Words)); len(words) > 0 {
		all = slices.DeleteFunc(all, func(e Entry) bool {
			text := fold(e.Text)
			return slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
		})
	}
	return all, err
}

// History lists the operations on the entry id, the oldest first. It includes those on its
// predecessors and successors.
func (s *Store) History(ctx context.Context, a Access, id string) ([]Op, error) {
	if _, err := s.Get(ctx, a, id); err != nil {
		return nil, err
	}
	all, err := selectOps(ctx, s.db, `WHERE entry IN (SELECT id FROM `+chain+`) ORDER BY seq`, id)
	if err != nil {
		return nil, err
	}
	// A visible entry may have been moved from a scope that a may not see.
	return slices.DeleteFunc(all, func(o Op) bool {
		return o.Before != nil && !a.Sees(o.Before.Scope) || o.After != nil && !a.Sees(o.After.Scope)
	}), nil
}

// chain selects the entry ?1 with all its predecessors and successors.
const chain = `(WITH RECURSIVE chain (id) AS (VALUES (?1) UNION SELECT m.id FROM chain JOIN memory AS m ON m.successor = chain.id
	UNION SELECT m.successor FROM chain JOIN memory AS m ON m.id = chain.id WHERE m.successor <> '') SELECT id FROM chain)`

// Find lists the active entries that query refers to: the one with that id or exactly that text
// (exact is true), else all that hold its words as whole words, members included. Without a match
// it returns ErrNotFound.
func (s *Store) Find(ctx context.Context, a Access, query string) (found []Entry, exact bool, err error) {
	query = strings.TrimSpace(query)
	if query == "" {
		return nil, false, ErrNotFound
	}
	if strings.HasPrefix(query, "mem_") && !strings.ContainsAny(query, " \n") {
		e, err := s.Get(ctx, a, query)
		if err == nil && e.State == Forgotten {
			err = ErrNotFound
		}
		if err != nil {
			return nil, false, err
		}
		return []Entry{e}, true, nil
	}
	words := strings.Fields(fold(text.PlainWords(query)))
	all, err := s.List(ctx, a, Filter{Members: true})
	if err != nil || len(words) == 0 {
		return nil, false, cmp.Or(err, ErrNotFound)
	}
	for _, e := range all {
		if text.PlainWords(e.Text) == text.PlainWords(query) {
			return []Entry{e}, true, nil
		}
		if line := fold(e.Text); !slices.ContainsFunc(words, func(w string) bool { return !text.WholeWords(line, w) }) {
			found = append(found, e)
		}
	}
	if len(found) == 0 {
		err = ErrNotFound
	}
	return found, false, err
}
