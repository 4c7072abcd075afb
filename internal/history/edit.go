package history

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/store"
)

// EditMessage replaces the text of a person's message event, as its sender edited it. The old text
// is removed from its tail, short forms and summaries. note, if not empty, is appended to the
// header. also is called in the transaction with the message's id. It returns the message as it
// was; ok is false for unknown and redacted messages.
func (s *Store) EditMessage(ctx context.Context, event, text, note string, also func(ctx context.Context, tx *sql.Tx, id int64) error) (
	before Message, ok bool, err error) {
	err = store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		before, err = scanMessage(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM message WHERE `+fromPerson, event))
		if ok, err = store.Found(err); !ok {
			return err
		}
		if err := tx.QueryRowContext(ctx, `SELECT text FROM message WHERE id = ?`, before.ID).Scan(&before.Text); err != nil {
			return err
		}
		if ok = before.Text != redactedText; !ok {
			return nil
		}
		header := before.Header
		if note != "" {
			header = withNote(header, note)
		}
		if before.Text == text {
			return execAll(ctx, tx, statement{`UPDATE message SET header = ? WHERE id = ?`, []any{header, before.ID}})
		}
		if err := redactDerived(ctx, tx, event, before.Text); err != nil {
			return err
		}
		reword := statement{`UPDATE message SET text = ?, tail = '', header = ? WHERE id = ?`, []any{text, header, before.ID}}
		if err := execAll(ctx, tx, reword); err != nil {
			return err
		}
		return also(ctx, tx, before.ID)
	})
	if err != nil || !ok {
		return Message{}, false, store.Wrap(err, "edit a message")
	}
	return before, true, nil
}

// RewindTo makes the message event the last one of the conversation, to be answered again. Later
// messages are retired. reply is the event id for the new answer; the old one loses it, and its
// text. It returns the tools that were used in the retired part, without duplicates.
func (s *Store) RewindTo(ctx context.Context, room Timeline, event, reply string) (used []string, err error) {
	err = store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var id int64
		const loaded = `SELECT id FROM message WHERE ` + loadedCondition + ` AND event_id = ? AND event_id <> ''`
		ok, err := store.Found(tx.QueryRowContext(ctx, loaded, room, room, event).Scan(&id))
		if !ok {
			return err
		}
		if used, err = toolsAfter(ctx, tx, room, id); err != nil {
			return err
		}
		return execAll(ctx, tx,
			statement{`UPDATE message SET text = ?, short = ''
				WHERE ` + loadedCondition + ` AND id > ? AND role = 'assistant' AND calls = ''`,
				[]any{redactedText, room, room, id}},
			statement{`UPDATE message SET retired = 1 WHERE ` + loadedCondition + ` AND id > ?`, []any{room, room, id}},
			statement{`UPDATE message SET event_id = '' WHERE room = ? AND event_id = ? AND event_id <> '' AND role = 'assistant'`,
				[]any{room, reply}})
	})
	return used, store.Wrap(err, "answer a message again")
}

// toolsAfter lists the tools that were called successfully after the message id.
func toolsAfter(ctx context.Context, tx *sql.Tx, room Timeline, id int64) (used []string, err error) {
	after, err := store.List(ctx, tx, scanMessage,
		`SELECT `+columns+` FROM message WHERE `+loadedCondition+` AND id > ? ORDER BY id`, room, room, id)
	names := map[string]string{} // by call
	for _, m := range after {
		for _, c := range m.Calls {
			names[c.ID] = c.Name
		}
		if name := names[m.CallID]; m.Role == llm.Tool && !m.Failed && name != "" && !slices.Contains(used, name) {
			used = append(used, name)
		}
	}
	return used, err
}

// Find returns the message event of room, in whatever state; false if it is unknown.
func (s *Store) Find(ctx context.Context, room Timeline, event string) (Message, bool, error) {
	m, err := scanMessage(s.db.QueryRowContext(ctx, `SELECT `+columns+` FROM message WHERE `+eventInRoom, room, event))
	ok, err := store.Found(err)
	return m, ok, store.Wrap(err, "read message %s", event)
}

// Drop redacts and retires messages, by event id, because they turned out to be commands.
func (s *Store) Drop(ctx context.Context, events ...string) error {
	for _, event := range events {
		if err := s.Redact(ctx, event); err != nil {
			return err
		}
		_, err := s.db.ExecContext(ctx, `UPDATE message SET retired = 1, compaction = 0 WHERE event_id = ? AND event_id <> ''`, event)
		if err != nil {
			return store.Wrap(err, "remove a message")
		}
	}
	return nil
}

// RedactAnswer redacts the answer reply. It empties the tool calls that led to it and their
// results. An unknown answer is not an error.
func (s *Store) RedactAnswer(ctx context.Context, reply string) error {
	if reply == "" {
		return nil
	}
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var id int64
		var room, words string
		const answer = `SELECT id, room, text FROM message WHERE event_id = ? AND event_id <> '' AND role = 'assistant'`
		ok, err := store.Found(tx.QueryRowContext(ctx, answer, reply).Scan(&id, &room, &words))
		if !ok {
			return err
		}
		if words != redactedText {
			where := `room = ?1 OR room IN (SELECT id FROM room WHERE thread_of = ?1 AND thread_of <> '')`
			if err := removeFromSummaries(ctx, tx, where, room, words); err != nil {
				return err
			}
		}
		return execAll(ctx, tx, statement{`UPDATE message SET text = ?, short = '' WHERE id = ?`, []any{redactedText, id}},
			statement{emptyRounds + ` AND id < ?3
				AND id > (SELECT coalesce(max(id), 0) FROM message WHERE room = ?2 AND id < ?3 AND role = 'user')`,
				[]any{redactedText, room, id}})
	})
	return store.Wrap(err, "redact an answer")
}

// emptyRounds retires tool rounds of room ?2 and replaces their text by ?1.
const emptyRounds = `UPDATE message SET retired = 1, compaction = 0, text = ?1, short = '', calls = iif(calls = '', '', '[]')
	WHERE room = ?2 AND role IN ('assistant', 'tool') AND event_id = ''`

// RedactToolRounds empties the tool rounds after a person's message event. It empties those that
// led to no answer yet, or to a redacted one.
func (s *Store) RedactToolRounds(ctx context.Context, event string) error {
	var id int64
	var room string
	ok, err := store.Found(s.db.QueryRowContext(ctx, `SELECT id, room FROM message WHERE `+fromPerson, event).Scan(&id, &room))
	if ok {
		err = execAll(ctx, s.db, statement{emptyRounds + ` AND id > ?3
			AND id < (SELECT coalesce(min(id), 9223372036854775807) FROM message AS n WHERE n.room = ?2 AND n.id > ?3 AND n.role = 'user'
				AND EXISTS (SELECT 1 FROM message AS b WHERE b.room = ?2 AND b.id > ?3 AND b.id < n.id AND b.role = 'assistant'
					AND (b.calls = '' OR n.sender <> (SELECT sender FROM message WHERE id = ?3))))`,
			[]any{redactedText, room, id}})
	}
	return store.Wrap(err, "redact tool calls")
}

// ReplaceAllText replaces the text of all messages of room.
func (s *Store) ReplaceAllText(ctx context.Context, room Timeline, text string) error {
	return store.Wrap(execAll(ctx, s.db, statement{
		`UPDATE message SET text = ?2, short = '', tail = '', calls = iif(calls = '', '', '[]') WHERE room = ?1`,
		[]any{string(room), text}}), "empty a conversation")
}

// withNote returns header with note at its end, inside the brackets if there are any. It replaces
// an earlier note.
func withNote(header, note string) string {
	const sign = " | "
	body, closed := strings.CutSuffix(header, "]")
	if at := strings.LastIndex(body, sign); at >= 0 {
		body = body[:at]
	}
	if body += sign + note; closed {
		body += "]"
	}
	return body
}
