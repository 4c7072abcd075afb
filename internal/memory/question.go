package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Question is two entries that cannot both hold, as only a person can decide. It is open
// as long as both count and are where they were, until somebody says that both hold: taking
// the decision back opens it again.
type Question struct {
	ID     int64
	Run    string // the dream that came upon it
	Scope  Scope
	First  Entry // the older one
	Second Entry
	Why    i18n.Text
	Event  string    // the notice that asks it; empty = it waits to be asked
	Room   string    // where it is asked
	Asked  time.Time // when that was said; zero = not yet
}

// Errors of answers to questions.
var (
	ErrNoQuestion = errors.New("there is no such question here")
	ErrSettled    = errors.New("one of the two counts no more, so nothing is left to decide")
)

// Wonder stores questions, to be asked later: Run, Scope, Why and the ids of First and
// Second count. A pair that was a question before is left as it is.
func (s *Store) Wonder(ctx context.Context, all []Question) error {
	insert := `INSERT INTO memory_question (run, scope, first, second, why) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	for _, q := range all {
		if _, err := s.db.ExecContext(ctx, insert, q.Run, q.Scope, q.First.ID, q.Second.ID, q.Why); err != nil {
			return fmt.Errorf("store a question: %w", err)
		}
	}
	return nil
}

// Wondered lists what is a question, or was one. Of the entries it has the ids.
func (s *Store) Wondered(ctx context.Context) ([]Question, error) {
	all, err := store.List(ctx, s.db, scanQuestion, questionColumns)
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	return all, nil
}

const questionColumns = `SELECT id, run, scope, first, second, why, event, room, asked FROM memory_question `

func scanQuestion(row store.Row) (q Question, err error) {
	var asked int64
	if err := row.Scan(&q.ID, &q.Run, &q.Scope, &q.First.ID, &q.Second.ID, &q.Why, &q.Event, &q.Room, &asked); err != nil {
		return Question{}, err
	}
	if asked > 0 {
		q.Asked = fromMilli(asked)
	}
	return q, nil
}

// Questions lists the open questions of what a may see, the oldest first.
func (s *Store) Questions(ctx context.Context, a Access) ([]Question, error) {
	all, err := store.List(ctx, s.db, scanQuestion, questionColumns+`WHERE both = 0 ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	all = slices.DeleteFunc(all, func(q Question) bool { return !a.sees(q.Scope) })
	open := all[:0]
	for _, q := range all {
		switch err := q.read(ctx, s.db); {
		case err == nil:
			open = append(open, q)
		case !errors.Is(err, ErrSettled):
			return nil, err
		}
	}
	return open, nil
}

// read reads the two entries of q. It is ErrSettled if they do not both count where they were.
func (q *Question) read(ctx context.Context, db store.DBTX) error {
	for _, e := range []*Entry{&q.First, &q.Second} {
		id := e.ID
		var err error
		*e, err = entryByID(ctx, db, id)
		if errors.Is(err, ErrNotFound) {
			return ErrSettled
		}
		if err != nil {
			return err
		}
		if e.State != Active || e.Scope != q.Scope {
			return ErrSettled
		}
	}
	return nil
}

// Choice is what a person says to a question.
type Choice string

// The choices.
const (
	KeepFirst  Choice = "a"
	keepSecond Choice = "b"
	KeepBoth   Choice = "both" // it is never asked again
)

// Answer is what a person says to the question number. The one that does not hold is
// superseded by the other, whatever the dates and whoever said it; Undo takes that back. A
// question that a may not see is ErrNoQuestion; one about what is shared is for an owner, else
// ErrNotYours; if one of the two counts no more, it is ErrSettled. It returns both, as they were.
func (s *Store) Answer(ctx context.Context, a Access, number int64, keep Choice) (kept, other Entry, err error) {
	q, err := scanQuestion(s.db.QueryRowContext(ctx, questionColumns+`WHERE id = ?`, number))
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !a.sees(q.Scope):
		return Entry{}, Entry{}, ErrNoQuestion
	case err != nil:
		return Entry{}, Entry{}, fmt.Errorf("read questions: %w", err)
	case q.Scope == Shared && !a.Owner && !a.All:
		return Entry{}, Entry{}, ErrNotYours
	}
	_, err = s.write(ctx, a.Actor, []Scope{q.Scope}, func(c *change) error {
		if err := q.read(ctx, c.tx); err != nil {
			return err
		}
		kept, other = q.First, q.Second
		if keep == keepSecond {
			kept, other = other, kept
		}
		_, err := c.tx.ExecContext(ctx, `UPDATE memory_question SET both = ? WHERE id = ?`, keep == KeepBoth, number)
		if err != nil || keep == KeepBoth {
			return err
		}
		return c.decide(kept, other, a.Integrity)
	})
	if err != nil {
		return Entry{}, Entry{}, err
	}
	return kept, other, nil
}

// decide puts kept in the place of other, because a person of that integrity says so now.
func (c *change) decide(kept, other Entry, person trust.Integrity) error {
	if err := c.setAll(other, supersededBy(other, kept), "supersede"); err != nil {
		return err
	}
	now := kept
	now.Integrity = max(kept.Integrity, person)
	if c.now.After(kept.ObservedAt) {
		now.ObservedAt = c.now
	}
	if now == kept {
		return nil
	}
	return c.set(kept, now, "note", 0)
}

// supersededBy is e with next in its place. It ceased to hold when next began to; if that was before, it never held.
func supersededBy(e, next Entry) Entry {
	e.State, e.By = Superseded, next.ID
	if !e.ValidTo.IsZero() {
		return e
	}
	if e.ValidTo = e.Since(); next.Since().After(e.Since()) {
		e.ValidTo = next.Since()
	}
	return e
}

// Put notes that the questions ids are asked by the notice event in room.
func (s *Store) Put(ctx context.Context, event, room string, ids []int64) error {
	_, err := s.db.ExecContext(ctx, `UPDATE memory_question SET event = ?, room = ?
		WHERE id IN (SELECT value FROM json_each(?)) AND event = ''`, event, room, store.Array(ids))
	if err != nil {
		return fmt.Errorf("ask a question: %w", err)
	}
	return nil
}

// PutAt notes that the notice event was said at a time; zero = it will not be, and what it
// was to ask waits again.
func (s *Store) PutAt(ctx context.Context, event string, at time.Time) error {
	query, args := `UPDATE memory_question SET asked = ?2 WHERE event = ?1 AND asked = 0`, []any{event, at.UnixMilli()}
	if at.IsZero() {
		query, args = `UPDATE memory_question SET event = '', room = '' WHERE event = ?1 AND asked = 0`, args[:1]
	}
	if _, err := s.db.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("ask a question: %w", err)
	}
	return nil
}

// PutSince counts the questions that were asked in room since then.
func (s *Store) PutSince(ctx context.Context, room string, since time.Time) (n int, err error) {
	query := `SELECT count(*) FROM memory_question WHERE room = ? AND asked > ?`
	if err := s.db.QueryRowContext(ctx, query, room, since.UnixMilli()).Scan(&n); err != nil {
		return 0, fmt.Errorf("read questions: %w", err)
	}
	return n, nil
}

// PutBy lists the open questions that the notice event is to ask, and whether those are
// all that it was made for.
func (s *Store) PutBy(ctx context.Context, event string) (open []Question, all bool, err error) {
	list, err := s.Questions(ctx, Access{All: true})
	if err != nil {
		return nil, false, err
	}
	for _, q := range list {
		if q.Event == event && q.Asked.IsZero() {
			open = append(open, q)
		}
	}
	var n int
	if err := s.db.QueryRowContext(ctx, `SELECT count(*) FROM memory_question WHERE event = ? AND asked = 0`, event).Scan(&n); err != nil {
		return nil, false, fmt.Errorf("read questions: %w", err)
	}
	return open, len(open) == n, nil
}
