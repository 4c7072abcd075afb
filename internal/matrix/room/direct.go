package room

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/setup"
	"reverie/internal/store"
)

// DirectWith returns the person with whom room is private now, or "".
func (r *Rooms) DirectWith(ctx context.Context, room string) (person string, err error) {
	f, err := r.Facts(ctx, id.RoomID(room))
	if err != nil || !f.Private(f.With) {
		return "", err
	}
	return f.With, nil
}

// StoreDirect stores the people of direct chats from the account's m.direct. A room keeps a person it
// already has. A room that is listed under several people gets none of them.
func (r *Rooms) StoreDirect(ctx context.Context, chats event.DirectChatsEventContent) error {
	with := map[id.RoomID]id.UserID{}
	for user, rooms := range chats {
		for _, room := range rooms {
			if before, ok := with[room]; ok && before != user {
				with[room] = ""
				continue
			}
			with[room] = user
		}
	}
	maps.DeleteFunc(with, func(_ id.RoomID, user id.UserID) bool {
		return !strings.HasPrefix(user.String(), "@") || user == r.cli.UserID
	})
	list, _ := json.Marshal(with) // strings can be written
	err := store.Exec(ctx, r.db, `INSERT INTO matrix_room (id, direct_with) SELECT key, value FROM json_each(?)
		WHERE NOT EXISTS (SELECT 1 FROM matrix_room AS r WHERE r.id = key AND r.direct_with <> '')
		ON CONFLICT (id) DO UPDATE SET direct_with = excluded.direct_with`, string(list))
	return store.Wrap(err, "note direct chats")
}

// addToDirect adds a room to the account's m.direct. Other clients of the account and later devices
// read it. If that fails, they show the room as a group.
func (r *Rooms) addToDirect(ctx context.Context, room id.RoomID, with id.UserID) {
	if err := setup.AddDirect(ctx, r.cli, room, with); err != nil {
		r.log.Warn("matrix: the direct chat is not in the account's list; other clients of the bot show it as a group", "room", room,
			"err", err)
	}
}

// checkExposed reports whether a room is exposed: others than one person are or were members, or
// its history is world-readable. It stores that for good.
func (r *Rooms) checkExposed(ctx context.Context, room id.RoomID, with string) (bool, error) {
	members, err := r.states().GetAllMembers(ctx, room)
	if err != nil {
		return false, fmt.Errorf("look up the members of a room: %w", err)
	}
	history, err := r.states().GetHistoryVisibility(ctx, room)
	if err != nil {
		return false, fmt.Errorf("look up who may read a room: %w", err)
	}
	exposed := history != nil && history.HistoryVisibility == event.HistoryVisibilityWorldReadable
	for user, m := range members {
		switch {
		case user == r.cli.UserID || m.Membership == event.MembershipKnock:
		case with == "":
			with = user.String()
		case user.String() != with:
			exposed = true
		}
	}
	if !exposed {
		return false, nil
	}
	return true, r.Expose(ctx, room)
}

// Expose records that others than one person may know what was said in a room.
func (r *Rooms) Expose(ctx context.Context, room id.RoomID) error {
	return store.Exec(ctx, r.db, `INSERT INTO matrix_room (id, exposed) VALUES (?, 1)
		ON CONFLICT (id) DO UPDATE SET exposed = 1`, room.String())
}

// CheckState checks whether a state event exposes its room, before a later event hides that.
func (r *Rooms) CheckState(ctx context.Context, evt *event.Event) error {
	if evt.Mautrix.EventSource&event.SourceInvite != 0 { // stripped state, not checked by our homeserver
		return nil
	}
	var with string
	var exposed bool
	_, err := store.Found(r.db.QueryRowContext(ctx, `SELECT direct_with, exposed FROM matrix_room WHERE id = ?`, evt.RoomID.String()).
		Scan(&with, &exposed))
	if err != nil {
		return fmt.Errorf("look up a room: %w", err)
	}
	if !exposed {
		_, err = r.checkExposed(ctx, evt.RoomID, with)
	}
	return err
}

// ExposeFromGap checks whether state events in a gap of the timeline exposed the room. The newest state
// does not show that the history was world-readable for a while.
func (r *Rooms) ExposeFromGap(ctx context.Context, room id.RoomID, events []*event.Event) error {
	if !slices.ContainsFunc(events, func(evt *event.Event) bool {
		return evt.StateKey != nil && evt.Type.Type == event.StateHistoryVisibility.Type &&
			evt.Content.Raw["history_visibility"] == string(event.HistoryVisibilityWorldReadable)
	}) {
		return nil
	}
	return r.Expose(ctx, room)
}
