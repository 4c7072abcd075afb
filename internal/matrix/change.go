package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/gate"
	"reverie/internal/pace"
)

// addEditToBatch adds an m.replace relation to the batch. Package delivery checks that the sender also
// sent the message that it replaces.
func (t *intake) addEditToBatch(ctx context.Context, b *batch, evt *event.Event, msg *event.MessageEventContent, room gate.Room) error {
	target := msg.RelatesTo.EventID
	if target == "" || msg.NewContent == nil {
		return t.logIgnoredEvent(evt, "it does not say what it replaces, or by what")
	}
	plain := *msg.NewContent
	plain.RelatesTo, plain.NewContent = nil, nil
	now := *evt
	now.Content.Parsed = &plain
	o := t.gate.Check(&now, room, func(id.EventID) bool { return false })
	files := filesOfMessage(&plain, evt.Mautrix.WasEncrypted, t.cfg.MaxFile) // the edit of a file changes its caption only
	switch {
	case !o.Allowed: // an edit that does not address the bot may change a message that did
		return t.logIgnoredEvent(evt, o.Reason)
	case o.Text == "" && !slices.ContainsFunc(files, func(f chat.File) bool { return f.Source != "" }):
		return t.logIgnoredEvent(evt, "it leaves neither words nor a file")
	}
	head, err := t.buildHeadInRoom(ctx, evt, room)
	edit := chat.Edit{Change: chat.Change{Head: head, Target: target.String()}, Text: o.Text}
	b.In = append(b.In, delivery.Incoming{Event: edit, Addressed: o.Pass, Files: files})
	return err
}

// lookUpRoomAndBuildHead returns the head of a redaction or reaction.
func (t *intake) lookUpRoomAndBuildHead(ctx context.Context, evt *event.Event) (chat.Head, error) {
	room, err := t.rooms.Facts(ctx, evt.RoomID)
	if err != nil {
		return chat.Head{}, err
	}
	return t.buildHeadInRoom(ctx, evt, room)
}

// reactionActions maps reaction keys, without variation selectors, to actions.
// Reactions are not encrypted, so a homeserver can forge them: they must never do more.
var reactionActions = map[string]chat.Action{
	"❌": chat.StopAnswer, "✖": chat.StopAnswer, "🛑": chat.StopAnswer,
	"🔁": chat.RetryAnswer, "🔄": chat.RetryAnswer,
}

// addReactionToBatch adds the reaction of an allowed sender to the batch. Package delivery checks
// whether the sender may do what it asks for.
func (t *intake) addReactionToBatch(ctx context.Context, b *batch, evt *event.Event) error {
	content, ok := evt.Content.Parsed.(*event.ReactionEventContent)
	if !ok || evt.Mautrix.EventSource&event.SourceLeave != 0 || evt.StateKey != nil || evt.Unsigned.RedactedBecause != nil {
		return nil
	}
	action, found := reactionActions[strings.ReplaceAll(content.RelatesTo.Key, "\ufe0f", "")]
	if !found || content.RelatesTo.Type != event.RelAnnotation || content.RelatesTo.EventID == "" || !t.gate.Allows(evt.Sender.String()) {
		return nil
	}
	head, err := t.lookUpRoomAndBuildHead(ctx, evt)
	change := chat.Change{Head: head, Target: content.RelatesTo.EventID.String()}
	b.In = append(b.In, delivery.Incoming{Event: chat.Reaction{Change: change, Action: action},
		Addressed: slices.Contains(t.cfg.Owners, head.Sender) && !head.Unproven})
	return err
}

// redactionRetry is the delay before a failed deletion of a redacted message is retried.
const redactionRetry = time.Minute

// runRedactedMessageDeletion calls forget for each redacted message until it succeeds.
func (c *Client) runRedactedMessageDeletion(ctx context.Context, forget func(ctx context.Context, event string) error) error {
	return pace.RunWhenDue(ctx, c.cfg.now, c.redactWake, func(ctx context.Context) (next time.Time) {
		if err := c.inbox.ForgetRedacted(ctx, forget); err != nil && ctx.Err() == nil {
			c.cfg.Log.Error("matrix: a message that was taken back is not forgotten yet; it is tried again", "in", redactionRetry,
				"err", err)
			next = c.cfg.now().Add(redactionRetry)
		}
		return next
	})
}

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
