package search

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"reverie/internal/store"
	"reverie/internal/trust"
)

const turnColumns = `scope, event, sender, at, conversation, seq, text, integrity`

// IndexTurns stores and indexes messages in one transaction. A message with the same event in the same scope
// is replaced, because it was edited; a redacted one stays empty.
func (f *FTS) IndexTurns(ctx context.Context, turns ...Turn) error {
	return store.InTx(ctx, f.db, func(tx *sql.Tx) error {
		var numbers []int64
		for _, t := range turns {
			n, err := store.Value[int64](ctx, tx, `INSERT INTO past_message (`+turnColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT (scope, event) WHERE event <> ''
					DO UPDATE SET text = excluded.text, integrity = excluded.integrity WHERE text <> '' RETURNING n`,
				t.Scope, t.Event, t.Sender, t.At.UnixMilli(), t.Conversation, t.Seq, t.Text, t.Integrity)
			if err != nil {
				return store.Wrap(err, "index a message")
			}
			if n != 0 { // 0 = it was redacted
				numbers = append(numbers, n)
			}
		}
		return f.updateTurns(ctx, tx, numbers...)
	})
}

// updateTurns updates the index for messages n.
func (f *FTS) updateTurns(ctx context.Context, tx *sql.Tx, n ...int64) error {
	docs := make([]int64, len(n))
	for i, x := range n {
		docs[i] = -x
	}
	all, err := readSources(ctx, tx, turnSource+` AND n IN (SELECT value FROM json_each(?))`, store.Array(n))
	if err != nil {
		return fmt.Errorf("index messages: %w", err)
	}
	return f.replaceDocs(ctx, tx, docs, all)
}

// Openings returns the first messages of people in parts of a conversation, which end with the Seqs ends, the newest
// first: those with at least minOpening characters that are at least as trusted as least.
func Openings(
	ctx context.Context, db store.DBTX, scope trust.Readers, conversation string, ends []int64, least trust.Integrity,
) ([]Turn, error) {
	return store.List(ctx, db, func(row store.Row) (t Turn, err error) {
		var at int64
		err = row.Scan(&t.Sender, &at, &t.Text, &t.Integrity)
		t.At = time.UnixMilli(at).UTC()
		return t, err
	}, `SELECT sender, at, text, integrity FROM (SELECT value AS till, lead(value, 1, 0) OVER (ORDER BY key) AS after FROM json_each(?))
		CROSS JOIN past_message WHERE n = (SELECT n FROM past_message WHERE scope = ? AND conversation = ? AND seq > after
			AND seq <= till AND sender <> '' AND length(text) >= ? AND integrity >= ? ORDER BY seq LIMIT 1) ORDER BY till DESC`,
		store.Array(ends), scope, conversation, minOpening, least)
}

// adjacentTurn selects the message next to h in its conversation, on one side.
func adjacentTurn(compare, order string) string {
	return `(SELECT o.n FROM past_message AS o WHERE o.scope = h.scope AND o.conversation = h.conversation AND h.conversation <> ''
		AND o.text <> '' AND (o.seq, o.n) ` + compare + ` (h.seq, h.n) ORDER BY o.seq ` + order + `, o.n ` + order + ` LIMIT 1)`
}

var turnsQuery = `SELECT t.scope, t.event, t.sender, t.at, t.conversation, t.seq, t.text, t.integrity, h.n, t.n
	FROM json_each(?) AS j CROSS JOIN past_message AS h ON h.n = j.value
	CROSS JOIN past_message AS t ON t.n IN (h.n, ` + adjacentTurn("<", "DESC") + `, ` + adjacentTurn(">", "") + `) ORDER BY t.seq, t.n`

// loadTurns reads the messages among ranked with the ones before and after them, by number.
func (f *FTS) loadTurns(ctx context.Context, ranked []scored) (map[int64]Hit, error) {
	var numbers []int64
	for _, s := range ranked {
		if s.doc < 0 {
			numbers = append(numbers, -s.doc)
		}
	}
	out := map[int64]Hit{}
	return out, store.Each(ctx, f.db, func(row store.Row) error {
		var of, n, at int64
		var t Turn
		err := row.Scan(&t.Scope, &t.Event, &t.Sender, &at, &t.Conversation, &t.Seq, &t.Text, &t.Integrity, &of, &n)
		t.At = time.UnixMilli(at).UTC()
		h := out[of]
		if of == n {
			h.Turn = &t
		} else {
			h.Around = append(h.Around, t)
		}
		out[of] = h
		return err
	}, turnsQuery, store.Array(numbers))
}
