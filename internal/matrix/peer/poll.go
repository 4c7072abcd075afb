package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"reverie/internal/matrix/gate"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
)

// Poll is the options of a poll, in their order.
type Poll struct{ Options []PollOption }

// PollOption is one option of a poll.
type PollOption struct{ ID, Text string }

// ID returns the answer ID of the option with this text, or "".
func (p *Poll) ID(text string) string {
	for _, o := range p.Options {
		if o.Text == text {
			return o.ID
		}
	}
	return ""
}

func (p *Peer) onPoll(_ context.Context, evt *event.Event) {
	content, ok := evt.Content.Parsed.(*event.PollStartEventContent)
	if !ok || evt.Sender == p.client.UserID {
		return
	}
	if of := content.OptionalGetRelatesTo(); of != nil && of.Type == gate.ElementThread {
		of.Type = event.RelThread
	}
	poll := &Poll{}
	for _, o := range content.PollStart.Answers {
		poll.Options = append(poll.Options, PollOption{o.ID, o.GetText()})
	}
	p.emit(Event{
		Kind: PollStarted, Room: evt.RoomID.String(), Sender: evt.Sender.String(), ID: evt.ID.String(), Poll: poll,
		Body: content.PollStart.Question.GetText(), Encrypted: evt.Mautrix.WasEncrypted,
		Thread: content.OptionalGetRelatesTo().GetThreadParent().String(),
	})
}

func (p *Peer) onPollEnd(_ context.Context, evt *event.Event) {
	var content struct {
		Relates event.RelatesTo `json:"m.relates_to"`
		Text    string          `json:"org.matrix.msc1767.text"`
	}
	if err := json.Unmarshal(evt.Content.VeryRaw, &content); err != nil || evt.Sender == p.client.UserID {
		return
	}
	p.emit(Event{
		Kind: PollEnded, Room: evt.RoomID.String(), Sender: evt.Sender.String(), ID: content.Relates.EventID.String(),
		Body: content.Text, Encrypted: evt.Mautrix.WasEncrypted,
	})
}

// Vote votes for the option with this text in a poll.
func (p *Peer) Vote(ctx context.Context, room string, asked Event, text string) (eventID string, err error) {
	if asked.Poll == nil || asked.Poll.ID(text) == "" {
		return "", fmt.Errorf("vote in %s: %s offers no %q", room, asked.ID, text)
	}
	return p.Post(ctx, room, event.EventUnstablePollResponse.Type, VoteFor(asked.ID, asked.Poll.ID(text)))
}

// VoteFor returns the content of a vote for answer IDs of a poll.
func VoteFor(poll string, answers ...string) map[string]any {
	if answers == nil {
		answers = []string{}
	}
	return map[string]any{
		"m.relates_to":                     map[string]any{"rel_type": event.RelReference, "event_id": poll},
		"org.matrix.msc3381.poll.response": map[string]any{"answers": answers},
	}
}

// Post sends an event of any type, encrypted if the room is.
func (p *Peer) Post(ctx context.Context, room, kind string, content any) (eventID string, err error) {
	return p.sendAs(ctx, room, event.NewEventType(kind), content, mautrix.ReqSendEvent{})
}

// PostPlain is Post without encryption in any room.
func (p *Peer) PostPlain(ctx context.Context, room, kind string, content any) (eventID string, err error) {
	return p.sendAs(ctx, room, event.NewEventType(kind), content, mautrix.ReqSendEvent{DontEncrypt: true})
}
