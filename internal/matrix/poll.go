package matrix

import (
	"context"
	"encoding/json"
	"fmt"

	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/delivery"
)

// pollVote is the stable event type of a vote; clients send the unstable one (MSC3381).
var pollVote = event.Type{Type: "m.poll.response", Class: event.MessageEventType}

// addVoteToBatch adds the vote of an allowed sender to the batch. Package delivery checks that it is for
// an option of one of our polls.
func (t *intake) addVoteToBatch(ctx context.Context, b *batch, evt *event.Event) error {
	if evt.Mautrix.EventSource&event.SourceLeave != 0 || evt.StateKey != nil || evt.Unsigned.RedactedBecause != nil {
		return nil
	}
	target, answer, ok := parsePollVote(evt)
	switch {
	case !ok:
		return t.logIgnoredEvent(evt, "it is not for one option of a poll")
	case !t.gate.Allows(evt.Sender.String()):
		return t.logIgnoredEvent(evt, "sender is not allowed")
	}
	room, err := t.rooms.Facts(ctx, evt.RoomID)
	if err != nil {
		return err
	}
	if room.Encrypted && !evt.Mautrix.WasEncrypted {
		t.cfg.Log.Warn("matrix: a vote that is not encrypted is ignored in an encrypted room",
			"room", evt.RoomID, "event", evt.ID, "sender", evt.Sender)
		return nil
	}
	if unsigned, err := t.devices.Unsigned(ctx, evt); err != nil || unsigned && t.devices.MustBeSigned(evt.Sender) {
		t.cfg.Log.Warn("matrix: a vote from a device that its sender's identity has not signed is ignored", "room", evt.RoomID,
			"event", evt.ID, "sender", evt.Sender, "err", err)
		return err
	}
	switch in, err := t.cli.StateStore.GetMember(ctx, evt.RoomID, evt.Sender); {
	case err != nil:
		return fmt.Errorf("look up who votes: %w", err)
	case in.Membership != event.MembershipJoin:
		return t.logIgnoredEvent(evt, "sender is not in the room")
	}
	head, err := t.buildHeadInRoom(ctx, evt, room)
	b.In = append(b.In, delivery.Incoming{Event: chat.Vote{Change: chat.Change{Head: head, Target: target}, Option: answer}})
	return err
}

// parsePollVote returns the poll and the answer of a vote; ok reports whether it has exactly one answer.
func parsePollVote(evt *event.Event) (poll, answer string, ok bool) {
	var v struct {
		Relates  event.RelatesTo    `json:"m.relates_to"`
		Unstable event.PollResponse `json:"org.matrix.msc3381.poll.response"`
		Stable   []string           `json:"m.selections"`
	}
	if err := json.Unmarshal(evt.Content.VeryRaw, &v); err != nil {
		return "", "", false
	}
	answers := v.Unstable.Answers
	if evt.Type.Type == pollVote.Type {
		answers = v.Stable
	}
	if v.Relates.Type != event.RelReference || v.Relates.EventID == "" || len(answers) != 1 {
		return "", "", false
	}
	return v.Relates.EventID.String(), answers[0], true
}
