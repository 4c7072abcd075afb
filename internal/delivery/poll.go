package delivery

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"

	"reverie/internal/chat"
	"reverie/internal/store"
)

// Poll is a question with options, stored in the outbox as JSON.
type Poll struct {
	Question string        `json:"question"`
	Options  []chat.Option `json:"options"`
}

// AnswerID is the id of an option in events, unique per transaction id of a poll. Relations are not
// encrypted, so a homeserver could redirect an encrypted vote to another poll.
func AnswerID(txn, option string) string {
	sum := sha256.Sum256([]byte(txn))
	return option + "-" + hex.EncodeToString(sum[:8])
}

// closePoll closes the poll m.ID with the outcome text. Without such an open poll it does nothing.
func closePoll(ctx context.Context, tx *sql.Tx, m chat.Outgoing, text string) error {
	return store.Exec(ctx, tx, `UPDATE outbox SET text = ?, closed = 1, state = 'pending', revision = revision + 1, attempts = 0,
		next_at = 0, error = '' WHERE id = ? AND poll <> '' AND closed = 0`, text, m.ID)
}

// replacePoll gives the answer id a new event if a poll takes its place, or the place of its poll. An event
// cannot change its type. Questions that are notices stay as they were asked.
func replacePoll(ctx context.Context, tx *sql.Tx, id, poll string) error {
	const other = `id = ?1 AND poll <> ?2 AND (poll = '' OR kind = 'text')`
	if err := queueRedactions(ctx, tx, "why.not_needed", other, id, poll); err != nil {
		return err
	}
	return nextGeneration(ctx, tx, `state = 'draft', text = '', drafted = 0, revision = 0, poll = ?2, closed = 0`, other, id, poll)
}
