// Package history stores the transcript of every room: all messages, with the exact bytes that were
// sent to the model, so that a request can be repeated identically.
package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// ErrDuplicate is in the error of Append for an event that is stored already.
var ErrDuplicate = errors.New("message is known already")

// Message is one message of a transcript.
type Message struct {
	ID           int64    // increases over all rooms; never reused
	Room         Timeline // the transcript it belongs to
	Conversation int64    // counts from 1 in each room
	Role         llm.Role
	EventID      string // the transport's id; empty if it has none
	Sender       string
	Header       string         // time and sender as shown to the model
	Quoted       []Quoted       // the messages it refers to, oldest first; untrusted data
	Text         string         // its text, or the shortened form that the model gets
	Tail         string         // the context that the prompt appended when it was sent
	Calls        []llm.ToolCall // for an assistant message
	CallID       string         // the call that a tool message answers
	Failed       bool           // the call of a tool message failed
	Files        []File         // attachments
	At           time.Time      // UTC, in milliseconds

	// Label covers Text, Quoted and Files; TailIntegrity covers Tail.
	Label         trust.Label
	TailIntegrity trust.Integrity
}

// Integrity is that of the whole message, Tail included.
func (m *Message) Integrity() trust.Integrity {
	if m.Tail == "" {
		return m.Label.Integrity
	}
	return min(m.Label.Integrity, m.TailIntegrity)
}

// Content is the message as the model gets it: Header, quotes and Text on lines of their own, then
// Tail after a blank line. Empty parts are left out.
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

// Store stores transcripts in the database. It never deletes a row: messages that leave a
// conversation are only no longer loaded. It is safe for concurrent use.
type Store struct{ db *store.DB }

// NewStore returns the store in db, which must have this package's tables.
func NewStore(db *store.DB) *Store { return &Store{db: db} }

// columns are the columns of a Message. A shortened message is read in its short form.
const columns = `id, room, conversation, role, event_id, sender, header, iif(short <> '', short, text), tail,
	calls, call_id, failed, files, at, quoted, integrity, readers, tail_integrity`

// Conditions for the message of an event: in one room, or by a person in any room.
const (
	eventInRoom = `room = ? AND event_id = ? AND event_id <> ''`
	fromPerson  = `event_id = ?1 AND event_id <> '' AND role = 'user'`
)

// Append stores m at the end of its room's current conversation. It sets ID and Conversation, and
// rounds At to milliseconds. If the room already has a message with the same EventID (not empty),
// *m becomes that message and the error is ErrDuplicate.
func (s *Store) Append(ctx context.Context, m *Message) error {
	return store.InTx(ctx, s.db, func(tx *sql.Tx) error { return s.AppendIn(ctx, tx, m) })
}

// AppendIn is Append in the caller's transaction, which can continue after ErrDuplicate. m is valid
// after the commit.
func (s *Store) AppendIn(ctx context.Context, tx *sql.Tx, m *Message) error {
	readers := m.Label.Readers
	if readers.Person() == "" && (m.Role != llm.User || m.Sender == "") { // messages of the program are readable by all later members
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

// Load returns the current conversation of room, oldest first, without retired and summarised
// messages. A room without a conversation returns none.
func (s *Store) Load(ctx context.Context, room Timeline) ([]Message, error) {
	return store.List(ctx, s.db, scanMessage, `SELECT `+columns+` FROM message WHERE `+loadedCondition+` ORDER BY id`, room, room)
}

// LoadEnd returns the end of what Load returns, from the newest message that is first by the given function, or else all.
// If answer is the id of an answer there, the end is right before it.
func (s *Store) LoadEnd(ctx context.Context, room Timeline, answer string, first func(Message) bool) (end []Message, err error) {
	err = store.Each(ctx, s.db, func(row store.Row) error {
		m, err := scanMessage(row)
		if err == nil {
			end = append(end, m)
		}
		if err == nil && first(m) {
			return errFirst
		}
		return err
	}, `SELECT `+columns+` FROM message WHERE `+loadedCondition+`
		AND id < ifnull((SELECT id FROM message WHERE `+eventInRoom+` AND role = 'assistant' AND retired = 0), 1 << 62) ORDER BY id DESC`,
		room, room, room, answer)
	if errors.Is(err, errFirst) {
		err = nil
	}
	slices.Reverse(end)
	return end, err
}

// errFirst ends reading at the first message of an end.
var errFirst = errors.New("first message")

// loadedCondition selects the messages that Load returns; the room is given twice. It matches the
// index message_by_conversation.
const loadedCondition = `room = ? AND conversation = (SELECT conversation FROM room WHERE id = ?) AND retired = 0`

// StartNew begins a new conversation in room and returns its number. Earlier messages stay in the
// database.
func (s *Store) StartNew(ctx context.Context, room Timeline) (int64, error) {
	return store.Value[int64](ctx, s.db, `INSERT INTO room (id, thread_of, conversation) VALUES (?, ?, 1)
		ON CONFLICT (id) DO UPDATE SET conversation = conversation + 1 RETURNING conversation`, room, room.parent())
}

// Readers returns who reads the current conversation of room: the readers of its first message by
// or to a person, or those of SetReaders; empty while unknown.
func (s *Store) Readers(ctx context.Context, room Timeline) (r trust.Readers, err error) {
	return store.Value[trust.Readers](ctx, s.db, `SELECT readers FROM room WHERE id = ?`, room)
}

// SetReaders sets who reads the current conversation of room from now on.
func (s *Store) SetReaders(ctx context.Context, room Timeline, r trust.Readers) error {
	return store.Exec(ctx, s.db, `UPDATE room SET readers = ? WHERE id = ?`, r, room)
}

// LabelOf returns the label of the message event in any conversation of room; false if it is
// unknown.
func (s *Store) LabelOf(ctx context.Context, room, event string) (l trust.Label, ok bool, err error) {
	ok, err = store.Found(s.db.QueryRowContext(ctx, `SELECT integrity, readers FROM message
		WHERE room IN (SELECT id FROM room WHERE id = ?1 OR thread_of = ?1 AND thread_of <> '')
			AND event_id = ?2 AND event_id <> '' AND readers <> '' LIMIT 1`, room, event).Scan(&l.Integrity, &l.Readers))
	return l, ok, store.Wrap(err, "look up the label of a message")
}

// Retire removes the messages after afterID from the current conversation of room. They stay in the
// database, with their EventID, but are no longer loaded.
func (s *Store) Retire(ctx context.Context, room Timeline, afterID int64) error {
	return store.Exec(ctx, s.db, `UPDATE message SET retired = 1 WHERE `+loadedCondition+` AND id > ?`, room, room, afterID)
}

// SetTail sets the tail of message id and its integrity. tx must be the transaction that stores the
// other parts of the same request.
func (s *Store) SetTail(ctx context.Context, tx *sql.Tx, id int64, tail string, of trust.Integrity) error {
	err := expectOneRow(tx.ExecContext(ctx, `UPDATE message SET tail = ?, tail_integrity = ? WHERE id = ?`, tail, of, id))
	return store.Wrap(err, "set the tail of message %d", id)
}

// Rooms lists the timelines that have a transcript, the one with the newest message first.
func (s *Store) Rooms(ctx context.Context) ([]string, error) {
	return store.Column[string](ctx, s.db, `SELECT id FROM room
		ORDER BY (SELECT max(id) FROM message WHERE message.room = room.id AND retired = 0) DESC, id`)
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

// expectOneRow returns an error unless a statement changed exactly one row.
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

type statement struct {
	query string
	args  []any
}

func execAll(ctx context.Context, db store.DBTX, all ...statement) error {
	for _, one := range all {
		if _, err := db.ExecContext(ctx, one.query, one.args...); err != nil {
			return err
		}
	}
	return nil
}

// millis converts a time to its stored form; 0 is the zero time.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// messageFrame is the number of tokens of a message or call besides its text.
const messageFrame = 4

// Tokens estimates the tokens of m in a request, without its tail.
func (m *Message) Tokens() int {
	n := messageFrame + llm.EstimateTokens(m.Header) + llm.EstimateTokens(m.Quotes()) + llm.EstimateTokens(m.Text)
	for _, c := range m.Calls {
		n += messageFrame + llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
	}
	for i := range m.Files {
		n += m.Files[i].Tokens()
	}
	return n
}

// Tokens sums up the tokens of all.
func Tokens(all []Message) int {
	n := 0
	for i := range all {
		n += all[i].Tokens()
	}
	return n
}

// MinIntegrity is the lowest integrity of all.
func MinIntegrity(all []Message) trust.Integrity {
	least := trust.Owner
	for i := range all {
		least = min(least, all[i].Integrity())
	}
	return least
}

// OneLine folds white space and truncates line to n characters.
func OneLine(line string, n int) string { return text.Cut(strings.Join(strings.Fields(line), " "), n) }
