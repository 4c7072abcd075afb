package matrix

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"maunium.net/go/mautrix"

	"reverie/internal/chat"
	"reverie/internal/matrix/render"
	"reverie/internal/media"
)

// A text that is too large for one event, or for the homeserver, is sent as its beginning and
// all of it as a Markdown file. The file is a row beside the row of the beginning, with the whole
// text, so both commit together, and nothing of it lies on the disk. It is named after what it
// says: an answer that is given anew gets another file, and the old one is redacted.

const (
	// wholeMark is between the name of an answer and that of the file with all of it.
	// Event ids have no "+", and replyOf and partsOf know it as a part.
	wholeMark = "+whole-"
	// smallest is the cost of a message whose size is not why it is refused. The limits
	// of homeservers and of proxies in front of them are not known.
	smallest = 4000
)

// layOut returns what the message m of that room reads, and the row of the file with all of it
// if it is too large for one event.
func (c *Client) layOut(ctx context.Context, room string, m chat.Outgoing) (string, *outRow, error) {
	text := strings.ToValidUTF8(m.Text, "\uFFFD")
	if render.Size(text) <= render.MaxSize {
		return text, nil, nil
	}
	return c.shorten(ctx, room, m.ID, text, render.MaxSize)
}

// shorten returns the beginning of the message id that costs at most limit, and the row of the
// file with all of it.
func (c *Client) shorten(ctx context.Context, room, id, text string, limit int) (string, *outRow, error) {
	name := media.Name(c.cfg.Text(ctx, room, "matrix.whole_name"))
	note := "\n\n*" + c.cfg.Text(ctx, room, "matrix.whole", "file", name) + "*"
	sum := sha256.Sum256([]byte(text))
	packed, err := json.Marshal(outFile{Name: name, Type: "text/markdown", Size: int64(len(text)), Text: true})
	return render.Beginning(text, limit, note), &outRow{id: id + wholeMark + hex.EncodeToString(sum[:6]), text: text, file: string(packed)}, err
}

// putWhole makes the file with all of m's answer a row, once.
func (q *queue) putWhole(ctx context.Context, tx *sql.Tx, room, kind string, m chat.Outgoing, w *outRow) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, text, file, thread, state, revision, created_at)
		VALUES (?, ?, ?, ?, ?, `+threadOf+`, 'pending', 1, ?)
		ON CONFLICT (id) DO UPDATE SET text = excluded.text, file = excluded.file, state = 'pending', revision = revision + 1, attempts = 0, next_at = 0, error = ''
		WHERE state = 'dead' AND error = 'taken back'`, w.id, room, kind, w.text, w.file, m.Thread, m.ReplyTo, q.now().UnixMilli())
	return err
}

// tooLarge tells whether a homeserver, or a proxy in front of it, refused an
// event for its size.
func tooLarge(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.IsStatus(http.StatusRequestEntityTooLarge) || errors.Is(err, mautrix.MTooLarge))
}

// asFile replaces a message that the homeserver finds too large by a short beginning and a
// file, and tells whether it did.
func (c *Client) asFile(ctx context.Context, r outRow) (done bool, err error) {
	if r.file != "" || r.poll != "" || render.Size(r.text) <= smallest {
		return false, nil
	}
	short, w, err := c.shorten(ctx, r.room, r.id, r.text, smallest)
	if err != nil {
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
		return c.q.putWhole(ctx, tx, r.room, r.kind, chat.Outgoing{Thread: r.thread}, w)
	})
	return true, doing("matrix: send a message as a file", err)
}
