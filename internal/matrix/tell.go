package matrix

import (
	"context"
	"fmt"

	"maunium.net/go/mautrix/id"

	"reverie/internal/store"
)

// DirectChat is a direct chat with a person in which we may speak; empty when
// there is none.
func (c *Client) DirectChat(ctx context.Context, person string) (string, error) {
	rooms, err := store.Column[id.RoomID](ctx, c.q.db, `SELECT id FROM matrix_room WHERE membership = 'joined' AND direct_with = ? ORDER BY id`, person)
	if err != nil {
		return "", fmt.Errorf("look up direct chats: %w", err)
	}
	for _, room := range rooms {
		facts, err := c.facts(ctx, room)
		if err != nil {
			return "", err
		}
		if !facts.private(person) || !c.cli.StateStore.IsInRoom(ctx, room, id.UserID(person)) {
			continue
		}
		if muted, err := c.muted(ctx, room, facts); err != nil || !muted {
			return room.String(), err
		}
	}
	return "", nil
}
