// Package history keeps the transcript of every room: what was said, with the
// bytes it was sent to the model with, so that a request can be repeated exactly.
package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// ErrKnown is in the error of Append for an event that is stored already.
var ErrDuplicate = errors.New("message is known already")

// Message is one line of a transcript.
type Message struct {
	ID           int64    // grows with every message, over all rooms; never used twice
	Room         Timeline // whose transcript it is in
	Conversation int64    // counts from 1 in each room
	Role         llm.Role
	EventID      string // the transport's id; empty for what did not come from there
	Sender       string
	Header       string         // time and sender as shown to the model
	Quoted       []Quoted       // what it refers to, oldest first: data
	Text         string         // what was said, or as much of it as the model still gets
	Tail         string         // what the prompt added to this message when it was sent
	Calls        []llm.ToolCall // of an assistant message
	CallID       string         // the call a tool message answers
	Failed       bool           // of a tool message: nothing came of the call
	Files        []File         // what came with it
	At           time.Time      // UTC, to the millisecond

	// Label is of all that came with it: Text, Quoted and Files. TailIntegrity is of Tail.
	Label         trust.Label
	TailIntegrity trust.Integrity
}

// Integrity is of the whole message as the model gets it.
func (m *Message) Integrity() trust.Integrity {
	if m.Tail == "" {
		return m.Label.Integrity
	}
	return min(m.Label.Integrity, m.TailIntegrity)
}

// Content is the message as the model gets it, every time: Header, what it quotes,
// and Text on lines of their own, then Tail after a blank line; empty parts leave no trace.
func (m Message) Content() string {
	quotes := m.Quotes()
	var b strings.Builder
	b.Grow(len(m.Header) + len(quotes) + len(m.Text) + len(m.Tail) + 4)
	b.WriteString(m.Header)
	for _, part := range []struct{ text, before string }{{quotes, "\n"}, {m.Text, "\n"}, {m.Tail, "\n\n"}} {
		if part.text == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(part.before)
		}
		b.WriteString(part.text)
	}
	return b.String()
}

// Store keeps transcripts in the database. Nothing is ever deleted: what is no
// longer part of a conversation is only no longer loaded. It is safe for
// concurrent use.
type Store struct{ db *sql.DB }

// NewStore returns the transcripts in db, which has this package's tables.
func NewStore(db *sql.DB) *Store { return &Store{db: db} }

// columns of a Message. What was shortened is read in the short form: the other one
// is kept, and not sent any more.
const columns = `id, room, conversation, role, event_id, sender, header, iif(short <> '', short, text), tail,
	calls, call_id, failed, files, at, quoted, integrity, readers, tail_integrity`

// Conditions for a message that came as an event: one of a room, and one that a person wrote in any.
const (
	eventInRoom = `room = ? AND event_id = ? AND event_id <> ''`
	fromPerson  = `event_id = ?1 AND event_id <> '' AND role = 'user'`
)

// Append stores m at the end of its room's current conversation and sets its ID
// and Conversation; At is cut to what is stored. If the room has a message with
// the same EventID (not empty) already, *m becomes that one and the error is
// ErrKnown: whoever delivers an event twice finds out so.
func (s *Store) Append(ctx context.Context, m *Message) error {
	return store.InTx(ctx, s.db, func(tx *sql.Tx) error { return s.AppendIn(ctx, tx, m) })
}

// AppendIn is Append in a transaction of the caller's, for what belongs to the same moment.
// After ErrKnown it can go on. What m has become counts when it is committed.
func (s *Store) AppendIn(ctx context.Context, tx *sql.Tx, m *Message) error {
	readers := m.Label.Readers
	if readers.Person() == "" && (m.Role != llm.User || m.Sender == "") { // whoever writes later may read what the program said to all
		readers = trust.Nobody
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO room (id, thread_of, readers) VALUES (?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET readers = excluded.readers WHERE room.readers = '' AND excluded.readers <> ''`,
		m.Room, m.Room.parent(), readers); err != nil {
		return fmt.Errorf("append message: %w", err)
	}
	stored, err := scanMessage(tx.QueryRowContext(ctx, `
		INSERT INTO message (room, conversation, role, event_id, sender, header, text, tail,
			calls, call_id, failed, files, at, quoted, integrity, readers, tail_integrity)
		SELECT id, conversation, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM room WHERE id = ?
		ON CONFLICT (room, event_id) WHERE event_id <> '' DO NOTHING RETURNING `+columns,
		m.Role, m.EventID, m.Sender, m.Header, m.Text, m.Tail, store.JSON(&m.Calls), m.CallID, m.Failed, store.JSON(&m.Files),
		millis(m.At), store.JSON(&m.Quoted), m.Label.Integrity, m.Label.Readers, m.TailIntegrity, m.Room))
	known := errors.Is(err, sql.ErrNoRows)
	if known {
		stored, err = scanMessage(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM message WHERE `+eventInRoom, m.Room, m.EventID))
	}
	if err != nil {
		return fmt.Errorf("append message: %w", err)
	}
	*m = stored
	if known {
		return fmt.Errorf("append message %s: %w", m.EventID, ErrDuplicate)
	}
	return nil
}

// Load returns the current conversation of room, oldest first, without what was
// retired or summarised: what is long past is not read. A room that has none gives nothing.
func (s *Store) Load(ctx context.Context, room Timeline) ([]Message, error) {
	all, err := store.List(ctx, s.db, scanMessage, `SELECT `+columns+` FROM message WHERE `+loadedCondition+` ORDER BY id`, room, room)
	return all, store.Wrap(err, "load conversation")
}

// loaded is what Load loads, for a room given twice; as in the index
// message_by_conversation.
const loadedCondition = `room = ? AND conversation = (SELECT conversation FROM room WHERE id = ?) AND retired = 0`

// StartNew begins a new conversation in room and returns its number. The
// messages of the earlier ones stay in the database.
func (s *Store) StartNew(ctx context.Context, room Timeline) (int64, error) {
	n, err := store.Value[int64](ctx, s.db, `INSERT INTO room (id, thread_of, conversation) VALUES (?, ?, 1)
		ON CONFLICT (id) DO UPDATE SET conversation = conversation + 1 RETURNING conversation`, room, room.parent())
	return n, store.Wrap(err, "start conversation")
}

// Readers returns who reads the current conversation of room, by its first message of a person or
// to one person, or as ReadBy noted; Nobody = there is none yet.
func (s *Store) Readers(ctx context.Context, room Timeline) (r trust.Readers, err error) {
	r, err = store.Value[trust.Readers](ctx, s.db, `SELECT readers FROM room WHERE id = ?`, room)
	return r, store.Wrap(err, "look up who reads a conversation")
}

// ReadBy notes who reads the current conversation of room from now on.
func (s *Store) SetReaders(ctx context.Context, room Timeline, r trust.Readers) error {
	_, err := s.db.ExecContext(ctx, `UPDATE room SET readers = ? WHERE id = ?`, r, room)
	return store.Wrap(err, "note who reads a conversation")
}

// LabelOf returns the label of the message event of a room, in whatever conversation of it;
// false if it is not known.
func (s *Store) LabelOf(ctx context.Context, room, event string) (l trust.Label, ok bool, err error) {
	ok, err = found(s.db.QueryRowContext(ctx, `SELECT integrity, readers FROM message
		WHERE room IN (SELECT id FROM room WHERE id = ?1 OR thread_of = ?1) AND event_id = ?2 AND event_id <> '' AND readers <> ''
		LIMIT 1`, room, event).Scan(&l.Integrity, &l.Readers))
	return l, ok, store.Wrap(err, "look up the label of a message")
}

// Retire takes the messages after afterID out of the current conversation of
// room: they stay in the database, known by their EventID, but are no longer
// loaded.
func (s *Store) Retire(ctx context.Context, room Timeline, afterID int64) error {
	_, err := s.db.ExecContext(ctx, `UPDATE message SET retired = 1 WHERE `+loadedCondition+` AND id > ?`, room, room, afterID)
	return store.Wrap(err, "retire messages")
}

// SetTail stores in tx what the prompt adds to message id, and of what integrity that is. It
// belongs into the transaction that stores whatever else the same request stands on.
func (s *Store) SetTail(ctx context.Context, tx *sql.Tx, id int64, tail string, of trust.Integrity) error {
	err := expectOneRow(tx.ExecContext(ctx, `UPDATE message SET tail = ?, tail_integrity = ? WHERE id = ?`, tail, of, id))
	return store.Wrap(err, "set the tail of message %d", id)
}

// Rooms lists the rooms that have a transcript, sorted.
func (s *Store) Rooms(ctx context.Context) ([]string, error) {
	rooms, err := store.Column[string](ctx, s.db, `SELECT id FROM room ORDER BY id`)
	return rooms, store.Wrap(err, "list rooms")
}

func scanMessage(row store.Row) (Message, error) {
	var m Message
	var at int64
	err := row.Scan(&m.ID, &m.Room, &m.Conversation, &m.Role, &m.EventID, &m.Sender, &m.Header, &m.Text, &m.Tail,
		store.JSON(&m.Calls), &m.CallID, &m.Failed, store.JSON(&m.Files), &at, store.JSON(&m.Quoted),
		&m.Label.Integrity, &m.Label.Readers, &m.TailIntegrity)
	if err != nil {
		return Message{}, err
	}
	if at != 0 {
		m.At = time.UnixMilli(at).UTC()
	}
	return m, nil
}

// found is false, and no error, if err says that there is no row.
func found(err error) (bool, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// changeOne is an error unless a statement changed one row.
func expectOneRow(result sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows changed", n)
	}
	return err
}

// statement is one of several that belong together.
type statement struct {
	query string
	args  []any
}

// run runs statements, one after the other.
func execAll(ctx context.Context, db store.DBTX, all ...statement) error {
	for _, one := range all {
		if _, err := db.ExecContext(ctx, one.query, one.args...); err != nil {
			return err
		}
	}
	return nil
}

// millis is a time as stored; 0 is no time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
