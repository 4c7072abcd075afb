// Package window says how many tokens a model reads, and how it counts them. Decide derives the
// window and its tier (1 to 5) from what is known; a Lock keeps the tier of a conversation from one
// boundary to the next. It owns the tables tier_lock, model_window and token_ratio.
package window

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"reverie/internal/store"
)

// Store keeps locks, and what was learned of models, in bot.db.
type Store struct {
	DB       *sql.DB // migrated
	Now      func() time.Time
	Location *time.Location
	Log      *slog.Logger
}

// Request is the request whose tier is asked for.
type Request struct {
	Talk         string // the conversation's room or thread
	Conversation int64  // 0 = one that has not begun
	ByPerson     bool   // it answers a person, and does not go on with a tool's result
}

// Decide is Decide with what the server enforced when it was last seen.
func (s Store) Decide(ctx context.Context, in Inputs) (Decision, error) {
	err := s.recall(ctx, &in)
	return Decide(in), err
}

// recall fills in what the server enforced when it was last seen.
func (s Store) recall(ctx context.Context, in *Inputs) error {
	var seen int64
	err := s.DB.QueryRowContext(ctx, `SELECT tokens, source, seen_at FROM model_window WHERE model = ?`, in.ID).
		Scan(&in.Last.Tokens, &in.Last.By, &seen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("window: read window: %w", err)
	}
	if in.Last.Tokens > 0 {
		in.Last.By = fmt.Sprintf("%s, on %s", in.Last.By, time.UnixMilli(seen).In(s.Location).Format("2006-01-02 15:04"))
	}
	return nil
}

// remember keeps what the server enforces, for when it does not answer.
func (s Store) remember(ctx context.Context, in Inputs) error {
	_, err := s.DB.ExecContext(ctx, `INSERT OR REPLACE INTO model_window (model, tokens, source, seen_at) VALUES (?, ?, ?, ?)`,
		in.ID, in.Server.Tokens, in.Server.By, s.Now().UnixMilli())
	if err != nil {
		return fmt.Errorf("window: remember window: %w", err)
	}
	return nil
}

// Tier is the tier of a request. It is locked, and changes at boundaries only. preview changes nothing.
func (s Store) Tier(ctx context.Context, r Request, in Inputs, preview bool) (int, error) {
	if err := s.recall(ctx, &in); err != nil {
		return 0, err
	}
	lock, err := s.Lock(ctx, r.Talk)
	if err != nil {
		return 0, err
	}
	next := lock.next(Decide(in), r.Talk, r.Conversation, in.ID, in.Settings, r.ByPerson, s.Now())
	if preview {
		return next.Tier, nil
	}
	if in.Server.Tokens > 0 && in.Server.Tokens != in.Last.Tokens {
		err = s.remember(ctx, in)
	}
	if lock == nil || *lock != next {
		err = errors.Join(err, s.relock(ctx, lock, next))
	}
	return next.Tier, err
}

// Compacted tells that the history of talk was rewritten, which the model must read
// anew in any case: the tier may change now. A change of mode is no such thing.
func (s Store) Compacted(ctx context.Context, talk string, in Inputs) error {
	d, err := s.Decide(ctx, in)
	if err != nil {
		return err
	}
	lock, err := s.Lock(ctx, talk)
	if err != nil || lock == nil {
		return err
	}
	if next := lock.shift(d, atCompaction, s.Now()); next != *lock {
		return s.relock(ctx, lock, next)
	}
	return nil
}

// Lower is the tier that a request of tier gets which did not fit into tokens any more; ok is false
// if it is not lower, or the owner chose the tier. keep locks it.
func (s Store) Lower(ctx context.Context, talk string, in Inputs, tier, tokens int) (lower int, keep func() error, ok bool) {
	d, failed := s.Decide(ctx, in)
	lock, missing := s.Lock(ctx, talk)
	lower = min(d.Tier, TierFor(tokens))
	if failed != nil || missing != nil || lock == nil || d.Forced || lower >= tier {
		return 0, nil, false
	}
	next := lock.take(d, lower, atTooLarge, s.Now())
	next.Window = tokens
	return lower, func() error { return s.relock(ctx, lock, next) }, true
}

// relock stores a lock that takes the place of another, which may be nil.
func (s Store) relock(ctx context.Context, old *Lock, next Lock) error {
	if err := s.save(ctx, next); err != nil {
		return err
	}
	if old == nil || old.Tier != next.Tier {
		before := 0
		if old != nil {
			before = old.Tier
		}
		s.Log.Info("tier", "tier", next.Tier, "before", before, "window", next.Window,
			"source", next.Source, "sure", next.Sure, "reason", next.Reason)
	}
	return nil
}

const lockColumns = `room, conversation, tier, window, source, sure, model, settings, locked_at, reason`

func scanLock(row store.Row) (l Lock, err error) {
	var at int64
	err = row.Scan(&l.Room, &l.Conversation, &l.Tier, &l.Window, &l.Source, &l.Sure, &l.Model, &l.Settings, &at, &l.Reason)
	l.At = time.UnixMilli(at)
	return l, err
}

// Lock reads the lock of a conversation's room or thread; nil = it has none.
func (s Store) Lock(ctx context.Context, talk string) (*Lock, error) {
	l, err := scanLock(s.DB.QueryRowContext(ctx, `SELECT `+lockColumns+` FROM tier_lock WHERE room = ?`, talk))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("window: read tier: %w", err)
	}
	return &l, nil
}

// Locks lists all locks, the latest first.
func (s Store) Locks(ctx context.Context) ([]Lock, error) {
	locks, err := store.List(ctx, s.DB, scanLock, `SELECT `+lockColumns+` FROM tier_lock ORDER BY locked_at DESC, room`)
	if err != nil {
		return nil, fmt.Errorf("window: list tiers: %w", err)
	}
	return append([]Lock{}, locks...), nil // not nil, for JSON
}

func (s Store) save(ctx context.Context, l Lock) error {
	_, err := s.DB.ExecContext(ctx, `INSERT OR REPLACE INTO tier_lock (`+lockColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		l.Room, l.Conversation, l.Tier, l.Window, l.Source, l.Sure, l.Model, l.Settings, l.At.UnixMilli(), l.Reason)
	if err != nil {
		return fmt.Errorf("window: store tier: %w", err)
	}
	return nil
}
