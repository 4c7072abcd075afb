package peer

import (
	"context"
	"errors"
	"fmt"
	"html"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// ErrAlone refuses to encrypt a message that nobody but its sender could read.
var ErrAlone = errors.New("nobody else is in the room or invited to it")

// typingFor is how long others see "is writing" unless it is switched off before.
const typingFor = 30 * time.Second

// Say sends plain text and returns the message's event id. It waits for the
// first sync. In an encrypted room the message is encrypted for all devices of
// everybody who is in the room or invited to it.
func (p *Peer) Say(ctx context.Context, room, text string) (string, error) {
	return p.send(ctx, room, plain(text))
}

// SayTo is Say with the people named in front of the text, as clients do when
// somebody is picked from a list: they are told of it as a mention.
func (p *Peer) SayTo(ctx context.Context, room, text string, mention ...string) (string, error) {
	var names, links []string
	mentions := &event.Mentions{}
	for _, user := range mention {
		userID := id.UserID(user)
		name := userID.Localpart()
		if member, err := p.client.StateStore.TryGetMember(ctx, id.RoomID(room), userID); err == nil && member != nil && member.Displayname != "" {
			name = member.Displayname
		}
		mentions.Add(userID)
		names = append(names, name)
		links = append(links, fmt.Sprintf(`<a href="https://matrix.to/#/%s">%s</a>`, userID.String(), html.EscapeString(name)))
	}
	content := plain(text)
	if len(mention) > 0 {
		content.Body = strings.Join(names, ", ") + ": " + text
		content.Format = event.FormatHTML
		content.FormattedBody = strings.Join(links, ", ") + ": " + event.TextToHTML(text)
		content.Mentions = mentions
	}
	return p.send(ctx, room, content)
}

// Reply is Say as an answer to the message eventID, and mentions users in it.
func (p *Peer) Reply(ctx context.Context, room, eventID, text string, mention ...string) (string, error) {
	content := plain(text)
	for _, user := range mention {
		content.Mentions.Add(id.UserID(user))
	}
	content.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID(eventID))
	return p.send(ctx, room, content)
}

// SayIn is Say in the thread of a message, and mentions users there.
func (p *Peer) SayIn(ctx context.Context, room, root, text string, mention ...string) (string, error) {
	content := plain(text)
	content.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(root), id.EventID(root))
	for _, user := range mention {
		content.Mentions.Add(id.UserID(user))
	}
	return p.send(ctx, room, content)
}

// Edit changes what this peer's own message eventID reads.
func (p *Peer) Edit(ctx context.Context, room, eventID, text string) error {
	content := plain(text)
	content.SetEdit(id.EventID(eventID))
	_, err := p.send(ctx, room, content)
	return err
}

// Redact takes the event back, and returns when the homeserver has taken that.
func (p *Peer) Redact(ctx context.Context, room, eventID string) error {
	if _, err := p.client.RedactEvent(ctx, id.RoomID(room), id.EventID(eventID)); err != nil {
		return fmt.Errorf("redact %s: %w", eventID, err)
	}
	return nil
}

// React puts the reaction key to the event.
func (p *Peer) React(ctx context.Context, room, eventID, key string) error {
	if _, err := p.client.SendReaction(ctx, id.RoomID(room), id.EventID(eventID), key); err != nil {
		return fmt.Errorf("react to %s: %w", eventID, err)
	}
	return nil
}

// Typing shows the others that this peer is writing, or no longer. It lasts 30
// seconds at most.
func (p *Peer) Typing(ctx context.Context, room string, on bool) error {
	if _, err := p.client.UserTyping(ctx, id.RoomID(room), on, typingFor); err != nil {
		return fmt.Errorf("typing in %s: %w", room, err)
	}
	return nil
}

func plain(text string) *event.MessageEventContent {
	// Mentions is never nil: without it, some clients guess mentions from the text.
	return &event.MessageEventContent{MsgType: event.MsgText, Body: text, Mentions: &event.Mentions{}}
}

// send is the only way out. The library sends in the clear when it does not know
// that a room is encrypted, and encrypts for nobody when it does not know who is
// in it, so the room's full state is fetched before the first message.
func (p *Peer) send(ctx context.Context, room string, content *event.MessageEventContent) (string, error) {
	return p.sendAs(ctx, room, event.EventMessage, content, mautrix.ReqSendEvent{})
}

// sendAs is send of an event of any type.
func (p *Peer) sendAs(ctx context.Context, room string, kind event.Type, content any, how mautrix.ReqSendEvent) (string, error) {
	roomID := id.RoomID(room)
	if err := p.untilSynced(ctx); err != nil {
		return "", fmt.Errorf("send to %s: %w", room, err)
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	if err := p.know(ctx, roomID); err != nil {
		return "", fmt.Errorf("send to %s: %w", room, err)
	}
	sent, err := p.client.SendMessageEvent(ctx, roomID, kind, content, how)
	for range 3 {
		if !errors.Is(err, crypto.ErrNoGroupSession) {
			break
		}
		// Somebody came in while it was shared: the library dropped it, and sent nothing.
		sent, err = p.client.SendMessageEvent(ctx, roomID, kind, content, how)
	}
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", room, err)
	}
	return sent.EventID.String(), nil
}

// know makes sure that the room's encryption and members are known, and that
// there is somebody to encrypt for.
func (p *Peer) know(ctx context.Context, room id.RoomID) error {
	p.mu.Lock()
	known := p.known[room]
	p.mu.Unlock()
	if !known {
		if _, err := p.client.State(ctx, room); err != nil {
			return fmt.Errorf("fetch the room's state: %w", err)
		}
		p.mu.Lock()
		p.known[room] = true
		p.mu.Unlock()
	}
	encrypted, err := p.client.StateStore.IsEncrypted(ctx, room)
	if err != nil || !encrypted {
		return err
	}
	members, err := p.client.StateStore.GetRoomJoinedOrInvitedMembers(ctx, room)
	if err != nil {
		return err
	}
	for _, member := range members {
		if member != p.client.UserID {
			return nil
		}
	}
	return ErrAlone
}
