// Package chat is what is said in rooms, as sessions and transports know it.
package chat

import (
	"errors"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/trust"
)

// Inbound is one message that passed the gate and waits for its answer.
type Inbound struct {
	ID       string    // the transport's own id; the same ID is answered once
	Room     string    // the conversation it belongs to
	Sender   string    // who wrote it
	Text     string    // what they wrote, a mention of the bot already removed
	Private  bool      // a direct chat: the sender's private memory may be used
	Unproven bool      // nothing proves that a device of the sender wrote it: it counts as no owner's
	At       time.Time // when the server says it was sent

	Thread  string  // the thread it was written in, by the id of its root; empty = none
	Branch  string  // the thread it is answered in, whose conversation it belongs to; empty = the room's own
	ReplyTo string  // the id of the message that it replies to; empty = none
	Change  Change  // what it does to something said before, see edit.go; empty = it is a message of its own
	Target  string  // of a change: the id of what it is done to, an Inbound's or an Outgoing's
	Quotes  []Quote // what it refers to, and what others had said before it, oldest first
	Files   []File  // what came with it

	// Of a system event, which a Source delivers rather than the transport. Sender is
	// then on whose behalf it is, and Private is found out by the session.
	Event    EventKind // empty: a person wrote it
	Verbatim bool      // Text is said in the room as it is; no model is asked
	Silent   bool      // nothing is said in the room
	Mention  bool      // with Verbatim: in a room with others, Sender is told that it is for them

	// Label is of a system event: whose hands Text went through. Its readers may read Text.
	Label trust.Label
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
	// and how to answer it in words. Who chooses one is an Inbound whose Change is Voted.
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

// Change says what an Inbound does to something that was said before.
type Change string

// The changes. None of them is a message: nothing is ever answered but what they are
// done to, which is their Target.
const (
	// Edited: the sender of Target, a message, gave it the words in Text. At is when
	// Target was sent.
	Edited Change = "edited"
	// TakenBack: Target is not to be seen any more. It is a message, or one of our own.
	TakenBack Change = "taken back"
	// StopThis: the answer Target, or the one to the message Target, is not wanted.
	StopThis Change = "stop"
	// Voted: somebody answered the question Target, one of our own, with the Option whose ID is
	// in Text. Sender is who. A vote that is not encrypted in an encrypted room never comes here.
	Voted Change = "voted"
	// Approved: the acts that Target asked about are approved and may run. It comes from
	// the session itself.
	Approved Change = "approved"
	// AskAgain: the answer Target, or the one to the message Target, is wanted anew.
	AskAgain Change = "retry"
)

// EventKind says what the program itself has to tell the model. The zero value is
// no event but what a person wrote.
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
