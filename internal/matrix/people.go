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

// lonely notes a room in which the others may all have gone; see leaveLonely.
func (c *Client) lonely(room id.RoomID) {
	c.mu.Lock()
	c.alone[room] = true
	c.mu.Unlock()
	poke(c.roomWake)
}

// lookForLonely notes the rooms that the others may have left while we were away.
func (c *Client) lookForLonely(ctx context.Context) error {
	rooms, err := c.joinedRooms(ctx)
	for _, room := range rooms {
		c.lonely(room)
	}
	return err
}

// joinedRooms lists the rooms we are in.
func (c *Client) joinedRooms(ctx context.Context) (rooms []id.RoomID, err error) {
	rows, err := c.q.db.QueryContext(ctx, `SELECT id FROM matrix_room WHERE membership = 'joined' ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("matrix: list rooms: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var room id.RoomID
		if err := rows.Scan(&room); err != nil {
			return nil, fmt.Errorf("matrix: list rooms: %w", err)
		}
		rooms = append(rooms, room)
	}
	return rooms, rows.Err()
}

// leaveLonely leaves the rooms in which nobody is left but us, nor invited. What is
// remembered of them is kept. The homeserver is asked first: our own list may lack
// somebody. What fails is tried again when again is over.
func (c *Client) leaveLonely(ctx context.Context) (failed bool) {
	c.mu.Lock()
	rooms := c.alone
	c.alone = map[id.RoomID]bool{}
	c.mu.Unlock()
	for room := range rooms {
		alone, err := c.aloneIn(ctx, room)
		if err == nil && alone {
			c.log.Info("matrix: everybody else has left this room; leaving it", "room", room)
			_, err = c.cli.LeaveRoom(ctx, room)
		}
		if verdict, _ := judge(err, 0); verdict == fine || verdict == never && ctx.Err() == nil {
			if err != nil {
				c.log.Warn("matrix: an empty room is not left", "room", room, "err", err)
			}
			continue
		}
		c.log.Warn("matrix: whether a room is empty is not known; looking again", "room", room, "err", err)
		c.mu.Lock()
		c.alone[room] = true
		c.mu.Unlock()
		failed = true
	}
	return failed
}

// aloneIn tells whether nobody is in a room of ours but we, nor invited. A room that is
// being replaced is none: what belongs to it is not brought along yet.
func (c *Client) aloneIn(ctx context.Context, room id.RoomID) (bool, error) {
	members, err := c.cli.StateStore.GetRoomJoinedOrInvitedMembers(ctx, room)
	if err != nil || len(members) > 1 {
		return false, err
	}
	var joined, replaced bool
	if err := c.q.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM matrix_room WHERE id = ?1 AND membership = 'joined'),
		EXISTS (SELECT 1 FROM matrix_room WHERE replaces = ?1 AND moved = 0 AND membership IN ('invited', 'joined'))`, room.String()).Scan(&joined, &replaced); err != nil || !joined || replaced {
		return false, err
	}
	list, err := c.cli.Members(ctx, room)
	if err != nil {
		return false, fmt.Errorf("ask for the members of the room: %w", err)
	}
	us := false
	for _, evt := range list.Chunk {
		m, ok := evt.Content.Parsed.(*event.MemberEventContent)
		switch { // what cannot be parsed counts as somebody
		case ok && (m.Membership == event.MembershipLeave || m.Membership == event.MembershipBan):
		case evt.GetStateKey() != c.cli.UserID.String():
			return false, nil
		default:
			us = true
		}
	}
	return us, nil
}
