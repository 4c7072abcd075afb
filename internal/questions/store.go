package questions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/store"
)

// Store keeps the questions about the entries of Memory, in the same database.
type Store struct {
	DB     *sql.DB
	Memory *memory.Store
}

// Question is two entries that cannot both hold, as only a person can decide. It is open as long as
// both count and are where they were, until somebody says that both hold.
type Question struct {
	ID     int64
	Run    string // the dream that came upon it
	Scope  memory.Scope
	First  memory.Entry // the older one
	Second memory.Entry
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
func (s Store) Wonder(ctx context.Context, all []Question) error {
	insert := `INSERT INTO memory_question (run, scope, first, second, why) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`
	for _, q := range all {
		if _, err := s.DB.ExecContext(ctx, insert, q.Run, q.Scope, q.First.ID, q.Second.ID, q.Why); err != nil {
			return fmt.Errorf("store a question: %w", err)
		}
	}
	return nil
}

// Wondered lists what is a question, or was one. Of the entries it has the ids.
func (s Store) Wondered(ctx context.Context) ([]Question, error) {
	all, err := store.List(ctx, s.DB, scanQuestion, questionColumns)
	return all, store.Wrap(err, "read questions")
}

const questionColumns = `SELECT id, run, scope, first, second, why, notice_event, room, asked FROM memory_question `

func scanQuestion(row store.Row) (q Question, err error) {
	var asked int64
	if err := row.Scan(&q.ID, &q.Run, &q.Scope, &q.First.ID, &q.Second.ID, &q.Why, &q.Event, &q.Room, &asked); err != nil {
		return Question{}, err
	}
	if asked > 0 {
		q.Asked = time.UnixMilli(asked).UTC()
	}
	return q, nil
}

// Questions lists the open questions of what a may see, the oldest first.
func (s Store) Questions(ctx context.Context, a memory.Access) ([]Question, error) {
	all, err := store.List(ctx, s.DB, scanQuestion, questionColumns+`WHERE both_hold = 0 ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	all = slices.DeleteFunc(all, func(q Question) bool { return !a.Sees(q.Scope) })
	open := all[:0]
	for _, q := range all {
		switch err := s.read(ctx, &q); {
		case err == nil:
			open = append(open, q)
		case !errors.Is(err, ErrSettled):
			return nil, err
		}
	}
	return open, nil
}

// read reads the two entries of q. It is ErrSettled if they do not both count where they were.
func (s Store) read(ctx context.Context, q *Question) error {
	for _, e := range []*memory.Entry{&q.First, &q.Second} {
		var err error
		*e, err = s.Memory.Get(ctx, memory.Access{All: true}, e.ID)
		if errors.Is(err, memory.ErrNotFound) || err == nil && (e.State != memory.Active || e.Scope != q.Scope) {
			return ErrSettled
		}
		if err != nil {
			return err
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
func (s Store) Answer(ctx context.Context, a memory.Access, number int64, keep Choice) (kept, other memory.Entry, err error) {
	q, err := scanQuestion(s.DB.QueryRowContext(ctx, questionColumns+`WHERE id = ?`, number))
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && !a.Sees(q.Scope):
		return kept, other, ErrNoQuestion
	case err != nil:
		return kept, other, fmt.Errorf("read questions: %w", err)
	case q.Scope == memory.Shared && !a.Owner && !a.All:
		return kept, other, memory.ErrNotYours
	}
	if err := s.read(ctx, &q); err != nil {
		return kept, other, err
	}
	if keep == KeepBoth {
		_, err := s.DB.ExecContext(ctx, `UPDATE memory_question SET both_hold = 1 WHERE id = ?`, number)
		return q.First, q.Second, err
	}
	kept, other = q.First, q.Second
	if keep == keepSecond {
		kept, other = other, kept
	}
	kept, other, err = s.Memory.ResolveConflict(ctx, a, q.Scope, kept.ID, other.ID, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE memory_question SET both_hold = 0 WHERE id = ?`, number)
		return err
	})
	if errors.Is(err, memory.ErrNotFound) { // a hand edit came in
		err = ErrSettled
	}
	return kept, other, err
}

// assign notes that the questions ids are asked by the notice event in room.
func (s Store) assign(ctx context.Context, event, room string, ids []int64) error {
	_, err := s.DB.ExecContext(ctx, `UPDATE memory_question SET notice_event = ?, room = ?
		WHERE id IN (SELECT value FROM json_each(?)) AND notice_event = ''`, event, room, store.Array(ids))
	return store.Wrap(err, "ask a question")
}

// noteAsked notes that the notice event was said at a time; zero = it will not be, and what it
// was to ask waits again.
func (s Store) noteAsked(ctx context.Context, event string, at time.Time) error {
	query, args := `UPDATE memory_question SET asked = ?2 WHERE notice_event = ?1 AND asked = 0`, []any{event, at.UnixMilli()}
	if at.IsZero() {
		query, args = `UPDATE memory_question SET notice_event = '', room = '' WHERE notice_event = ?1 AND asked = 0`, args[:1]
	}
	_, err := s.DB.ExecContext(ctx, query, args...)
	return store.Wrap(err, "ask a question")
}

// askedSince counts the questions that were asked in room since then.
func (s Store) askedSince(ctx context.Context, room string, since time.Time) (n int, err error) {
	n, err = store.Value[int](ctx, s.DB, `SELECT count(*) FROM memory_question WHERE room = ? AND asked > ?`, room, since.UnixMilli())
	return n, store.Wrap(err, "read questions")
}

// toAsk lists the open questions that the notice event is to ask, and whether those are
// all that it was made for.
func (s Store) toAsk(ctx context.Context, event string) (open []Question, all bool, err error) {
	list, err := s.Questions(ctx, memory.Access{All: true})
	if err != nil {
		return nil, false, err
	}
	for _, q := range list {
		if q.Event == event && q.Asked.IsZero() {
			open = append(open, q)
		}
	}
	n, err := store.Value[int](ctx, s.DB, `SELECT count(*) FROM memory_question WHERE notice_event = ? AND asked = 0`, event)
	return open, len(open) == n, store.Wrap(err, "read questions")
}
