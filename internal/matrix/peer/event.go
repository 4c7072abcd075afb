package peer

import (
	"context"
	"reverie/internal/matrix/gate"
	"slices"
	"strings"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// eventBuffer is the number of events that wait for their reader. A full buffer does not block the
// sync: the oldest unread event is dropped and logged.
const eventBuffer = 4096

// Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	Message       Kind = "message"       // a new message of another user
	Edit          Kind = "edit"          // another user has edited a message
	Typing        Kind = "typing"        // another user started (On) or stopped typing
	Invited       Kind = "invited"       // Sender invited this peer
	Joined        Kind = "joined"        // Sender has joined the room
	Left          Kind = "left"          // Sender left, declined the invitation or was removed
	PollStarted   Kind = "asked"         // another user's poll: Body is its question, Poll its options
	PollEnded     Kind = "closed"        // the poll ID has ended; Body is the result
	Undecryptable Kind = "undecryptable" // a message whose key is missing; Err is the reason
)

// Event is an action of another user.
type Event struct {
	Kind      Kind
	Room      string
	Sender    string
	ID        string // of the message it is about; for an Edit, of the edited message
	Body      string // of a Message or Edit: the current text
	HTML      string // formatted_body; may be empty
	ReplyTo   string // the message that a Message replies to
	Thread    string // root of its thread; empty = main timeline
	Notice    bool   // m.notice rather than m.text
	Encrypted bool   // arrived encrypted
	Live      bool   // still being written: an Edit will follow (MSC4357)
	On        bool   // Typing: started rather than stopped
	Mentions  string // of a Message: mentioned user IDs, separated by spaces
	Err       error  // Undecryptable: the reason
	File      *File  // of a file message, without its data: see Download; nil = text
	Poll      *Poll  // of PollStarted: its options, see Vote

	content *event.MessageEventContent
}

// Events returns the channel of events, in order. It is never closed.
func (p *Peer) Events() <-chan Event { return p.events }

func (p *Peer) emit(e Event) {
	for {
		select {
		case p.events <- e:
			return
		default:
		}
		select {
		case <-p.events:
			p.mu.Lock()
			p.dropped++
			dropped := p.dropped
			p.mu.Unlock()
			p.log.Warn("events are not being read; the oldest was dropped", "dropped", dropped)
		default:
		}
	}
}

func (p *Peer) onMessage(_ context.Context, evt *event.Event) {
	content := gate.ContentOf(evt)
	if content == nil || evt.Sender == p.client.UserID {
		return
	}
	e := Event{
		Kind: Message, Room: evt.RoomID.String(), Sender: evt.Sender.String(), ID: evt.ID.String(),
		Encrypted: evt.Mautrix.WasEncrypted,
		ReplyTo:   content.OptionalGetRelatesTo().GetReplyTo().String(),
		Thread:    content.OptionalGetRelatesTo().GetThreadParent().String(),
	}
	if content.Mentions != nil {
		var ids []string
		for _, user := range content.Mentions.UserIDs {
			ids = append(ids, user.String())
		}
		e.Mentions = strings.Join(ids, " ")
	}
	if original := content.OptionalGetRelatesTo().GetReplaceID(); original != "" {
		if content.NewContent == nil {
			return // not a valid edit
		}
		e.Kind, e.ID = Edit, original.String()
		content = content.NewContent
	}
	_, e.Live = evt.Content.Raw["org.matrix.msc4357.live"]
	e.Body, e.HTML = content.Body, content.FormattedBody
	e.Notice = content.MsgType == event.MsgNotice
	if e.File = fileOf(content); e.File != nil {
		e.content = content
	}
	p.emit(e)
}

func (p *Peer) onMember(_ context.Context, evt *event.Event) {
	member, ok := evt.Content.Parsed.(*event.MemberEventContent)
	if !ok {
		return
	}
	if previous := evt.Unsigned.PrevContent; previous != nil {
		_ = previous.ParseRaw(event.StateMember) // the crypto handlers may have parsed it already
		if previous.AsMember().Membership == member.Membership {
			return // a profile change
		}
	}
	e := Event{Room: evt.RoomID.String(), Sender: evt.GetStateKey(), ID: evt.ID.String()}
	own := e.Sender == p.UserID()
	switch {
	case own && member.Membership == event.MembershipInvite:
		e.Kind, e.Sender = Invited, evt.Sender.String()
	case own:
		return
	case member.Membership == event.MembershipJoin:
		e.Kind = Joined
	case member.Membership == event.MembershipLeave, member.Membership == event.MembershipBan:
		e.Kind = Left
	default:
		return
	}
	p.emit(e)
}

// onTyping compares the server's list of typing users with the last one.
func (p *Peer) onTyping(_ context.Context, evt *event.Event) {
	content, ok := evt.Content.Parsed.(*event.TypingEventContent)
	if !ok {
		return
	}
	now := slices.DeleteFunc(slices.Clone(content.UserIDs), func(u id.UserID) bool { return u == p.client.UserID })
	slices.Sort(now)
	p.mu.Lock()
	before := p.typing[evt.RoomID]
	p.typing[evt.RoomID] = now
	p.mu.Unlock()
	for _, user := range before {
		if !slices.Contains(now, user) {
			p.emit(Event{Kind: Typing, Room: evt.RoomID.String(), Sender: user.String()})
		}
	}
	for _, user := range now {
		if !slices.Contains(before, user) {
			p.emit(Event{Kind: Typing, Room: evt.RoomID.String(), Sender: user.String(), On: true})
		}
	}
}

func (p *Peer) onUndecryptable(evt *event.Event, err error) {
	if evt.Sender == p.client.UserID {
		return
	}
	p.emit(Event{
		Kind: Undecryptable, Room: evt.RoomID.String(), Sender: evt.Sender.String(), ID: evt.ID.String(),
		Encrypted: true, Err: err,
	})
}
