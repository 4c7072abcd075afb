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

// ErrAlone reports that a message would be encrypted without any recipient.
var ErrAlone = errors.New("nobody else is in the room or invited to it")

// typingFor is the timeout of a typing notice.
const typingFor = 30 * time.Second

// Say sends a text message and returns its event ID. It waits for the first sync. In an encrypted
// room it encrypts for all devices of the joined and invited members.
func (p *Peer) Say(ctx context.Context, room, text string) (string, error) {
	return p.send(ctx, room, plain(text))
}

// SayTo is Say with the people's names in front of the text and in m.mentions, as clients do it.
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

// Reply is Say as a reply to the message eventID, with mentions.
func (p *Peer) Reply(ctx context.Context, room, eventID, text string, mention ...string) (string, error) {
	content := plain(text)
	for _, user := range mention {
		content.Mentions.Add(id.UserID(user))
	}
	content.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID(eventID))
	return p.send(ctx, room, content)
}

// SayIn is Say in the thread of root, with mentions.
func (p *Peer) SayIn(ctx context.Context, room, root, text string, mention ...string) (string, error) {
	content := plain(text)
	content.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(root), id.EventID(root))
	for _, user := range mention {
		content.Mentions.Add(id.UserID(user))
	}
	return p.send(ctx, room, content)
}

// Edit replaces the text of this peer's message eventID.
func (p *Peer) Edit(ctx context.Context, room, eventID, text string) error {
	content := plain(text)
	content.SetEdit(id.EventID(eventID))
	_, err := p.send(ctx, room, content)
	return err
}

// Redact redacts the event and waits for the homeserver's response.
func (p *Peer) Redact(ctx context.Context, room, eventID string) error {
	if _, err := p.client.RedactEvent(ctx, id.RoomID(room), id.EventID(eventID)); err != nil {
		return fmt.Errorf("redact %s: %w", eventID, err)
	}
	return nil
}

// React adds the reaction key to the event.
func (p *Peer) React(ctx context.Context, room, eventID, key string) error {
	if _, err := p.client.SendReaction(ctx, id.RoomID(room), id.EventID(eventID), key); err != nil {
		return fmt.Errorf("react to %s: %w", eventID, err)
	}
	return nil
}

// Typing starts or ends this peer's typing notice. It times out after 30 seconds.
func (p *Peer) Typing(ctx context.Context, room string, on bool) error {
	if _, err := p.client.UserTyping(ctx, id.RoomID(room), on, typingFor); err != nil {
		return fmt.Errorf("typing in %s: %w", room, err)
	}
	return nil
}

func plain(text string) *event.MessageEventContent {
	// Mentions is never nil: without it, some clients derive mentions from the text.
	return &event.MessageEventContent{MsgType: event.MsgText, Body: text, Mentions: &event.Mentions{}}
}

// send sends a message event; all messages pass through sendAs. mautrix sends plain text if it does
// not know that a room is encrypted, and encrypts without recipients if it does not know the
// members. So the full room state is fetched before the first message.
func (p *Peer) send(ctx context.Context, room string, content *event.MessageEventContent) (string, error) {
	return p.sendAs(ctx, room, event.EventMessage, content, mautrix.ReqSendEvent{})
}

// sendAs sends an event of any type.
func (p *Peer) sendAs(ctx context.Context, room string, kind event.Type, content any, how mautrix.ReqSendEvent) (string, error) {
	roomID := id.RoomID(room)
	if err := p.untilSynced(ctx); err != nil {
		return "", fmt.Errorf("send to %s: %w", room, err)
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	if err := p.ensureState(ctx, roomID); err != nil {
		return "", fmt.Errorf("send to %s: %w", room, err)
	}
	sent, err := p.client.SendMessageEvent(ctx, roomID, kind, content, how)
	for range 3 {
		if !errors.Is(err, crypto.ErrNoGroupSession) {
			break
		}
		// A member joined while the session was shared: mautrix dropped it and sent nothing.
		sent, err = p.client.SendMessageEvent(ctx, roomID, kind, content, how)
	}
	if err != nil {
		return "", fmt.Errorf("send to %s: %w", room, err)
	}
	return sent.EventID.String(), nil
}

// ensureState fetches the room's encryption and members once, and makes sure that there is a
// recipient.
func (p *Peer) ensureState(ctx context.Context, room id.RoomID) error {
	p.mu.Lock()
	known := p.complete[room]
	p.mu.Unlock()
	if !known {
		if _, err := p.client.State(ctx, room); err != nil {
			return fmt.Errorf("fetch the room's state: %w", err)
		}
		p.mu.Lock()
		p.complete[room] = true
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
