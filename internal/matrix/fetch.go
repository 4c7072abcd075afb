package matrix

import (
	"context"
	"errors"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

var (
	errElsewhere = errors.New("the event is of another room")
	errPlain     = errors.New("plain text in an encrypted room")
)

// eventOf fetches an event of a room from the homeserver, parsed and decrypted; edits of
// it are not applied, see eventNow. What was redacted says so in Unsigned and has no content.
// In an encrypted room a message in plain text is an error: anybody on the way may have made it.
func (c *Client) eventOf(ctx context.Context, room id.RoomID, evt id.EventID) (*event.Event, error) {
	got, _, err := c.rawEventOf(ctx, room, evt)
	if err != nil {
		return nil, err
	}
	return c.opened(ctx, room, got)
}
