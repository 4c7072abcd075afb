// Package room tracks the rooms: members, encryption, privacy, the bot's memberships, and upgrades.
package room

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"
	"maunium.net/go/mautrix/sqlstatestore"

	"reverie/internal/matrix/account"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/text"
)

// Rooms reads and writes the room data in bot.db and mautrix's state store.
type Rooms struct {
	db      *store.DB
	cli     *mautrix.Client
	devices *e2ee.Devices
	log     *slog.Logger

	mu       sync.Mutex
	complete map[id.RoomID]bool // rooms whose full state was fetched since our last join
	changes  map[id.RoomID]int  // number of member changes and of ForgetState calls
}

// New returns the rooms of acc.
func New(db *store.DB, acc *account.Account, log *slog.Logger) *Rooms {
	return &Rooms{db: db, cli: acc.Client, devices: acc.Devices, log: log, complete: map[id.RoomID]bool{}, changes: map[id.RoomID]int{}}
}

// states is mautrix's state store.
func (r *Rooms) states() *sqlstatestore.SQLStateStore {
	return r.cli.StateStore.(*sqlstatestore.SQLStateStore)
}

// InTx runs do in a transaction of mautrix's database. Each commit waits for the disk. do must pass its context on, and
// must not write to the database by other means: it would wait for itself.
func (r *Rooms) InTx(ctx context.Context, do func(ctx context.Context) error) error {
	return r.states().DoTxn(ctx, nil, do)
}

func (r *Rooms) setMembership(ctx context.Context, room id.RoomID, membership string) error {
	return store.Exec(ctx, r.db, `INSERT INTO matrix_room (id, membership) VALUES (?, ?)
		ON CONFLICT (id) DO UPDATE SET membership = excluded.membership, attempts = 0, next_at = 0`, room.String(), membership)
}

// MarkEncrypted stores for good that a room is encrypted. Encryption cannot be disabled: a
// homeserver that claims so is not trusted.
func (r *Rooms) MarkEncrypted(ctx context.Context, room id.RoomID) error {
	return store.Exec(ctx, r.db, `INSERT INTO matrix_room (id, encrypted) VALUES (?, 1)
		ON CONFLICT (id) DO UPDATE SET encrypted = 1`, room.String())
}

// storedOfRoom is what is stored of the room ?, in one row, also if nothing is.
const storedOfRoom = `(SELECT ? AS given) LEFT JOIN matrix_room ON id = given LEFT JOIN mx_room_state ON room_id = given`

// Facts returns what the gate needs to know about a room.
func (r *Rooms) Facts(ctx context.Context, room id.RoomID) (f gate.Room, err error) {
	err = r.db.QueryRowContext(ctx, `SELECT coalesce(direct_with, ''), coalesce(exposed, 0),
			coalesce(encrypted, 0) OR coalesce(encryption ->> 'algorithm' = ?, 0),
			(SELECT count(*) FROM mx_user_profile WHERE room_id = given AND membership IN ('join', 'invite')),
			coalesce((SELECT displayname FROM mx_user_profile WHERE room_id = given AND user_id = ?), '')
		FROM `+storedOfRoom,
		id.AlgorithmMegolmV1, r.cli.UserID, room).Scan(&f.With, &f.Exposed, &f.Encrypted, &f.Members, &f.Name)
	if err != nil {
		return f, fmt.Errorf("look up a room: %w", err)
	}
	f.Name = cleanName(f.Name)
	by, err := settings.Store{DB: r.db}.Choices(ctx, room.String())
	if err != nil {
		return f, err
	}
	set := settings.Effective(by)
	f.Open, f.Listens, f.Threads = set[settings.Mention] == "off", set[settings.Listen] == "on", set[settings.Threads]
	switch direct := set[settings.Direct]; {
	case direct == "off":
		f.With = ""
	case direct == "on" && f.With == "":
		f.With = by[settings.Direct].Person
	}
	if !f.Exposed {
		if f.Exposed, err = r.checkExposed(ctx, room, f.With); err != nil {
			return f, err
		}
	}
	f.Unproven, err = r.devices.Unproven(ctx, f.Encrypted, id.UserID(f.With))
	return f, err
}

// DisplayName returns the display name of a member, or "".
func (r *Rooms) DisplayName(ctx context.Context, room id.RoomID, user id.UserID) string {
	m, err := r.states().TryGetMember(ctx, room, user)
	if err != nil || m == nil {
		return ""
	}
	return cleanName(m.Displayname)
}

func cleanName(name string) string {
	return text.Clip(strings.ReplaceAll(text.Clean(name), "\n", " "), 100)
}

// People returns the number of joined members of a room, including the bot.
func (r *Rooms) People(ctx context.Context, room string) (int, error) {
	n, err := store.Value[int](ctx, r.db, `SELECT count(*) FROM mx_user_profile WHERE room_id = ? AND membership = 'join'`, room)
	return n, store.Wrap(err, "matrix: look up the members of a room")
}

// Left reports whether the bot has left a room or was removed. It is false after another
// invitation, and for an unknown room.
func (r *Rooms) Left(ctx context.Context, room string) (bool, error) {
	return store.Value[bool](ctx, r.db, `SELECT membership IN ('left', 'refused') FROM matrix_room WHERE id = ?`, room)
}

// DirectChat returns a private direct chat with person, preferably an encrypted one, or "".
func (r *Rooms) DirectChat(ctx context.Context, person string) (string, error) {
	rooms, err := store.Column[id.RoomID](ctx, r.db,
		`SELECT id FROM matrix_room WHERE membership = 'joined' AND direct_with = ? ORDER BY encrypted DESC, id`, person)
	if err != nil {
		return "", fmt.Errorf("look up direct chats: %w", err)
	}
	for _, room := range rooms {
		facts, err := r.Facts(ctx, room)
		if err != nil {
			return "", err
		}
		if facts.Private(person) && r.cli.StateStore.IsInRoom(ctx, room, id.UserID(person)) {
			return room.String(), nil
		}
	}
	return "", nil
}

// AwaitingMove lists the rooms that replace others whose data is not moved yet.
func (r *Rooms) AwaitingMove(ctx context.Context) ([]string, error) {
	return store.Column[string](ctx, r.db, `SELECT id FROM matrix_room WHERE replaces <> '' AND moved = 0`)
}

// Count returns the number of joined rooms and how many of them are encrypted.
func Count(ctx context.Context, db *store.DB) (joined, encrypted int, err error) {
	err = db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(encrypted), 0) FROM matrix_room WHERE membership = 'joined'`).
		Scan(&joined, &encrypted)
	return joined, encrypted, store.Wrap(err, "matrix: count the rooms")
}

// StoreLastEvents stores the newest event of each room.
func StoreLastEvents(ctx context.Context, tx *sql.Tx, last map[string]string) error {
	for room, event := range last {
		if _, err := tx.ExecContext(ctx, `INSERT INTO matrix_room (id, last_event) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET last_event = excluded.last_event`, room, event); err != nil {
			return err
		}
	}
	return nil
}

// LastEvent returns the newest stored event of a room, or "".
func (r *Rooms) LastEvent(ctx context.Context, room id.RoomID) (id.EventID, error) {
	return store.Value[id.EventID](ctx, r.db, `SELECT last_event FROM matrix_room WHERE id = ?`, room.String())
}

// LastEvents returns the newest stored event of each joined room.
func (r *Rooms) LastEvents(ctx context.Context) (map[id.RoomID]id.EventID, error) {
	return store.Pairs[id.RoomID, id.EventID](ctx, r.db,
		`SELECT id, last_event FROM matrix_room WHERE membership = 'joined' AND last_event <> ''`)
}

// RoomsOf lists the rooms in db where the bot and person are members. It is empty before the first sync.
func RoomsOf(ctx context.Context, db *store.DB, person string) ([]string, error) {
	known, err := store.Value[bool](ctx, db, `SELECT count(*) FROM sqlite_master WHERE name = 'mx_user_profile'`)
	if err != nil || !known {
		return nil, store.Wrap(err, "matrix: look up rooms")
	}
	return store.Column[string](ctx, db, `SELECT r.id FROM matrix_room r JOIN mx_user_profile m ON m.room_id = r.id
		WHERE m.user_id = ? AND m.membership = 'join' AND r.membership = 'joined' ORDER BY r.id`, person)
}
