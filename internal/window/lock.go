package window

import "time"

// Lock is the tier that the prompt of a room is made for. Between two
// boundaries nothing changes it, whatever is observed meanwhile: a prompt that
// changes in the middle of a conversation is read all over again by the model.
type Lock struct {
	Room         string    `json:"room"`
	Conversation int64     `json:"conversation"`
	Tier         int       `json:"tier"`
	Window       int       `json:"window"` // tokens, when it was locked
	Source       Origin    `json:"source"` // of the window
	Sure         bool      `json:"sure"`   // false: a guess, which a sure word corrects
	Model        string    `json:"model"`  // and its server
	Settings     string    `json:"-"`      // what the owner had set
	At           time.Time `json:"locked_at"`
	Reason       string    `json:"reason"` // which boundary it was
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
func (l *Lock) shift(d Decision, reason string, now time.Time) Lock {
	if d.Tier == l.Tier && d.Sure == l.Sure || l.Sure && !d.Sure {
		return *l
	}
	return l.take(d, d.Tier, reason, now)
}

// take is the lock with another tier and the decision's window.
func (l *Lock) take(d Decision, tier int, reason string, now time.Time) Lock {
	taken := *l
	taken.Tier, taken.Window, taken.Source, taken.Sure, taken.Reason, taken.At = tier, d.Window, d.Source, d.Sure, reason, now
	return taken
}
