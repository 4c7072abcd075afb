// Package chat is what is said in rooms, as sessions and transports know it.
package chat

import (
	"errors"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/trust"
)

// Inbound is what comes into a conversation: a Message, an Event of the program, or what embeds a Change to
// something said before (Edit, Redaction, Reaction, Vote). Who works on it switches on the type.
type Inbound interface {
	head() Head
	target() string
}

// HeadOf is the head of in.
func HeadOf(in Inbound) Head { return in.head() }

// TargetOf is what in changes; empty if it is no change.
func TargetOf(in Inbound) string { return in.target() }

// Head is what all that comes in has in common.
type Head struct {
	ID       string    // the transport's own id; the same ID is worked on once
	Room     string    // the conversation it belongs to
	Branch   string    // the thread it is answered in, whose conversation it belongs to; empty = the room's own
	Sender   string    // who did it; of an Event on whose behalf it is
	Private  bool      // a direct chat: the sender's private memory may be used
	Unproven bool      // nothing proves that a device of the sender did it: it counts as no owner's
	At       time.Time // when the server says it was sent
}

func (h Head) head() Head     { return h }
func (h Head) target() string { return "" }

// Message is what a person wrote. It passed the gate and waits for its answer.
type Message struct {
	Head
	Text    string  // a mention of the bot already removed
	Thread  string  // the thread it was written in, by the id of its root; empty = none
	ReplyTo string  // the id of the message that it replies to; empty = none
	Quotes  []Quote // what it refers to, and what others had said before it, oldest first
	Files   []File  // what came with it
}

// Change is what all changes to something said before have in common. Nothing answers a change itself.
type Change struct {
	Head
	Target string // the id of a message or of an Outgoing
}

func (c Change) target() string { return c.Target }

// Edit gives the message Target, of the same sender, the words Text. At is when Target was sent.
type Edit struct {
	Change
	Text string
}

// Redaction takes Target away, a message or one of our own: it is not to be seen any more.
type Redaction struct{ Change }

// Reaction is a wish for the answer Target, or the one to the message Target.
type Reaction struct {
	Change
	Wish Wish
}

// Wish is what a Reaction asks for.
type Wish string

// The wishes.
const (
	StopThis Wish = "stop"  // the answer is not wanted
	AskAgain Wish = "retry" // the answer is wanted anew
)

// Vote answers the question Target, one of our own, with the Option of that ID. One that is not encrypted
// in an encrypted room never comes here.
type Vote struct {
	Change
	Option string
}

// Event is what the program itself has to tell the model. A Source delivers it rather than the
// transport, and the session finds out whether it is Private.
type Event struct {
	Head
	Kind     EventKind
	Text     string
	Verbatim bool        // Text is said in the room as it is; no model is asked
	Silent   bool        // nothing is said in the room
	Mention  bool        // with Verbatim: in a room with others, Sender is told that it is for them
	Label    trust.Label // whose hands Text went through; its readers may read Text
}

// Quote is what somebody else said, or the same person before: data that the
// message refers to, and never an order. Anybody may have written it.
type Quote struct {
	ID     string    `json:"id"`             // the transport's
	Sender string    `json:"sender"`         // who wrote it; may be us
	Ours   string    `json:"ours,omitempty"` // it is a message of ours: the Outgoing.ID it was said under
	Text   string    `json:"text"`
	At     time.Time `json:"at"`
	Why    QuoteKind `json:"why"`
}

// QuoteKind says how a quote came to be there.
type QuoteKind string

// The kinds of quotes.
const (
	QuoteReply  QuoteKind = "reply"  // the message replies to it, at once or over others
	QuoteThread QuoteKind = "thread" // it is the root of the thread
	QuoteHeard  QuoteKind = "heard"  // it was said in the room since we spoke last
)

// File is something that came with a message, as it is kept in the data folder.
type File struct {
	Name string    `json:"name"` // as its sender calls it, made harmless; for people
	Type string    `json:"type"` // MIME type, found out from the content
	Size int64     `json:"size"` // bytes
	Path string    `json:"path"` // below the data folder; empty = it could not be had, and Note says why
	Note i18n.Text `json:"note,omitempty"`

	Kind   string `json:"kind,omitempty"`   // what its sender says it is: ImageFile, VoiceFile …; only voice is taken at that
	Source string `json:"source,omitempty"` // where the transport fetches it; empty = that is done
}

// Outgoing is one message of ours. Its ID names it for good: saying the same ID
// again changes what the message reads, it never makes a second one.
type Outgoing struct {
	ID      string // stable: derived from the message it answers
	Text    string // Markdown, all of it so far; of a file its caption
	File    *File  // what is sent: Name, Type and Path are needed; nil = a message in words
	Of      string // of a file: the answer that it was sent for; who takes that out of a room takes both
	Notice  bool   // a status or an error rather than an answer
	Draft   bool   // more will come; the transport may thin drafts out
	ReplyTo string // the inbound ID it answers, or empty
	Thread  string // the thread it belongs into, by the id of its root; empty = the transport decides, by ReplyTo

	// Options make it a question: a poll where the transport has polls. Text holds the question
	// and how to answer it in words. Who chooses one sends a Vote.
	Options []Option

	// Mention is whom it is for, by user id: they are told of it as of a mention. Who
	// is alone with us needs none, and who is answered by ReplyTo is told anyway.
	Mention []string
}

// Option is one answer that a question offers.
type Option struct {
	ID   string `json:"id"`   // names it in the vote; lower-case letters
	Text string `json:"text"` // what people read
}

// ErrStopping is returned by who takes messages once the end was asked for. The message stays with
// the transport, which delivers it again at the next start.
var ErrStopping = errors.New("chat: stopping")

// EventKind says what an Event tells.
type EventKind string

// The kinds of system events, as the model reads them.
const (
	ScheduledTask    EventKind = "scheduled task"
	SubSessionResult EventKind = "sub-session result"
	SubSessionFailed EventKind = "sub-session failed"
	MemoryQuestion   EventKind = "question about memory" // said as it is; nobody is notified
)

// Kinds of files, as their senders call them.
const (
	ImageFile = "image"
	AudioFile = "audio"
	VoiceFile = "voice" // a voice message: the person's own words
	VideoFile = "video"
	OtherFile = "file"
)
