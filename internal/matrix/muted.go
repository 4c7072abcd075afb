package matrix

import (
	"context"
	"fmt"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/session"
)

// muted tells whether the room's power levels keep us from speaking there.
func (c *Client) muted(ctx context.Context, room id.RoomID, facts roomFacts) (bool, error) {
	levels, err := c.cli.StateStore.GetPowerLevels(ctx, room)
	if err != nil {
		return false, fmt.Errorf("look up who may speak in a room: %w", err)
	}
	kind := event.EventMessage
	if facts.encrypted {
		kind = event.EventEncrypted
	}
	return levels != nil && levels.GetUserLevel(c.cli.UserID) < levels.GetEventLevel(kind), nil
}

// unanswerable takes a message in as done when no answer could be sent, so that
// no model is asked for one. Its sender is told in their direct chat, if there
// is one: of each room once a day.
func (c *Client) unanswerable(ctx context.Context, b *batch, m session.Inbound, facts roomFacts) bool {
	muted, err := c.muted(ctx, id.RoomID(m.Room), facts)
	if err != nil {
		fail(ctx, err)
		return true
	}
	if !muted {
		return false
	}
	c.log.Warn("matrix: a message is not answered, because the room's power levels do not let the bot speak", "room", m.Room, "event", m.ID, "sender", m.Sender)
	b.past = append(b.past, m)
	chat, err := c.DirectChat(ctx, m.Sender)
	if err != nil {
		fail(ctx, err)
	}
	if chat != "" {
		name := "muted-" + m.Room + "-" + m.Sender + "-" + c.serverNow().UTC().Format("2006-01-02")
		b.notices = append(b.notices, notice{id: name, room: chat, text: c.cfg.Text(ctx, chat, "matrix.muted")})
	}
	return true
}
