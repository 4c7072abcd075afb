package history

import (
	"context"
	"database/sql"
	"strings"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Timeline identifies a transcript: that of a room, or of a thread in a room. It is a type of its
// own to distinguish it from a room id. Memories, tasks, goal, settings and permissions belong to
// the Room.
type Timeline string

const threadPrefix = "thread:" // no room's id begins so

// NewTimeline returns the timeline of a thread in room, by the thread's root; with an empty root,
// the room's own. A root contains no blanks, so the encoding is unambiguous.
func NewTimeline(room, root string) Timeline {
	if root == "" || strings.ContainsFunc(root, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Timeline(room)
	}
	return Timeline(threadPrefix + root + " " + room)
}

// Room returns the room of the timeline.
func (t Timeline) Room() string { _, room := t.split(); return room }

// Thread returns the root of its thread; empty for the room's own timeline.
func (t Timeline) Thread() string { root, _ := t.split(); return root }

func (t Timeline) split() (root, room string) {
	if rest, ok := strings.CutPrefix(string(t), threadPrefix); ok {
		if root, room, ok = strings.Cut(rest, " "); ok {
			return root, room
		}
	}
	return "", string(t)
}

// parent returns the room of a thread; empty for a room's own timeline.
func (t Timeline) parent() string {
	if t.Thread() == "" {
		return ""
	}
	return t.Room()
}

// Exists reports whether t has a transcript, even an empty one.
func (s *Store) Exists(ctx context.Context, t Timeline) (bool, error) {
	return store.Value[bool](ctx, s.db, `SELECT EXISTS (SELECT 1 FROM room WHERE id = ?)`, t)
}

// Threads lists the timelines of the threads of room, sorted.
func (s *Store) Threads(ctx context.Context, room string) ([]Timeline, error) {
	return store.Column[Timeline](ctx, s.db, `SELECT id FROM room WHERE thread_of = ? AND thread_of <> '' ORDER BY id`, room)
}

// Move inserts all conversations of the room from before those of the room to. The current
// conversation of from becomes part of the first one of to; from continues with a new conversation.
// Move can be repeated.
func (s *Store) Move(ctx context.Context, from, to Timeline) error {
	if from == to {
		return nil
	}
	return store.Wrap(store.InTx(ctx, s.db, func(tx *sql.Tx) error { return move(ctx, tx, from, to) }), "move conversations")
}

func move(ctx context.Context, tx *sql.Tx, from, to Timeline) error {
	var before, messages int64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(conversation), 1) - 1, (SELECT count(*) FROM message WHERE room = ?1)
		FROM room WHERE id = ?1`, from).Scan(&before, &messages)
	if err != nil || messages == 0 {
		return err
	}
	return execAll(ctx, tx,
		statement{`INSERT INTO room (id, thread_of) VALUES (?, ?) ON CONFLICT DO NOTHING`, []any{to, to.parent()}},
		statement{`UPDATE message SET conversation = conversation + ? WHERE room = ?`, []any{before, to}},
		statement{`UPDATE compaction SET conversation = conversation + ? WHERE room = ?`, []any{before, to}},
		statement{`UPDATE room SET conversation = conversation + ? WHERE id = ?`, []any{before, to}},
		statement{`UPDATE message SET room = ? WHERE room = ?`, []any{to, from}},
		statement{`UPDATE compaction SET room = ? WHERE room = ?`, []any{to, from}},
		statement{`UPDATE message SET readers = ? WHERE room = ? AND readers = ?`,
			[]any{trust.RoomReaders(to.Room()), to, trust.RoomReaders(from.Room())}},
		statement{`UPDATE room SET readers = (SELECT replace(o.readers, ?, ?) FROM room AS o WHERE o.id = ?) WHERE id = ?`,
			[]any{trust.RoomReaders(from.Room()), trust.RoomReaders(to.Room()), from, to}},
		statement{`UPDATE room SET conversation = conversation + 1, readers = '' WHERE id = ?`, []any{from}})
}

// BeginThread creates the thread c.Room, which starts with summary and details of c, if any. It
// sets ID and Conversation. It returns false, and changes nothing, for an existing thread.
func (s *Store) BeginThread(ctx context.Context, c *Compaction) (bool, error) {
	begun := false
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var err error
		begun, err = store.Found(tx.QueryRowContext(ctx, `INSERT INTO room (id, thread_of) VALUES (?, ?)
			ON CONFLICT DO NOTHING RETURNING conversation`, c.Room, c.Room.parent()).Scan(&c.Conversation))
		if begun && c.Text() != "" {
			c.Messages, c.Shortened = 0, 0
			err = c.insert(ctx, tx)
		}
		return err
	})
	return begun && err == nil, store.Wrap(err, "begin a thread")
}

// redactThreadRoot removes the text of event, a thread root, from the start of its threads. Their
// details hold only the root at first.
func redactThreadRoot(ctx context.Context, tx *sql.Tx, event string) error {
	quoted := map[Timeline]string{}
	err := store.Each(ctx, tx, func(row store.Row) error {
		var t Timeline
		var details string
		err := row.Scan(&t, &details)
		if t.Thread() == event {
			quoted[t] = details
		}
		return err
	}, `SELECT c.room, c.details FROM compaction AS c JOIN room AS r ON r.id = c.room
		WHERE r.thread_of <> '' AND c.reason = 'thread' AND c.details <> ''`)
	for t, said := range quoted {
		if err == nil {
			err = execAll(ctx, tx, statement{`UPDATE compaction SET details = '' WHERE room = ? AND reason = 'thread'`, []any{t}})
		}
		if err == nil {
			err = removeFromSummaries(ctx, tx, `room = ?1`, t, said)
		}
	}
	return store.Wrap(err, "redact the root of a thread")
}
