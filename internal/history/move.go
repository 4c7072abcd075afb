package history

import (
	"context"
	"database/sql"

	"reverie/internal/store"
	"reverie/internal/trust"
)

// Move puts all conversations of the room from in front of those of the room
// to; the current one of from goes on there as the beginning of its first. What
// is said in from afterwards begins a new conversation. It can be repeated.
func (s *Store) Move(ctx context.Context, from, to Talk) error {
	if from == to {
		return nil
	}
	return wrap(store.InTx(ctx, s.db, func(tx *sql.Tx) error { return move(ctx, tx, from, to) }), "move conversations")
}

func move(ctx context.Context, tx *sql.Tx, from, to Talk) error {
	var before, said int64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(conversation), 1) - 1, (SELECT count(*) FROM message WHERE room = ?1) FROM room WHERE id = ?1`, from).Scan(&before, &said)
	if err != nil || said == 0 {
		return err
	}
	return run(ctx, tx,
		statement{`INSERT INTO room (id, branch_of) VALUES (?, ?) ON CONFLICT DO NOTHING`, []any{to, to.parent()}},
		statement{`UPDATE message SET conversation = conversation + ? WHERE room = ?`, []any{before, to}},
		statement{`UPDATE compaction SET conversation = conversation + ? WHERE room = ?`, []any{before, to}},
		statement{`UPDATE room SET conversation = conversation + ? WHERE id = ?`, []any{before, to}},
		statement{`UPDATE message SET room = ? WHERE room = ?`, []any{to, from}},
		statement{`UPDATE compaction SET room = ? WHERE room = ?`, []any{to, from}},
		statement{`UPDATE message SET readers = ? WHERE room = ? AND readers = ?`, []any{trust.Room(to.Room()), to, trust.Room(from.Room())}},
		statement{`UPDATE room SET readers = (SELECT replace(o.readers, ?, ?) FROM room AS o WHERE o.id = ?) WHERE id = ?`,
			[]any{trust.Room(from.Room()), trust.Room(to.Room()), from, to}},
		statement{`UPDATE room SET conversation = conversation + 1, readers = '' WHERE id = ?`, []any{from}})
}
