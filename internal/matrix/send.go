package matrix

import (
	"context"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// send is the only way an event of ours leaves. It never sends plain text into
// a room that is or ever was encrypted, and never encrypts for nobody: both
// need the room's full state, so without that nothing is sent.
//
// The same txn gives the same event, even if the answer to the first try was
// lost; an empty one is for events that may be lost.
func (c *Client) send(ctx context.Context, room id.RoomID, content any, txn string) (id.EventID, error) {
	return c.sendAs(ctx, room, event.EventMessage, content, txn)
}

// sendAs is send of an event of another type.
func (c *Client) sendAs(ctx context.Context, room id.RoomID, kind event.Type, content any, txn string) (id.EventID, error) {
	if err := c.rooms.knowRoom(ctx, room); err != nil {
		return "", err
	}
	if err := c.rooms.checkCrypto(ctx, room); err != nil {
		return "", err
	}
	resp, err := c.cli.SendMessageEvent(ctx, room, kind, content, mautrix.ReqSendEvent{TransactionID: txn})
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
