package room

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/i18n"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/retry"
	"reverie/internal/text"
)

// ensureState fetches the full state of a room once after each join. Syncs keep it up to date.
func (r *Rooms) ensureState(ctx context.Context, room id.RoomID) error {
	for range 3 {
		r.mu.Lock()
		known, changes := r.complete[room], r.changes[room]
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

// CountMemberChanges counts the member changes of a sync, before they are stored. A state that is
// being fetched may be older and would undo them: fetchState drops it.
func (r *Rooms) CountMemberChanges(res *mautrix.RespSync) {
	r.mu.Lock()
	defer r.mu.Unlock()
	member := func(evt *event.Event) bool { return evt.StateKey != nil && evt.Type.Type == event.StateMember.Type }
	for room, joined := range res.Rooms.Join {
		if slices.ContainsFunc(joined.State.Events, member) || slices.ContainsFunc(joined.Timeline.Events, member) {
			r.changes[room]++
		}
	}
}

// fetchState fetches the state of a room and stores it. It does not store it if the room's members
// changed since changes.
func (r *Rooms) fetchState(ctx context.Context, room id.RoomID, changes int) error {
	state, err := r.cli.StateAsArray(ctx, room) // State would store it in any case
	if err != nil {
		return fmt.Errorf("fetch the state of the room: %w", err)
	}
	members, others, encrypted, broken := map[string]*event.Event{}, []*event.Event(nil), false, false
	for _, evt := range state {
		if evt == nil || evt.StateKey == nil {
			continue
		}
		_ = evt.Content.ParseRaw(evt.Type) // malformed content counts as missing
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
	if broken { // it may hide a member
		if err := r.Expose(ctx, room); err != nil {
			return err
		}
	}
	if members[r.cli.UserID.String()] == nil {
		return fmt.Errorf("the state of the room is incomplete: our own membership is missing")
	}
	var failed error // UpdateStateStore only logs it
	ctx = e2ee.WithFailures(ctx, func(err error) { failed = err })
	err = r.InTx(ctx, func(ctx context.Context) error { // changes counted from here on are stored after it
		r.mu.Lock()
		current := r.changes[room] == changes
		r.mu.Unlock()
		if !current {
			return nil // the caller fetches again
		}
		for _, evt := range others {
			mautrix.UpdateStateStore(ctx, r.states(), evt)
		}
		return cmp.Or(failed, r.states().ReplaceCachedMembers(ctx, room, slices.Collect(maps.Values(members))))
	})
	if err != nil {
		return fmt.Errorf("store the state of the room: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complete[room] = r.changes[room] == changes
	return nil
}

// ForgetState makes the next send fetch the room's state again.
func (r *Rooms) ForgetState(room id.RoomID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.complete, room)
	r.changes[room]++
}

// PrepareSend fetches the state of a room, and reports whether events must be encrypted for it. If so,
// there is a recipient. It returns an error if no event may be sent there.
func (r *Rooms) PrepareSend(ctx context.Context, room id.RoomID) (encrypted bool, err error) {
	if err := r.ensureState(ctx, room); err != nil {
		return false, err
	}
	var stated bool // the homeserver says that it is encrypted
	var algorithm id.Algorithm
	err = r.db.QueryRowContext(ctx, `SELECT coalesce(encrypted, 0), encryption IS NOT NULL, coalesce(encryption ->> 'algorithm', '')
		FROM `+storedOfRoom, room).Scan(&encrypted, &stated, &algorithm)
	switch {
	case err != nil:
		return false, fmt.Errorf("look up the encryption of the room: %w", err)
	case !encrypted && !stated:
		return false, nil
	case !encrypted:
		if err := r.MarkEncrypted(ctx, room); err != nil {
			return false, err
		}
	}
	states := r.states()
	switch algorithm {
	case id.AlgorithmMegolmV1:
	case "":
		// The room was encrypted and the server denies it. Encryption cannot be disabled.
		r.log.Warn("matrix: the homeserver no longer says that this room is encrypted; encrypting anyway", "room", room)
		if err := states.SetEncryptionEvent(ctx, room, &event.EncryptionEventContent{Algorithm: id.AlgorithmMegolmV1}); err != nil {
			return true, fmt.Errorf("note that the room is encrypted: %w", err)
		}
	default:
		return true, retry.Refuse(i18n.Text(fmt.Sprintf("the room is encrypted in a way that is not supported here (%s), "+
			"and plain text is never sent into an encrypted room", text.Clip(string(algorithm), 60))))
	}
	members, err := states.GetRoomJoinedOrInvitedMembers(ctx, room)
	if err != nil {
		return true, fmt.Errorf("look up the members of the room: %w", err)
	}
	if len(members) < 2 {
		return true, retry.Refuse("nobody else is in the room, so nobody could read the message")
	}
	return true, r.devices.RefreshLists(ctx, members)
}
