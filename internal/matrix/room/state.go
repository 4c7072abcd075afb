package room

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

// knowRoom fetches the full state of a room, once after each join; syncs keep it up to date.
func (r *Rooms) knowRoom(ctx context.Context, room id.RoomID) error {
	for range 3 {
		r.mu.Lock()
		known, changes := r.known[room], r.changes[room]
		r.mu.Unlock()
		if known {
			return nil
		}
		if err := r.fetchState(ctx, room, changes); err != nil {
			return err
		}
	}
	return fmt.Errorf("the members of the room keep changing")
}

// MembersIn notes in which rooms a sync changes members, before that is stored. An answer that is
// on its way may be from before it, and would undo it: it is dropped.
func (r *Rooms) MembersIn(res *mautrix.RespSync) {
	r.states.Lock()
	defer r.states.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	member := func(evt *event.Event) bool { return evt.StateKey != nil && evt.Type.Type == event.StateMember.Type }
	for room, joined := range res.Rooms.Join {
		if slices.ContainsFunc(joined.State.Events, member) || slices.ContainsFunc(joined.Timeline.Events, member) {
			r.changes[room]++
		}
	}
}

// fetchState asks for the state of a room and keeps it, unless its members have changed since changes.
func (r *Rooms) fetchState(ctx context.Context, room id.RoomID, changes int) error {
	state, err := r.cli.StateAsArray(ctx, room) // State would keep it whatever happens meanwhile
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
			broken = broken || !ok && *evt.StateKey != r.cli.UserID.String()
		} else {
			encrypted = encrypted || evt.Type == event.StateEncryption && *evt.StateKey == ""
			others = append(others, evt)
		}
	}
	if encrypted {
		if err := r.MarkEncrypted(ctx, room); err != nil {
			return err
		}
	}
	if broken { // somebody may be there all the same
		if err := r.Expose(ctx, room); err != nil {
			return err
		}
	}
	if members[r.cli.UserID.String()] == nil {
		return fmt.Errorf("the state of the room is incomplete: our own membership is missing")
	}
	r.states.Lock()
	defer r.states.Unlock()
	r.mu.Lock()
	current := r.changes[room] == changes
	r.mu.Unlock()
	if !current {
		return nil // it is asked for once more
	}
	for _, evt := range others {
		mautrix.UpdateStateStore(ctx, r.cli.StateStore, evt)
	}
	if err := r.cli.StateStore.ReplaceCachedMembers(ctx, room, slices.Collect(maps.Values(members))); err != nil {
		return fmt.Errorf("store the members of the room: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[room] = r.changes[room] == changes
	return nil
}

// ForgetState makes the next send fetch the room's state again.
func (r *Rooms) ForgetState(room id.RoomID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, room)
	r.changes[room]++
}

// checkCrypto makes sure that SendMessageEvent will encrypt when it must, and
// for somebody.
func (r *Rooms) checkCrypto(ctx context.Context, room id.RoomID) error {
	store := r.cli.StateStore.(*sqlstatestore.SQLStateStore)
	content, err := store.GetEncryptionEvent(ctx, room)
	if err != nil {
		return fmt.Errorf("look up the encryption of the room: %w", err)
	}
	if content == nil {
		ever, err := r.everEncrypted(ctx, room)
		if err != nil || !ever {
			return err
		}
	}
	if err := r.MarkEncrypted(ctx, room); err != nil {
		return err
	}
	switch {
	case content == nil || content.Algorithm == "":
		// The room was encrypted once and the server says it is not any more.
		// That is not possible, so it is not believed.
		r.log.Warn("matrix: the homeserver no longer says that this room is encrypted; encrypting anyway", "room", room)
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
	return r.devices.RefreshLists(ctx, members)
}

// Sendable fetches the state of a room and fails where an event must not be sent.
func (r *Rooms) Sendable(ctx context.Context, room id.RoomID) error {
	if err := r.knowRoom(ctx, room); err != nil {
		return err
	}
	return r.checkCrypto(ctx, room)
}
