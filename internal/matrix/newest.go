package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

const (
	editsTime = 3 * time.Second // to ask for the edits of a message; then it reads as it was written
	editsRead = 3               // edits that are tried, the newest first
)

var (
	errElsewhere = errors.New("the event is of another room")
	errPlain     = errors.New("plain text in an encrypted room")
)

// eventNow is eventOf with the words that the event has by now: those of its newest edit
// by the same person. If that cannot be had, it reads as it was written.
func (c *Client) eventNow(ctx context.Context, room id.RoomID, evt id.EventID) (*event.Event, error) {
	got, err := c.eventOf(ctx, room, evt)
	if err != nil {
		return got, err
	}
	was, ok := got.Content.Parsed.(*event.MessageEventContent)
	if !ok || got.StateKey != nil || got.Unsigned.RedactedBecause != nil || was.RelatesTo.GetReplaceID() != "" {
		return got, nil
	}
	asking, cancel := context.WithTimeout(ctx, editsTime)
	defer cancel()
	edits, err := c.cli.GetRelations(asking, room, evt, &mautrix.ReqGetRelations{RelationType: event.RelReplace})
	if err != nil {
		c.log.Debug("matrix: whether a message was edited is not known", "room", room, "event", evt, "err", err)
		return got, nil
	}
	if now := c.newest(ctx, got, edits.Chunk); now != nil {
		words := *now
		words.RelatesTo = was.RelatesTo
		got.Content.Parsed = &words
	}
	return got, nil
}

// eventOf fetches an event of a room from the homeserver, parsed and decrypted; edits of
// it are not applied, see eventNow. What was redacted says so in Unsigned and has no content.
// In an encrypted room a message in plain text is an error: anybody on the way may have made it.
func (c *Client) eventOf(ctx context.Context, room id.RoomID, evt id.EventID) (*event.Event, error) {
	got, err := c.cli.GetEvent(ctx, room, evt)
	if err == nil && (got == nil || got.ID != evt || got.RoomID != "" && got.RoomID != room) {
		err = errElsewhere
	}
	if err != nil {
		return nil, fmt.Errorf("fetch an event: %w", err)
	}
	return c.opened(ctx, room, got)
}

// newest is what the newest valid one of edits makes of the message was; nil = none is.
func (c *Client) newest(ctx context.Context, was *event.Event, edits []*event.Event) *event.MessageEventContent {
	edits = slices.DeleteFunc(edits, func(e *event.Event) bool {
		return e == nil || e.Sender != was.Sender || e.StateKey != nil || e.Unsigned.RedactedBecause != nil || e.RoomID != "" && e.RoomID != was.RoomID
	})
	slices.SortFunc(edits, func(a, b *event.Event) int {
		return cmp.Or(cmp.Compare(b.Timestamp, a.Timestamp), cmp.Compare(b.ID, a.ID))
	})
	for _, e := range edits[:min(len(edits), editsRead)] {
		plain, err := c.opened(ctx, was.RoomID, e)
		if err != nil {
			c.log.Debug("matrix: an edit cannot be read", "room", was.RoomID, "event", e.ID, "err", err)
			continue
		}
		msg, ok := plain.Content.Parsed.(*event.MessageEventContent)
		if ok && msg.NewContent != nil && msg.RelatesTo.GetReplaceID() == was.ID {
			return msg.NewContent
		}
	}
	return nil
}

// opened is an event of a room that was fetched, parsed and decrypted, see eventOf. One from
// a device that the device rule excludes is an error.
func (c *Client) opened(ctx context.Context, room id.RoomID, got *event.Event) (*event.Event, error) {
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
	plain, err := c.decrypt(ctx, got)
	if err != nil {
		return nil, fmt.Errorf("decrypt an event: %w", err)
	}
	if unsigned, err := c.unsigned(ctx, plain); err != nil || unsigned && c.mustBeSigned(plain.Sender) {
		return nil, cmp.Or(err, errUnsigned)
	}
	if plain.RoomID == "" {
		plain.RoomID = room
	}
	return plain, nil
}
