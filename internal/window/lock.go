package window

import "time"

// Lock is the tier of a conversation. It changes only at boundaries, because a changed prompt must
// be read again from its beginning.
type Lock struct {
	Room         string    `json:"room"`
	Conversation int64     `json:"conversation"`
	Tier         int       `json:"tier"`
	Window       int       `json:"window"` // tokens when locked
	Source       Origin    `json:"source"` // of Window
	Sure         bool      `json:"sure"`   // false: estimated, to be corrected by a sure source
	Model        string    `json:"model"`  // with its server
	Settings     string    `json:"-"`      // the owner's settings then
	At           time.Time `json:"locked_at"`
	Reason       string    `json:"reason"` // the boundary at which it was locked
}

// Boundaries at which a tier may change, for Lock.Reason.
const (
	atStart      = "session start"
	atNew        = "new conversation"
	atModel      = "another model"
	atSettings   = "configuration changed"
	atCompaction = "compaction"
	atAnswer     = "the server says how large the window really is"
	atTooLarge   = "the prompt no longer fitted"
)

// next returns the lock for a request: l, or a new one at a boundary. conversation is 0 if it has
// not begun, id the model with its server. With byPerson, the request answers a person.
func (l *Lock) next(d Decision, room string, conversation int64, id, settings string, byPerson bool, now time.Time) Lock {
	fresh := Lock{Room: room, Conversation: conversation, Tier: d.Tier, Window: d.Window, Source: d.Source, Sure: d.Sure,
		Model: id, Settings: settings, At: now}
	switch {
	case l == nil:
		fresh.Reason = atStart
	case l.Model != id:
		fresh.Reason = atModel
	case l.Settings != settings:
		fresh.Reason = atSettings
	case l.Conversation != conversation:
		changed := l.atBoundary(d, atNew, now)
		changed.Conversation = conversation
		return changed
	case !l.Sure && d.Sure && byPerson: // local servers report their window after loading the model
		return l.withTier(d, d.Tier, atAnswer, now)
	default:
		return *l
	}
	return fresh
}

// atBoundary returns the lock after a boundary. An estimate does not replace a sure window.
func (l *Lock) atBoundary(d Decision, reason string, now time.Time) Lock {
	if d.Tier == l.Tier && d.Sure == l.Sure || l.Sure && !d.Sure {
		return *l
	}
	return l.withTier(d, d.Tier, reason, now)
}

// withTier returns the lock with another tier and the window of d.
func (l *Lock) withTier(d Decision, tier int, reason string, now time.Time) Lock {
	next := *l
	next.Tier, next.Window, next.Source, next.Sure, next.Reason, next.At = tier, d.Window, d.Source, d.Sure, reason, now
	return next
}
