package matrix

import (
	"context"
	"fmt"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
	"maunium.net/go/mautrix/sqlstatestore"
)

// People is how many have joined a room, we among them.
func (c *Client) People(ctx context.Context, room string) (int, error) {
	members, err := c.cli.StateStore.(*sqlstatestore.SQLStateStore).GetRoomMembers(ctx, id.RoomID(room), event.MembershipJoin)
	if err != nil {
		return 0, fmt.Errorf("matrix: look up the members of a room: %w", err)
	}
	return len(members), nil
}

// OnLeft sets what is told that we are no longer in a room, so that what is worked on
// there ends. It must return at once. To be called before Run.
func (c *Client) OnLeft(told func(room string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = told
}

// tellLeft tells that we are no longer in a room.
func (c *Client) tellLeft(room id.RoomID) {
	c.mu.Lock()
	told := c.gone
	c.mu.Unlock()
	if told != nil {
		told(room.String())
	}
}
