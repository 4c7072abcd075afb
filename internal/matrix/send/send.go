package send

import (
	"cmp"
	"context"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/delivery"
)

// send is the only way an event of ours leaves. It never sends plain text into
// a room that is or ever was encrypted, and never encrypts for nobody: both
// need the room's full state, so without that nothing is sent.
//
// The same txn gives the same event, even if the answer to the first try was
// lost; an empty one is for events that may be lost.
func (s *Sender) send(ctx context.Context, room id.RoomID, content any, txn string) (id.EventID, error) {
	return s.sendAs(ctx, room, event.EventMessage, content, txn)
}

// sendAs is send of an event of another type.
func (s *Sender) sendAs(ctx context.Context, room id.RoomID, kind event.Type, content any, txn string) (id.EventID, error) {
	if err := s.Rooms.Sendable(ctx, room); err != nil {
		return "", err
	}
	resp, err := s.Client.SendMessageEvent(ctx, room, kind, content, mautrix.ReqSendEvent{TransactionID: txn})
	if err != nil {
		return "", err
	}
	return resp.EventID, nil
}

// live marks an event of a message that is still being written (MSC4357), so
// that clients can show it as unfinished.
func live(content *event.MessageEventContent) *event.Content {
	return &event.Content{Parsed: content, Raw: map[string]any{"org.matrix.msc4357.live": map[string]any{}}}
}

// relate puts content where it belongs: into its thread, where clients that know no threads
// show it as a reply to the question or to our newest message there, or below what it answers.
func (s *Sender) relate(ctx context.Context, m *event.MessageEventContent, r delivery.OutboxRow, private bool) error {
	if r.Thread != "" {
		newest, err := s.Outbox.NewestInThread(ctx, r.Room, r.Thread)
		if err != nil {
			return err
		}
		m.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(r.Thread), id.EventID(cmp.Or(r.ReplyTo, newest, r.Thread)))
		return nil
	}
	if r.ReplyTo == "" {
		return nil
	}
	// What was asked in a thread may be answered outside.
	if _, thread := s.Inbox.Origin(ctx, r.ReplyTo); !private || thread != "" {
		m.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID(r.ReplyTo))
	}
	return nil
}
