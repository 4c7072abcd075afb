package matrix

import (
	"context"
	"errors"
	"fmt"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

var (
	errElsewhere = errors.New("the event is of another room")
	errPlain     = errors.New("plain text in an encrypted room")
)

// eventOf fetches an event of a room from the homeserver, parsed and decrypted; edits of
// it are not applied. What was redacted says so in Unsigned and has no content. In an
// encrypted room a message in plain text is an error: anybody on the way may have made it.
func (c *Client) eventOf(ctx context.Context, room id.RoomID, evt id.EventID) (*event.Event, error) {
	got, err := c.cli.GetEvent(ctx, room, evt)
	if err != nil {
		return nil, fmt.Errorf("fetch an event: %w", err)
	}
	if got == nil || got.ID != evt || got.RoomID != "" && got.RoomID != room {
		return nil, fmt.Errorf("fetch an event: %w", errElsewhere)
	}
	got.RoomID = room
	if got.Type.Class = event.MessageEventType; got.StateKey != nil {
		got.Type.Class = event.StateEventType
	}
	if got.Unsigned.RedactedBecause != nil {
		return got, nil
	}
	if err := got.Content.ParseRaw(got.Type); err != nil && !errors.Is(err, event.ErrUnsupportedContentType) && !errors.Is(err, event.ErrContentAlreadyParsed) {
		return nil, fmt.Errorf("read an event: %w", err)
	}
	if got.Type != event.EventEncrypted {
		facts, err := c.facts(ctx, room)
		if err == nil && facts.encrypted && got.StateKey == nil {
			err = errPlain
		}
		return got, err
	}
	plain, err := c.crypto.Decrypt(ctx, got)
	if err != nil {
		return nil, fmt.Errorf("decrypt an event: %w", err)
	}
	if plain.RoomID == "" {
		plain.RoomID = room
	}
	return plain, nil
}
