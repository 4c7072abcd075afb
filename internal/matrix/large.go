package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"maunium.net/go/mautrix"
)

// smallest is the cost of a part that is not divided further: its size cannot be
// why it is refused.
const smallest = 2000

// editing is what an edit of a message may cost more than the message did: one
// that fits must fit when it is said again.
const editing = 1500

// tooLarge tells whether a homeserver, or a proxy in front of it, refused an
// event for its size.
func tooLarge(err error) bool {
	var h mautrix.HTTPError
	return errors.As(err, &h) && (h.IsStatus(http.StatusRequestEntityTooLarge) || errors.Is(err, mautrix.MTooLarge))
}

// divide replaces a message that was too large for the homeserver by two or
// more, and tells whether that was possible. The limit is not known: proxies
// have limits of their own. What is still too large comes here again.
func (c *Client) divide(ctx context.Context, r outRow) (bool, error) {
	limit := limitOf(r.text)
	parts := split(r.text, limit)
	if len(parts) < 2 {
		return false, nil
	}
	c.log.Warn("matrix: a message is too large for the homeserver; sending it in parts", "room", r.room, "message", r.id, "parts", len(parts))
	return true, c.q.divide(ctx, r, limit, parts)
}

// limitOf is the cost of the parts that text is divided into, where it is too large.
func limitOf(text string) int { return max(size(text)/2-editing, smallest) }

// named is what the part of a message says that has rest behind the message's name, if the
// message, which is sent as parts, has such a part: see partID and divide.
func named(parts []string, rest string) (says string, ok bool) {
	n := 1
	for i, step := range strings.Split(rest, "+") {
		var limit int
		var err error
		switch {
		case i > 0:
			_, err = fmt.Sscanf(step, "%d-%d", &limit, &n)
			for parts = split(says, limitOf(says)); err == nil && limit < limitOf(says) && len(parts) > 1; parts = split(says, limitOf(says)) {
				says = parts[0] // which was divided again: the first part keeps the name
			}
			if limit != limitOf(says) {
				return "", false
			}
		case step != "":
			_, err = fmt.Sscanf(step, "-%d", &n)
		}
		if err != nil || n < 1 || n > len(parts) {
			return "", false
		}
		says = parts[n-1]
	}
	return says, true
}

// begins reports whether a part that says text is all of says, or was divided again: then it
// is its beginning, and what was cut is closed at its end.
func begins(says, text string) bool {
	bare := func(s string) string {
		return strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \t\n|`~>", r) {
				return -1
			}
			return r
		}, s)
	}
	return strings.HasPrefix(bare(says), bare(text))
}

// divide makes parts of a message out of one, in its place: what waits behind
// it in its room stays behind. The limit is part of the names, so that a message
// that is divided again gets new ones, and one that is said again the same ones.
func (q *queue) divide(ctx context.Context, r outRow, limit int, parts []string) error {
	err := q.inTx(ctx, func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx, `UPDATE outbox SET text = ? WHERE id = ? AND revision = ? AND state = 'pending'`, parts[0], r.id, r.revision)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err // it got a newer text meanwhile
		}
		behind, err := behind(ctx, tx, r)
		if err != nil {
			return err
		}
		for i, text := range parts[1:] {
			if _, err := tx.ExecContext(ctx, `INSERT INTO outbox (id, room, kind, text, thread, state, revision, created_at) VALUES (?, ?, ?, ?, ?, 'pending', 1, ?)
				ON CONFLICT (id) DO UPDATE SET text = excluded.text, state = 'pending', revision = revision + 1 WHERE text <> excluded.text`,
				fmt.Sprintf("%s+%d-%d", r.id, limit, i+2), r.room, r.kind, text, r.thread, q.now().UnixMilli()); err != nil {
				return err
			}
		}
		return last(ctx, tx, behind)
	})
	if err != nil {
		return fmt.Errorf("matrix: divide a message: %w", err)
	}
	return nil
}

// behind lists the messages that wait behind r in its room, in order.
func behind(ctx context.Context, tx *sql.Tx, r outRow) ([]string, error) {
	rows, err := tx.QueryContext(ctx, `SELECT id FROM outbox WHERE room = ? AND state IN ('pending', 'draft')
		AND seq > (SELECT seq FROM outbox WHERE id = ?) ORDER BY seq`, r.room, r.id)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		list = append(list, id)
	}
	return list, rows.Err()
}
