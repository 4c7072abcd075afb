package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/store"
)

// Reword gives the message event of a person other words, wherever it was said: its
// sender edited it. The old ones leave what prompts added to it, its short forms, and
// the lines of summaries that repeat them; it is harvested anew. note, if any, goes to the
// end of its header and says what the model must know of the edit. One that was taken
// back stays so. It returns the message as it was; false if there is none.
func (s *Store) Reword(ctx context.Context, event, text, note string) (was Message, ok bool, err error) {
	err = store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		was, err = scan(tx.QueryRowContext(ctx, `SELECT `+columns+` FROM message WHERE event_id = ? AND event_id <> '' AND role = 'user'`, event))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		var said string
		if err := tx.QueryRowContext(ctx, `SELECT text FROM message WHERE id = ?`, was.ID).Scan(&said); err != nil {
			return err
		}
		was.Text, ok = said, said != takenBack
		if !ok {
			return nil
		}
		header := was.Header
		if note != "" {
			header = annotated(header, note)
		}
		if said == text {
			_, err := tx.ExecContext(ctx, `UPDATE message SET header = ? WHERE id = ?`, header, was.ID)
			return err
		}
		if err := redactShort(ctx, tx, event, said); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE message SET text = ?, tail = '', header = ? WHERE id = ?`, text, header, was.ID); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE harvest SET state = 'new', tries = 0, pos = 0, at = 0, reason = '' WHERE message = ?`, was.ID)
		return err
	})
	if err != nil {
		return Message{}, false, fmt.Errorf("edit a message: %w", err)
	}
	return was, ok, nil
}

// Reopen makes the message event the last one of the conversation, so that it can
// be answered anew: what came after it is set aside. reply is the event id that the
// answer to come is stored under; whoever had it gives it up, with its words. It returns the names of
// the tools that were used for what is set aside, each once.
func (s *Store) Reopen(ctx context.Context, room Talk, event, reply string) (used []string, err error) {
	err = store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var id int64
		err := tx.QueryRowContext(ctx, `SELECT id FROM message WHERE `+loaded+` AND event_id = ? AND event_id <> ''`, room, room, event).Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if used, err = toolsAfter(ctx, tx, room, id); err != nil {
			return err
		}
		for _, step := range []struct {
			query string
			args  []any
		}{
			{`UPDATE message SET text = ?, short = '' WHERE ` + loaded + ` AND id > ? AND role = 'assistant' AND calls = ''`, []any{takenBack, room, room, id}},
			{`UPDATE message SET retired = 1 WHERE ` + loaded + ` AND id > ?`, []any{room, room, id}},
			{`UPDATE message SET event_id = '' WHERE room = ? AND event_id = ? AND role = 'assistant'`, []any{room, reply}},
		} {
			if _, err := tx.ExecContext(ctx, step.query, step.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("answer a message anew: %w", err)
	}
	return used, nil
}

// toolsAfter names the tools that were called after the message id and gave a result.
func toolsAfter(ctx context.Context, tx *sql.Tx, room Talk, id int64) (used []string, err error) {
	after, err := store.List(ctx, tx, scan, `SELECT `+columns+` FROM message WHERE `+loaded+` AND id > ? ORDER BY id`, room, room, id)
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

// Find returns the message event of the conversation room, whatever became of it since; false if there is
// none.
func (s *Store) Find(ctx context.Context, room Talk, event string) (Message, bool, error) {
	m, err := scan(s.db.QueryRowContext(ctx, `SELECT `+columns+` FROM message WHERE room = ? AND event_id = ? AND event_id <> ''`, room, event))
	if errors.Is(err, sql.ErrNoRows) {
		return Message{}, false, nil
	}
	if err != nil {
		return Message{}, false, fmt.Errorf("read message %s: %w", event, err)
	}
	return m, true, nil
}

// Drop takes messages, by their event ids, out of their conversations for good, with the
// words of those that people wrote: they are none any more, but commands.
func (s *Store) Drop(ctx context.Context, events ...string) error {
	for _, event := range events {
		if err := s.Redact(ctx, event); err != nil {
			return err
		}
		if _, err := s.db.ExecContext(ctx, `UPDATE message SET retired = 1, compaction = 0 WHERE event_id = ? AND event_id <> ''`, event); err != nil {
			return fmt.Errorf("take a message out: %w", err)
		}
	}
	return nil
}

// Unsay takes the words of the answer reply back, wherever it was said, and empties the
// tool calls that led to it, with what came of them. The answer itself stays as a
// message that was taken back. One that is not stored is no error.
func (s *Store) Unsay(ctx context.Context, reply string) error {
	if reply == "" {
		return nil
	}
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var id int64
		var room, said string
		err := tx.QueryRowContext(ctx, `SELECT id, room, text FROM message WHERE event_id = ? AND role = 'assistant'`, reply).Scan(&id, &room, &said)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if said != takenBack {
			if err := withoutWords(ctx, tx, `room = ?1 OR room IN (SELECT id FROM room WHERE branch_of = ?1)`, room, said); err != nil {
				return err
			}
		}
		if _, err := tx.ExecContext(ctx, `UPDATE message SET text = ?, short = '' WHERE id = ?`, takenBack, id); err != nil {
			return err
		}
		return emptyWork(ctx, tx, room, id)
	})
	if err != nil {
		return fmt.Errorf("take an answer back: %w", err)
	}
	return nil
}

// emptyWork sets aside, without their words, the tool rounds between the message before
// the answer id and that.
func emptyWork(ctx context.Context, tx *sql.Tx, room string, id int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE message SET retired = 1, compaction = 0, text = ?1, short = '', calls = iif(calls = '', '', '[]')
		WHERE room = ?2 AND id < ?3 AND role IN ('assistant', 'tool') AND event_id = ''
			AND id > (SELECT coalesce(max(id), 0) FROM message WHERE room = ?2 AND id < ?3 AND role = 'user')`, takenBack, room, id)
	return err
}

// UnsayWork empties the tool rounds that follow the message event of a person and led to
// no answer yet, or to one that is taken back.
func (s *Store) UnsayWork(ctx context.Context, event string) error {
	err := store.InTx(ctx, s.db, func(tx *sql.Tx) error {
		var id int64
		var room string
		err := tx.QueryRowContext(ctx, `SELECT id, room FROM message WHERE event_id = ? AND event_id <> '' AND role = 'user'`, event).Scan(&id, &room)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE message SET retired = 1, compaction = 0, text = ?1, short = '', calls = iif(calls = '', '', '[]')
			WHERE room = ?2 AND id > ?3 AND role IN ('assistant', 'tool') AND event_id = ''
				AND id < (SELECT coalesce(min(id), 9223372036854775807) FROM message AS n WHERE n.room = ?2 AND n.id > ?3 AND n.role = 'user'
					AND EXISTS (SELECT 1 FROM message AS b WHERE b.room = ?2 AND b.id > ?3 AND b.id < n.id AND b.role = 'assistant'))`, takenBack, room, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("take a message back: %w", err)
	}
	return nil
}

// annotated is a header with note at its end, within the brackets if it has some, in the
// place of the one it had.
func annotated(header, note string) string {
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
