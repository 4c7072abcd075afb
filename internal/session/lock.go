package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reverie/internal/history"
	"reverie/internal/prompt"
	"reverie/internal/store"
)

// TierLock is the tier that the prompt of a room is made for. Between two
// boundaries nothing changes it, whatever is observed meanwhile: a prompt that
// changes in the middle of a conversation is read all over again by the model.
type TierLock struct {
	Room         string        `json:"room"`
	Conversation int64         `json:"conversation"`
	Tier         int           `json:"tier"`
	Window       int           `json:"window"` // tokens, when it was locked
	Source       prompt.Origin `json:"source"` // of the window
	Sure         bool          `json:"sure"`   // false: a guess, which a sure word corrects
	Model        string        `json:"model"`  // and its server
	Settings     string        `json:"-"`      // what the owner had set
	At           time.Time     `json:"locked_at"`
	Reason       string        `json:"reason"` // which boundary it was
}

// The boundaries, at which a tier may change, as a lock's Reason.
const (
	atStart      = "session start"
	atNew        = "new conversation"
	atModel      = "another model"
	atSettings   = "configuration changed"
	atCompaction = "compaction"
	atAnswer     = "the server says how large the window really is"
	atTooLarge   = "the prompt no longer fitted"
)

// next is the lock that holds for a request in a conversation (0 = one that has not
// begun) of what id names, with the owner's settings. byPerson says that the
// request answers a person, and does not go on with a tool's result.
func (l *TierLock) next(d prompt.Decision, room string, conversation int64, id, settings string, byPerson bool, now time.Time) TierLock {
	fresh := TierLock{Room: room, Conversation: conversation, Tier: d.Tier, Window: d.Window, Source: d.Source, Sure: d.Sure,
		Model: id, Settings: settings, At: now}
	switch {
	case l == nil:
		fresh.Reason = atStart
	case l.Model != id:
		fresh.Reason = atModel
	case l.Settings != settings:
		fresh.Reason = atSettings
	case l.Conversation != conversation:
		moved := l.shift(d, atNew, now)
		moved.Conversation = conversation
		return moved
	case !l.Sure && d.Sure && byPerson: // a local server knows its window once it has loaded the model
		return l.take(d, d.Tier, atAnswer, now)
	default:
		return *l
	}
	return fresh
}

// shift is the lock behind a boundary within a room and a model. What is sure does not give
// way to a guess.
func (l *TierLock) shift(d prompt.Decision, reason string, now time.Time) TierLock {
	if d.Tier == l.Tier && d.Sure == l.Sure || l.Sure && !d.Sure {
		return *l
	}
	return l.take(d, d.Tier, reason, now)
}

// take is the lock with another tier and the decision's window.
func (l *TierLock) take(d prompt.Decision, tier int, reason string, now time.Time) TierLock {
	taken := *l
	taken.Tier, taken.Window, taken.Source, taken.Sure, taken.Reason, taken.At = tier, d.Window, d.Source, d.Sure, reason, now
	return taken
}

const lockColumns = `room, conversation, tier, window, source, sure, model, settings, locked_at, reason`

func scanLock(row store.Row) (l TierLock, err error) {
	var at int64
	err = row.Scan(&l.Room, &l.Conversation, &l.Tier, &l.Window, &l.Source, &l.Sure, &l.Model, &l.Settings, &at, &l.Reason)
	l.At = time.UnixMilli(at)
	return l, err
}

// tierLock reads the lock of a room; nil = it has none.
func (m *Manager) tierLock(ctx context.Context, talk history.Talk) (*TierLock, error) {
	l, err := scanLock(m.cfg.DB.QueryRowContext(ctx, `SELECT `+lockColumns+` FROM tier_lock WHERE room = ?`, string(talk)))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("session: read tier: %w", err)
	}
	return &l, nil
}

// TierLocks lists the locks of all rooms, the latest first.
func (m *Manager) TierLocks(ctx context.Context) ([]TierLock, error) {
	locks, err := store.List(ctx, m.cfg.DB, scanLock, `SELECT `+lockColumns+` FROM tier_lock ORDER BY locked_at DESC, room`)
	if err != nil {
		return nil, fmt.Errorf("session: list tiers: %w", err)
	}
	return append([]TierLock{}, locks...), nil // not nil, for JSON
}

func (m *Manager) saveTierLock(ctx context.Context, l TierLock) error {
	_, err := m.cfg.DB.ExecContext(ctx, `INSERT OR REPLACE INTO tier_lock (`+lockColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		l.Room, l.Conversation, l.Tier, l.Window, l.Source, l.Sure, l.Model, l.Settings, l.At.UnixMilli(), l.Reason)
	if err != nil {
		return fmt.Errorf("session: store tier: %w", err)
	}
	return nil
}
