package matrix

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
	"maunium.net/go/mautrix/sqlstatestore"

	"reverie/internal/i18n"
	"reverie/internal/matrix/retry"
	"reverie/internal/text"
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
	if err := c.knowRoom(ctx, room); err != nil {
		return "", err
	}
	if err := c.checkCrypto(ctx, room); err != nil {
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

// knowledge is what we have of a room's state since our last join: nothing, a
// request under way, or all of it, kept up to date by the syncs.
type knowledge int

const (
	unknown knowledge = iota
	asking
	known
)

// knowRoom fetches the full state of a room, once after each join.
func (c *Client) knowRoom(ctx context.Context, room id.RoomID) error {
	for range 3 {
		c.mu.Lock()
		k := c.known[room]
		if k != known {
			c.known[room] = asking
		}
		c.mu.Unlock()
		if k == known {
			return nil
		}
		if err := c.fetchState(ctx, room); err != nil {
			c.forgetState(room)
			return err
		}
		c.mu.Lock()
		if c.known[room] == asking {
			c.known[room] = known
		}
		c.mu.Unlock()
	}
	return fmt.Errorf("the members of the room keep changing")
}

// membersChanged tells that a sync brings a change of members, before that is stored. An
// answer that is on its way may be from before it, and would undo it: it is dropped.
func (c *Client) membersChanged(room id.RoomID) {
	c.states.Lock()
	defer c.states.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known[room] == asking {
		delete(c.known, room)
	}
}

// membersIn calls membersChanged for each room of a sync in which members change.
func (c *Client) membersIn(res *mautrix.RespSync) {
	member := func(evt *event.Event) bool { return evt.StateKey != nil && evt.Type.Type == event.StateMember.Type }
	for room, joined := range res.Rooms.Join {
		if slices.ContainsFunc(joined.State.Events, member) || slices.ContainsFunc(joined.Timeline.Events, member) {
			c.membersChanged(room)
		}
	}
}

// fetchState asks for the state of a room and keeps it, unless its members change meanwhile.
func (c *Client) fetchState(ctx context.Context, room id.RoomID) error {
	state, err := c.cli.StateAsArray(ctx, room) // State would keep it whatever happens meanwhile
	if err != nil {
		return fmt.Errorf("fetch the state of the room: %w", err)
	}
	members, others, encrypted, broken := map[string]*event.Event{}, []*event.Event(nil), false, false
	for _, evt := range state {
		if evt == nil || evt.StateKey == nil {
			continue
		}
		_ = evt.Content.ParseRaw(evt.Type) // what makes no sense is as good as missing
		evt.RoomID = room
		if evt.Type == event.StateMember {
			members[*evt.StateKey] = evt
			_, ok := evt.Content.Parsed.(*event.MemberEventContent)
			broken = broken || !ok && *evt.StateKey != c.cli.UserID.String()
		} else {
			encrypted = encrypted || evt.Type == event.StateEncryption && *evt.StateKey == ""
			others = append(others, evt)
		}
	}
	if encrypted {
		if err := c.markEncrypted(ctx, room); err != nil {
			return err
		}
	}
	if broken { // somebody may be there all the same
		if err := c.expose(ctx, room); err != nil {
			return err
		}
	}
	if members[c.cli.UserID.String()] == nil {
		return fmt.Errorf("the state of the room is incomplete: our own membership is missing")
	}
	c.states.Lock()
	defer c.states.Unlock()
	c.mu.Lock()
	current := c.known[room] == asking
	c.mu.Unlock()
	if !current {
		return nil // it is asked for once more
	}
	for _, evt := range others {
		mautrix.UpdateStateStore(ctx, c.cli.StateStore, evt)
	}
	err = c.cli.StateStore.ReplaceCachedMembers(ctx, room, slices.Collect(maps.Values(members)))
	return doing("store the members of the room", err)
}

// forgetState makes the next send fetch the room's state again.
func (c *Client) forgetState(room id.RoomID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, room)
}

// checkCrypto makes sure that SendMessageEvent will encrypt when it must, and
// for somebody.
func (c *Client) checkCrypto(ctx context.Context, room id.RoomID) error {
	store := c.cli.StateStore.(*sqlstatestore.SQLStateStore)
	content, err := store.GetEncryptionEvent(ctx, room)
	if err != nil {
		return fmt.Errorf("look up the encryption of the room: %w", err)
	}
	if content == nil {
		ever, err := c.everEncrypted(ctx, room)
		if err != nil || !ever {
			return err
		}
	}
	if err := c.markEncrypted(ctx, room); err != nil {
		return err
	}
	switch {
	case content == nil || content.Algorithm == "":
		// The room was encrypted once and the server says it is not any more.
		// That is not possible, so it is not believed.
		c.log.Warn("matrix: the homeserver no longer says that this room is encrypted; encrypting anyway", "room", room)
		if err := store.SetEncryptionEvent(ctx, room, &event.EncryptionEventContent{Algorithm: id.AlgorithmMegolmV1}); err != nil {
			return fmt.Errorf("note that the room is encrypted: %w", err)
		}
	case content.Algorithm != id.AlgorithmMegolmV1:
		return retry.Refuse(i18n.Text(fmt.Sprintf("the room is encrypted in a way that is not supported here (%s), "+
			"and plain text is never sent into an encrypted room", text.Clip(string(content.Algorithm), 60))))
	}
	members, err := store.GetRoomJoinedOrInvitedMembers(ctx, room)
	if err != nil {
		return fmt.Errorf("look up the members of the room: %w", err)
	}
	if len(members) < 2 {
		return retry.Refuse("nobody else is in the room, so nobody could read the message")
	}
	return c.acc.Devices.Fresh(ctx, members)
}
