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
	Sure         bool          `json:"sure"`   // false: a guess, see settling
	Model        string        `json:"model"`  // and its server
	Settings     string        `json:"-"`      // what the owner had set
	At           time.Time     `json:"locked_at"`
	Reason       string        `json:"reason"` // which boundary it was

	// Candidate is a higher tier, 0 = none, that the window was surely large
	// enough for whenever it was looked at lately: Seen times, last at SeenAt.
	Candidate int       `json:"candidate,omitempty"`
	Seen      int       `json:"seen,omitempty"`
	SeenAt    time.Time `json:"seen_at,omitzero"`
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

const (
	// enough observations in a row, so far apart, make a candidate the tier of the
	// next conversation.
	enough = 3
	apart  = time.Minute

	// settling is how long a tier that was locked on a guess may be corrected by
	// the first sure word: a local server says how large a window is only once it
	// has loaded the model, for its first answer.
	settling = 15 * time.Minute
)

// observe takes note of what is known of the window now. It changes no tier, only
// what may become one at the next boundary, and reports whether there is
// anything new to store.
func (l *TierLock) observe(d prompt.Decision, now time.Time) bool {
	tier := prompt.SafeTier(d.Window)
	if tier <= l.Tier {
		had := l.Seen > 0
		l.Candidate, l.Seen, l.SeenAt = 0, 0, time.Time{}
		return had
	}
	changed := false
	if l.Seen == 0 || tier < l.Candidate {
		l.Candidate, changed = tier, true
	}
	if l.Seen < enough && now.Sub(l.SeenAt) >= apart {
		l.Seen, l.SeenAt, changed = l.Seen+1, now, true
	}
	return changed
}

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
	case !l.Sure && d.Sure && byPerson && now.Sub(l.At) < settling:
		return l.take(d, d.Tier, atAnswer, now)
	default:
		return *l
	}
	return fresh
}

// shift is the lock behind a boundary within a room and a model. It goes up to what
// the window has long been large enough for, and down to what is surely all
// there is. What was only a guess gives way to what is sure.
func (l *TierLock) shift(d prompt.Decision, reason string, now time.Time) TierLock {
	up := min(l.Candidate, prompt.SafeTier(d.Window))
	switch {
	case d.Sure && (!l.Sure || d.Tier < l.Tier):
		return l.take(d, d.Tier, reason, now)
	case l.Seen >= enough && up > l.Tier && !d.Forced:
		return l.take(d, up, reason, now)
	}
	return *l
}

// take is the lock with another tier and the decision's window.
func (l *TierLock) take(d prompt.Decision, tier int, reason string, now time.Time) TierLock {
	taken := *l
	taken.Tier, taken.Window, taken.Source, taken.Sure, taken.Reason, taken.At = tier, d.Window, d.Source, d.Sure, reason, now
	taken.Candidate, taken.Seen, taken.SeenAt = 0, 0, time.Time{}
	return taken
}

const lockColumns = `room, conversation, tier, window, source, sure, model, settings, locked_at, reason, candidate, seen, seen_at`

func scanLock(row store.Row) (l TierLock, err error) {
	var at, seen int64
	err = row.Scan(&l.Room, &l.Conversation, &l.Tier, &l.Window, &l.Source, &l.Sure, &l.Model, &l.Settings, &at, &l.Reason,
		&l.Candidate, &l.Seen, &seen)
	l.At, l.SeenAt = time.UnixMilli(at), moment(seen)
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
	_, err := m.cfg.DB.ExecContext(ctx, `INSERT OR REPLACE INTO tier_lock (`+lockColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		l.Room, l.Conversation, l.Tier, l.Window, l.Source, l.Sure, l.Model, l.Settings, l.At.UnixMilli(), l.Reason, l.Candidate, l.Seen, millis(l.SeenAt))
	if err != nil {
		return fmt.Errorf("session: store tier: %w", err)
	}
	return nil
}

// saveObservation stores what observe noted, unless the tier was locked anew meanwhile.
func (m *Manager) saveObservation(ctx context.Context, l TierLock) error {
	_, err := m.cfg.DB.ExecContext(ctx, `UPDATE tier_lock SET candidate = ?, seen = ?, seen_at = ? WHERE room = ? AND locked_at = ?`,
		l.Candidate, l.Seen, millis(l.SeenAt), l.Room, l.At.UnixMilli())
	if err != nil {
		return fmt.Errorf("session: store observation of a window: %w", err)
	}
	return nil
}
