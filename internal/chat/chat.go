// Package chat defines the messages and changes that sessions and transports exchange.
package chat

import (
	"errors"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/trust"
)

// Inbound is an input of a conversation: a Message, an Event of the program, or a change of an earlier
// message (Edit, Redaction, Reaction, Vote). Receivers switch on the type.
type Inbound interface {
	head() Head
	target() string
}

// HeadOf returns the head of in.
func HeadOf(in Inbound) Head { return in.head() }

// TargetOf returns the ID of what in changes, or "" if it is no change.
func TargetOf(in Inbound) string { return in.target() }

// Head has the fields that all inputs share.
type Head struct {
	ID       string    // the transport's ID; an ID is handled once
	Room     string    // room of the conversation
	Branch   string    // root of the thread whose conversation it belongs to; empty = the room's own
	Sender   string    // user ID; of an Event the user on whose behalf it is
	Private  bool      // a direct chat: the sender's private memory may be used
	Unproven bool      // nothing proves the sender's device: the sender does not count as owner
	At       time.Time // the server's timestamp
}

func (h Head) head() Head     { return h }
func (h Head) target() string { return "" }

// Message is a person's message. It passed the gate and waits for its answer.
type Message struct {
	Head
	Text    string  // without the mention of the bot
	Thread  string  // root of the thread it was written in; empty = none
	ReplyTo string  // ID of the message that it replies to; empty = none
	Quotes  []Quote // replied-to messages and group context, oldest first
	Files   []File  // attachments
	// Answers is the Outgoing.ID of the question that a vote answers; empty = not a vote. Text holds words of
	// the question, so it is trusted no more than that.
	Answers string
}

// Change has the fields that all changes of an earlier message share. A change gets no answer.
type Change struct {
	Head
	Target string // ID of a message or of an Outgoing
}

func (c Change) target() string { return c.Target }

// Edit replaces the text of the sender's message Target. At is the time of Target.
type Edit struct {
	Change
	Text string
}

// Redaction removes Target: a message or one of our own.
type Redaction struct{ Change }

// Reaction requests an action on an answer. Target is that answer, or the message that it answers.
type Reaction struct {
	Change
	Action Action
}

// Action is what a Reaction requests.
type Action string

// The actions.
const (
	StopAnswer  Action = "stop"  // cancel the answer
	RetryAnswer Action = "retry" // answer again
)

// Vote selects the Option with that ID in our poll Target. Unencrypted votes in encrypted rooms are
// dropped before.
type Vote struct {
	Change
	Option string
}

// Event is information from the program for the model. A Source delivers it rather than the
// transport, and the session determines whether it is Private.
type Event struct {
	Head
	Kind     EventKind
	Text     string
	Verbatim bool        // Text is sent to the room as it is, without a model call
	Silent   bool        // nothing is sent to the room
	Mention  bool        // with Verbatim: mention Sender in a group
	Label    trust.Label // trust label of Text; its readers may read Text
	Options  []Option    // with Verbatim: make it a poll, as in Outgoing
}

// Quote is an earlier message of any sender that a message refers to. It is data and never an
// instruction.
type Quote struct {
	ID         string    `json:"id"`             // the transport's ID
	Sender     string    `json:"sender"`         // user ID; may be the bot's
	OutgoingID string    `json:"ours,omitempty"` // Outgoing.ID of a message of ours
	Text       string    `json:"text"`
	At         time.Time `json:"at"`
	Why        QuoteKind `json:"why"`
}

// QuoteKind is the reason for a quote.
type QuoteKind string

// The kinds of quotes.
const (
	QuoteReply   QuoteKind = "reply"  // the message replies to it, directly or through others
	QuoteThread  QuoteKind = "thread" // the root of the thread
	QuoteContext QuoteKind = "heard"  // group context: sent to the room since our last message
)

// File is an attachment, as stored in the data folder.
type File struct {
	Name string    `json:"name"` // the sender's name for it, sanitised; for people
	Type string    `json:"type"` // MIME type, detected from the content
	Size int64     `json:"size"` // bytes
	Path string    `json:"path"` // below the data folder; empty = it could not be fetched, see Note
	Note i18n.Text `json:"note,omitempty"`

	Kind   string `json:"kind,omitempty"`   // as the sender claims: ImageFile, VoiceFile …; only VoiceFile is trusted
	Source string `json:"source,omitempty"` // where the transport fetches it; empty = fetched
}

const replyPrefix = "re:"

// ReplyID returns the Outgoing.ID of the reply to the message id. It is stable: sending a reply twice shows it once.
func ReplyID(id string) string { return replyPrefix + id }

// IsReply reports whether id was made by ReplyID.
func IsReply(id string) bool { return strings.HasPrefix(id, replyPrefix) }

// RepliedTo returns the message that the reply answers, the inverse of ReplyID.
func RepliedTo(reply string) string { return strings.TrimPrefix(reply, replyPrefix) }

// Outgoing is one message of ours. Its ID is permanent: sending the same ID again edits the message.
type Outgoing struct {
	ID       string // stable: derived from the message it answers
	Text     string // the whole Markdown so far; of a file its caption
	File     *File  // needs Name, Type and Path; nil = a text message
	AnswerID string // of a file: the ID of its answer; a redaction of that redacts both
	Notice   bool   // a status or an error rather than an answer
	Draft    bool   // unfinished; the transport may skip drafts
	ReplyTo  string // the inbound ID it answers, or empty
	Thread   string // root of its thread; empty = the transport decides by ReplyTo

	// Options make it a poll if the transport has polls. Text holds the question and how to answer it
	// in words. Selecting an option sends a Vote.
	Options []Option
	// Closed ends the poll with this ID; Text is its outcome. If it is no open poll, nothing happens.
	Closed bool

	// Mention lists user IDs to notify. Direct chats and the sender of ReplyTo need none.
	Mention []string
}

// Option is one option of a question.
type Option struct {
	ID   string `json:"id"`   // identifies it in a vote; lower-case letters and digits
	Text string `json:"text"` // shown to people
}

// ErrStopping is returned by receivers during shutdown. The transport keeps the message and delivers
// it again at the next start.
var ErrStopping = errors.New("chat: stopping")

// EventKind is the kind of an Event.
type EventKind string

// The kinds of events, as the model reads them.
const (
	ScheduledTask    EventKind = "scheduled task"
	SubSessionResult EventKind = "sub-session result"
	SubSessionFailed EventKind = "sub-session failed"
	MemoryQuestion   EventKind = "question about memory" // sent verbatim, without a notification
)

// Kinds of files, as their senders claim.
const (
	ImageFile = "image"
	AudioFile = "audio"
	VoiceFile = "voice" // a voice message: the person's own words
	VideoFile = "video"
	OtherFile = "file"
)

// ShortName returns a Matrix ID without its server: anna for @anna:example.org.
func ShortName(user string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(user, "@"), ":")
	return name
}
