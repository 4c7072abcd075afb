package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/store"
)

const turnColumns = `scope, event, sender, at, conversation, seq, text, integrity`

func scanTurn(row store.Row) (Turn, error) {
	var t Turn
	var at int64
	if err := row.Scan(&t.Scope, &t.Event, &t.Sender, &at, &t.Conversation, &t.Seq, &t.Text, &t.Integrity); err != nil {
		return Turn{}, err
	}
	t.At = fromMilli(at)
	return t, nil
}

// Hear keeps t so that it can be found again. A message with the same event in
// the same scope takes the place of the earlier one: it was edited.
func (f *FTS) Hear(ctx context.Context, t Turn) error {
	if t.Text == "" || t.Scope == "" {
		return errors.New("hear: a message without text or scope")
	}
	if err := store.InTx(ctx, f.db, func(tx *sql.Tx) error { return f.hear(ctx, tx, t) }); err != nil {
		return fmt.Errorf("hear: %w", err)
	}
	return nil
}

func (f *FTS) hear(ctx context.Context, tx *sql.Tx, t Turn) error {
	var n int64
	err := tx.QueryRowContext(ctx, `INSERT INTO memory_turn (`+turnColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, event) WHERE event <> '' DO UPDATE SET text = excluded.text, integrity = excluded.integrity WHERE text <> '' RETURNING n`,
		t.Scope, t.Event, t.Sender, t.At.UnixMilli(), t.Conversation, t.Seq, t.Text, t.Integrity).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) { // it is known, and was taken back
		return nil
	}
	if err != nil {
		return err
	}
	return f.updateTurns(ctx, tx, n)
}

// updateTurns is update for messages, by their numbers.
func (f *FTS) updateTurns(ctx context.Context, tx *sql.Tx, n ...int64) error {
	docs := make([]int64, len(n))
	for i, x := range n {
		docs[i] = -x
	}
	all, err := sources(ctx, tx, turnSource+` AND n IN (SELECT value FROM json_each(?))`, inJSON(n))
	if err != nil {
		return fmt.Errorf("index messages: %w", err)
	}
	return f.index(ctx, tx, docs, all)
}

// turnColumnsOf are turnColumns of the table alias.
func turnColumnsOf(alias string) string {
	return alias + "." + strings.ReplaceAll(turnColumns, ", ", ", "+alias+".")
}

// besides is the number of the message next to t on one side, in its conversation.
func besides(compare, order string) string {
	return `iif(t.conversation = '', NULL, (SELECT o.n FROM memory_turn AS o WHERE o.scope = t.scope AND o.conversation = t.conversation
		AND o.text <> '' AND (o.seq, o.n) ` + compare + ` (t.seq, t.n) ORDER BY o.seq ` + order + `, o.n ` + order + ` LIMIT 1))`
}

var turnsQuery = `SELECT ` + turnColumnsOf("t") + `, t.n, ` + besides("<", "DESC") + `, ` + besides(">", "") + `
	FROM json_each(?) AS j CROSS JOIN memory_turn AS t ON t.n = j.value`

// heardTurn is a message, with the one before and the one after it.
type heardTurn struct {
	turn   Turn
	around []Turn
}

// turnsOf reads the messages among ranked, by their numbers.
func turnsOf(ctx context.Context, db *sql.DB, ranked []scored) (map[int64]heardTurn, error) {
	var numbers []int64
	for _, s := range ranked {
		if s.doc < 0 {
			numbers = append(numbers, -s.doc)
		}
	}
	turns, sides := map[int64]Turn{}, map[int64][2]sql.NullInt64{}
	read := func(numbers []int64) error {
		return store.Each(ctx, db, func(row store.Row) error {
			var n int64
			var side [2]sql.NullInt64
			t, err := scanTurn(withMore{row, []any{&n, &side[0], &side[1]}})
			turns[n], sides[n] = t, side
			return err
		}, turnsQuery, inJSON(numbers))
	}
	if err := read(numbers); err != nil {
		return nil, err
	}
	var others []int64
	for _, n := range numbers {
		for _, o := range sides[n] {
			if _, there := turns[o.Int64]; o.Valid && !there {
				others = append(others, o.Int64)
			}
		}
	}
	if err := read(others); err != nil {
		return nil, err
	}
	out := make(map[int64]heardTurn, len(numbers))
	for _, n := range numbers {
		t, there := turns[n]
		if !there {
			continue
		}
		h := heardTurn{turn: t}
		for _, o := range sides[n] {
			if other, there := turns[o.Int64]; o.Valid && there {
				h.around = append(h.around, other)
			}
		}
		out[n] = h
	}
	return out, nil
}

// withMore scans more columns than asked for.
type withMore struct {
	row  store.Row
	more []any
}

// Scan implements store.Row.
func (w withMore) Scan(into ...any) error { return w.row.Scan(append(into, w.more...)...) }
