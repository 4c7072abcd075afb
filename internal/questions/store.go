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

// Store keeps questions about entries of Memory, in the same database.
type Store struct {
	DB     *store.DB
	Memory *memory.Store
}

// Question is a pair of entries that cannot both hold. It is open while both are active in Scope
// and no person has kept both.
type Question struct {
	ID      int64
	Run     string // the dream that found it
	Scope   memory.Scope
	First   memory.Entry // the older one
	Second  memory.Entry
	Why     i18n.Text
	Event   string    // the notice that asks it; empty = not assigned yet
	Room    string    // the notice's room
	AskedAt time.Time // when the notice was sent; zero = not yet
}

// Errors of Answer.
var (
	ErrNoQuestion = errors.New("there is no such question here")
	ErrObsolete   = errors.New("one of the two memories no longer counts, so nothing is left to decide")
)

// Add stores a question by Run, Scope, Why and the IDs of First and Second. It returns its ID; a known
// pair is left as it is and gives 0.
func (s Store) Add(ctx context.Context, q Question) (id int64, err error) {
	return store.Value[int64](ctx, s.DB, `INSERT INTO memory_question (run, scope, first, second, why) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING RETURNING id`, q.Run, q.Scope, q.First.ID, q.Second.ID, q.Why)
}

// All lists all questions, also answered ones. Its entries have only IDs.
func (s Store) All(ctx context.Context) ([]Question, error) {
	return store.List(ctx, s.DB, scanQuestion, questionColumns)
}

const questionColumns = `SELECT id, run, scope, first, second, why, notice_event, room, asked FROM memory_question `

func scanQuestion(row store.Row) (q Question, err error) {
	var asked int64
	if err := row.Scan(&q.ID, &q.Run, &q.Scope, &q.First.ID, &q.Second.ID, &q.Why, &q.Event, &q.Room, &asked); err != nil {
		return Question{}, err
	}
	if asked > 0 {
		q.AskedAt = time.UnixMilli(asked).UTC()
	}
	return q, nil
}

// Questions lists the open questions visible to a, oldest first.
func (s Store) Questions(ctx context.Context, a memory.Access) ([]Question, error) {
	all, err := store.List(ctx, s.DB, scanQuestion, questionColumns+`WHERE both_hold = 0 ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("read questions: %w", err)
	}
	all = slices.DeleteFunc(all, func(q Question) bool { return !a.Sees(q.Scope) })
	open := all[:0]
	for _, q := range all {
		switch err := s.loadEntries(ctx, &q); {
		case err == nil:
			open = append(open, q)
		case !errors.Is(err, ErrObsolete):
			return nil, err
		}
	}
	return open, nil
}

// loadEntries loads both entries of q. It returns ErrObsolete if one is no longer active in the question's scope.
func (s Store) loadEntries(ctx context.Context, q *Question) error {
	for _, e := range []*memory.Entry{&q.First, &q.Second} {
		var err error
		*e, err = s.Memory.Get(ctx, memory.Access{All: true}, e.ID)
		if errors.Is(err, memory.ErrNotFound) || err == nil && (e.State != memory.Active || e.Scope != q.Scope) {
			return ErrObsolete
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Choice is the answer to a question.
type Choice string

// The choices.
const (
	KeepFirst  Choice = "a"
	keepSecond Choice = "b"
	KeepBoth   Choice = "both" // both hold; not asked again
)

// Answer applies a person's answer to question number: the rejected entry is superseded by the kept
// one, which memory's Undo reverts. It returns both entries as they were. Errors: ErrNoQuestion if
// a may not see it, memory.ErrNotYours if it is about shared memory and a is not an owner,
// ErrObsolete if an entry is no longer active.
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
	if err := s.loadEntries(ctx, &q); err != nil {
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
		return store.Exec(ctx, tx, `UPDATE memory_question SET both_hold = 0 WHERE id = ?`, number)
	})
	if errors.Is(err, memory.ErrNotFound) { // a hand edit came between
		err = ErrObsolete
	}
	return kept, other, err
}

func (s Store) assign(ctx context.Context, event, room string, ids []int64) error {
	return store.Exec(ctx, s.DB, `UPDATE memory_question SET notice_event = ?, room = ?
		WHERE id IN (SELECT value FROM json_each(?)) AND notice_event = ''`, event, room, store.Array(ids))
}

// markAsked records when the notice event was sent. Zero means that it will not be: its questions
// become unassigned.
func (s Store) markAsked(ctx context.Context, event string, at time.Time) error {
	query, args := `UPDATE memory_question SET asked = ?2 WHERE notice_event = ?1 AND asked = 0`, []any{event, at.UnixMilli()}
	if at.IsZero() {
		query, args = `UPDATE memory_question SET notice_event = '', room = '' WHERE notice_event = ?1 AND asked = 0`, args[:1]
	}
	return store.Exec(ctx, s.DB, query, args...)
}

func (s Store) countAskedSince(ctx context.Context, room string, since time.Time) (n int, err error) {
	return store.Value[int](ctx, s.DB, `SELECT count(*) FROM memory_question WHERE room = ? AND asked > ?`, room, since.UnixMilli())
}

// openOfNotice lists the open questions of the notice event; all reports whether none of its
// questions has closed.
func (s Store) openOfNotice(ctx context.Context, event string) (open []Question, all bool, err error) {
	list, err := s.Questions(ctx, memory.Access{All: true})
	if err != nil {
		return nil, false, err
	}
	for _, q := range list {
		if q.Event == event && q.AskedAt.IsZero() {
			open = append(open, q)
		}
	}
	n, err := store.Value[int](ctx, s.DB, `SELECT count(*) FROM memory_question WHERE notice_event = ? AND asked = 0`, event)
	return open, len(open) == n, store.Wrap(err, "read questions")
}
