package matrix

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/media"
	"reverie/internal/session"
)

// An answer that would take many messages is sent as its first one and all of it as a
// Markdown file. The file is a row beside the row of the first message, with the answer
// as its text, so both commit together, and nothing of it lies on the disk. It is named
// after what it says: an answer that is given anew gets another file, and the old one is
// taken back as a part is that is said no more.

const (
	// wholeMark is between the name of an answer and that of the file with all of it.
	// Event ids have no "+", and replyOf and partsOf know it as a part.
	wholeMark = "+whole-"
	// inParts is the error of such a file whose answer was sent in parts after all.
	inParts = "sent in parts instead"
	// wholeTries is how often an upload may fail in a way that may pass, until the answer
	// is sent in parts: some seconds. An answer is not held up by a broken media store.
	wholeTries = 3
)

func wholeID(id, md string) string {
	sum := sha256.Sum256([]byte(md))
	return id + wholeMark + hex.EncodeToString(sum[:6])
}

// notUploaded is why a file could not be uploaded; no event with it was sent.
type notUploaded struct{ error }

func (e notUploaded) Unwrap() error { return e.error }

// sayLong says the answer m by its beginning and a file with all of it; in parts if it
// came to that before.
func (c *Client) sayLong(ctx context.Context, room string, m session.Outgoing, with ...func(context.Context, *sql.Tx) error) error {
	w := &outRow{id: wholeID(m.ID, m.Text), text: m.Text}
	inParts, err := c.q.inParts(ctx, w.id)
	switch {
	case err != nil:
		return err
	case inParts:
		err = c.q.say(ctx, room, m, split(m.Text, partSize), with...)
	default:
		f := outFile{Name: media.Name(c.cfg.Text(ctx, room, "matrix.whole_name")), Type: "text/markdown", Size: int64(len(m.Text)), Text: true}
		packed, failed := json.Marshal(f)
		if failed != nil {
			return failed
		}
		w.file = string(packed)
		note := "\n\n*" + c.cfg.Text(ctx, room, "matrix.whole", "file", f.Name) + "*"
		err = c.q.sayWith(ctx, room, m, []string{split(m.Text, partSize-2*size(note))[0] + note}, "", w, with...)
	}
	if err == nil {
		poke(c.outWake)
	}
	return err
}

// inParts tells whether the answer was sent in parts because its file could not be.
func (q *queue) inParts(ctx context.Context, file string) (given bool, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM outbox WHERE id = ? AND error = ?)`, file, inParts).Scan(&given)
	if err != nil {
		return false, fmt.Errorf("matrix: look into the outbox: %w", err)
	}
	return given, nil
}

// putWhole makes the file with all of m's answer a row, once.
func (q *queue) putWhole(ctx context.Context, tx *sql.Tx, room, kind string, m session.Outgoing, w *outRow) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, text, file, thread, state, revision, created_at)
		VALUES (?, ?, ?, ?, ?, `+threadOf+`, 'pending', 1, ?)
		ON CONFLICT (id) DO UPDATE SET text = excluded.text, file = excluded.file, state = 'pending', revision = revision + 1, attempts = 0, next_at = 0, error = ''
		WHERE state = 'dead' AND error = 'taken back'`, w.id, room, kind, w.text, w.file, m.Thread, m.ReplyTo, q.now().UnixMilli())
	return err
}

// instead sends the answer of the file r in parts if r can not be had, or not soon, and
// tells whether it does. The first message, which says that the file comes, is edited.
func (c *Client) instead(ctx context.Context, r outRow, why error) (bool, error) {
	of, _, isWhole := strings.Cut(r.id, wholeMark)
	if !isWhole || r.eventID != "" {
		return false, nil
	}
	var up notUploaded
	uploading := errors.As(why, &up)
	if v, _ := judge(why, r.attempts); v == logout || v != never && (!uploading || r.attempts+1 < wholeTries) {
		return false, nil
	}
	c.log.Warn("matrix: a long answer cannot be sent as a file; sending it in parts", "room", r.room, "message", of, "err", why)
	return true, c.q.instead(ctx, r, of, split(r.text, partSize))
}

func (q *queue) instead(ctx context.Context, r outRow, of string, parts []string) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `UPDATE outbox SET state = 'dead', error = ?, text = '' WHERE id = ? AND revision = ? AND generation = ? AND state = 'pending' AND event_id = ''`,
			inParts, r.id, r.revision, r.generation)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err // the answer was taken back or given anew meanwhile
		}
		behind, err := behind(ctx, tx, r)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE outbox SET text = ?, state = 'pending', revision = revision + 1, attempts = 0, next_at = 0, error = ''
			WHERE id = ? AND state IN ('sent', 'pending')`, parts[0], of); err != nil {
			return err
		}
		for i, text := range parts[1:] {
			if _, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, text, thread, state, revision, created_at) VALUES (?, ?, ?, ?, ?, 'pending', 1, ?)
				ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, text = excluded.text, state = 'pending', revision = revision + 1, attempts = 0, next_at = 0, error = ''`,
				partID(of, i+1), r.room, r.kind, text, r.thread, q.now().UnixMilli()); err != nil {
				return err
			}
		}
		return last(ctx, tx, behind)
	})
	if err != nil {
		return fmt.Errorf("matrix: send an answer in parts: %w", err)
	}
	return nil
}

// last puts messages behind all others, in this order.
func last(ctx context.Context, tx *sql.Tx, ids []string) error {
	for _, id := range ids {
		if _, err := tx.ExecContext(ctx, `UPDATE outbox SET seq = (SELECT max(seq) + 1 FROM outbox) WHERE id = ?`, id); err != nil {
			return err
		}
	}
	return nil
}
