package matrix

import (
	"context"

	"maunium.net/go/mautrix/id"
)

// Private tells whether a room is a direct chat right now.
func (c *Client) Private(ctx context.Context, room string) (bool, error) {
	f, err := c.facts(ctx, id.RoomID(room))
	return err == nil && f.private(), err
}
