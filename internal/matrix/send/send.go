package send

import (
	"cmp"
	"context"
	"fmt"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
	"reverie/internal/matrix/gate"
)

// send sends an event. All events of ours go through it. It never sends plain text into a room that
// is or ever was encrypted, and never encrypts without recipients. Both need the full room state, so
// without it nothing is sent.
//
// The homeserver returns the same event for the same txn, even if the first response was lost.
// Events that may be lost have an empty txn and no mark.
func (s *Sender) send(ctx context.Context, room string, kind event.Type, content any, txn string, m *mark) (id.EventID, error) {
	encrypted, err := s.Rooms.PrepareSend(ctx, id.RoomID(room))
	if err != nil {
		return "", err
	}
	if encrypted {
		if content, err = s.Client.Crypto.Encrypt(ctx, id.RoomID(room), kind, content); err != nil {
			return "", fmt.Errorf("encrypt the message: %w", err)
		}
		kind = event.EventEncrypted
	}
	if m != nil {
		if content, err = addMark(content, m); err != nil {
			return "", err
		}
	}
	resp, err := s.Client.SendMessageEvent(ctx, id.RoomID(room), kind, content, mautrix.ReqSendEvent{TransactionID: txn, DontEncrypt: true})
	if err != nil {
		return "", err
	}
	return resp.EventID, nil
}

// live marks an event as unfinished (MSC4357), so that clients can show it so.
func live(content *event.MessageEventContent) *event.Content {
	return &event.Content{Parsed: content, Raw: map[string]any{"org.matrix.msc4357.live": map[string]any{}}}
}

// ThreadRelation returns the name of threads on the homeserver, by the rule of Element: before version 1.4 of the
// specification they have a name of its own, and Element shows no others.
func ThreadRelation(ctx context.Context, client *mautrix.Client) event.RelationType {
	versions, err := client.Versions(ctx)
	if err != nil || versions.ContainsGreaterOrEqual(mautrix.SpecV14) || versions.UnstableFeatures["org.matrix.msc3440.stable"] {
		return event.RelThread
	}
	return gate.ElementThread
}

// setRelation sets the relation of content: to its thread, with a reply fallback for clients without
// threads, or, if quotes, as a reply to the event repliesTo.
func (s *Sender) setRelation(ctx context.Context, m *event.MessageEventContent, r delivery.OutboxRow, repliesTo string, quotes bool) error {
	if r.Thread != "" {
		newest, err := s.Outbox.NewestInThread(ctx, r.Room, r.Thread)
		if err != nil {
			return err
		}
		m.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(r.Thread), id.EventID(cmp.Or(repliesTo, newest, r.Thread)))
		m.RelatesTo.Type = s.ThreadRelation
		return nil
	}
	if r.ReplyTo != "" && quotes {
		m.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID(repliesTo))
	}
	return nil
}
