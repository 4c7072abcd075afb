package matrix

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"maunium.net/go/mautrix"

	"reverie/internal/media"
	"reverie/internal/session"
)

// A long answer is sent in parts. One of more than maxParts parts, or one that the
// homeserver finds too large, is sent as its beginning and all of it as a Markdown file.
// The file is a row beside the row of the beginning, with the answer as its text, so both
// commit together, and nothing of it lies on the disk. It is named after what it says: an
// answer that is given anew gets another file, and the old one is redacted.

const (
	// wholeMark is between the name of an answer and that of the file with all of it.
	// Event ids have no "+", and replyOf and partsOf know it as a part.
	wholeMark = "+whole-"
	// wholeTries is how often the media store may answer an upload with a fault that may
	// pass: half a minute. A room is not held up by a broken media store for longer.
	wholeTries = 6
	// smallest is the cost of a message whose size is not why it is refused. The limits
	// of homeservers and of proxies in front of them are not known.
	smallest = 4000
)

func wholeID(id, md string) string {
	sum := sha256.Sum256([]byte(md))
	return id + wholeMark + hex.EncodeToString(sum[:6])
}

// notUploaded is why a file could not be uploaded; no event with it was sent.
type notUploaded struct{ error }

func (e notUploaded) Unwrap() error { return e.error }

// storeBroken tells whether the media store has failed for too long to wait for it with
// the file r. While nothing answers, everything waits.
func storeBroken(r outRow, err error) bool {
	var up notUploaded
	var h mautrix.HTTPError
	return strings.Contains(r.id, wholeMark) && r.attempts+1 >= wholeTries && errors.As(err, &up) && errors.As(err, &h) && h.Response != nil
}

// tooLarge tells whether a homeserver, or a proxy in front of it, refused an
// event for its size.
func tooLarge(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.IsStatus(http.StatusRequestEntityTooLarge) || errors.Is(err, mautrix.MTooLarge))
}

// layOut returns the parts that the answer m is sent in, or its beginning and the row of
// the file with all of it.
func (c *Client) layOut(ctx context.Context, room string, m session.Outgoing) ([]string, *outRow, error) {
	parts, text := split(m.Text, partSize), m.Text
	if len(parts) <= maxParts {
		text = strings.Join(parts, "\n\n")
	}
	begun, known, err := c.q.begun(ctx, m.ID, wholeID(m.ID, text))
	switch {
	case err != nil:
		return nil, nil, err
	case known: // it stands as it was sent
		return []string{begun}, &outRow{id: wholeID(m.ID, text)}, nil
	case len(parts) <= maxParts:
		return parts, nil, nil
	}
	name, note := c.wholeName(ctx, room)
	w, err := wholeFile(m.ID, text, name)
	return []string{beginning(text, partSize, note)}, w, err
}

// begun returns what the message id says while its file with all of it is known.
func (q *queue) begun(ctx context.Context, id, file string) (text string, known bool, err error) {
	err = q.db.QueryRowContext(ctx, `SELECT text FROM outbox WHERE id = ? AND error <> 'taken back'
		AND EXISTS (SELECT 1 FROM outbox WHERE id = ? AND error <> 'taken back')`, id, file).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return "", false, nil
	}
	return text, err == nil, doing("matrix: look into the outbox", err)
}

// wholeName is how the file with all of an answer is called, and the note about it.
func (c *Client) wholeName(ctx context.Context, room string) (name, note string) {
	name = media.Name(c.cfg.Text(ctx, room, "matrix.whole_name"))
	return name, "\n\n*" + c.cfg.Text(ctx, room, "matrix.whole", "file", name) + "*"
}

// wholeFile is the row of the file with all of the message id.
func wholeFile(id, text, name string) (*outRow, error) {
	packed, err := json.Marshal(outFile{Name: name, Type: "text/markdown", Size: int64(len(text)), Text: true})
	return &outRow{id: wholeID(id, text), text: text, file: string(packed)}, err
}

// beginning is what fits of a text into one message of that cost, with a note below.
func beginning(text string, limit int, note string) string {
	return split(text, limit-2*size(note))[0] + note
}

// putWhole makes the file with all of m's answer a row, once.
func (q *queue) putWhole(ctx context.Context, tx *sql.Tx, room, kind string, m session.Outgoing, w *outRow) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, text, file, thread, state, revision, created_at)
		VALUES (?, ?, ?, ?, ?, `+threadOf+`, 'pending', 1, ?)
		ON CONFLICT (id) DO UPDATE SET text = excluded.text, file = excluded.file, state = 'pending', revision = revision + 1, attempts = 0, next_at = 0, error = ''
		WHERE state = 'dead' AND error = 'taken back'`, w.id, room, kind, w.text, w.file, m.Thread, m.ReplyTo, q.now().UnixMilli())
	return err
}

// asFile replaces a message, or a part of one, that the homeserver finds too large by its beginning and a
// file, and tells whether it did. What waits behind it in its room stays behind.
func (c *Client) asFile(ctx context.Context, r outRow) (done bool, err error) {
	if r.file != "" || r.poll != "" {
		return false, nil
	}
	name, note := c.wholeName(ctx, r.room)
	short := beginning(r.text, smallest, note)
	w, err := wholeFile(r.id, r.text, name)
	if err != nil || size(r.text) <= smallest || r.text == short {
		return false, err
	}
	err = c.q.inTx(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `UPDATE outbox SET text = ?, attempts = 0, next_at = 0, error = ''
			WHERE id = ? AND revision = ? AND generation = ? AND state = 'pending'`, short, r.id, r.revision, r.generation)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return err // it got a newer text meanwhile
		}
		known, err := value[bool](ctx, tx, `SELECT 1 FROM outbox WHERE substr(id, 1, length(?1)) = ?1 AND error <> 'taken back'`, r.id+wholeMark)
		if err != nil || known {
			return err // it is the beginning of an answer that is a file already
		}
		c.log.Warn("matrix: a message is too large for the homeserver; sending it as a file", "room", r.room, "message", r.id)
		if err := c.q.putWhole(ctx, tx, r.room, r.kind, session.Outgoing{Thread: r.thread}, w); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `UPDATE outbox SET seq = seq + (SELECT max(seq) FROM outbox) - (SELECT seq FROM outbox WHERE id = ?1)
			WHERE room = ?2 AND state IN ('pending', 'draft') AND id <> ?3 AND seq > (SELECT seq FROM outbox WHERE id = ?1)`, r.id, r.room, w.id)
		return err
	})
	return true, doing("matrix: send a message as a file", err)
}

// partNumber is which part of a message has rest behind the message's name; 0 = none.
func partNumber(rest string) int {
	digits, _ := strings.CutPrefix(rest, "-")
	n, _ := strconv.ParseUint(digits, 10, 31)
	return int(n)
}
