package matrix

import (
	"context"
	"log/slog"
	"testing"

	"go.mau.fi/util/dbutil"

	"reverie/internal/store"
)

// What mautrix could not store makes the whole batch fail, whether or not
// mautrix passes the error on: a statement of its own, or a transaction.
// Holds F44.
func TestBatchFailsWithItsWrites(t *testing.T) {
	q, ctx := newQueue(t), t.Context()
	c := &Client{cfg: Config{DB: q.db}, log: slog.New(slog.DiscardHandler), ending: make(chan struct{}), pace: normalPace}
	close(c.ending) // nothing is tried twice
	db, err := c.newStores()
	must(t, err)
	holder, err := q.db.Conn(ctx)
	must(t, err)
	defer holder.Close()
	hurried, err := q.db.Conn(ctx) // the one that the statements below get
	must(t, err)
	_, err = hurried.ExecContext(ctx, `PRAGMA busy_timeout = 1`)
	must(t, err)
	_, err = holder.ExecContext(ctx, `BEGIN IMMEDIATE`)
	must(t, err)
	must(t, hurried.Close())
	const write = `UPDATE matrix_room SET exposed = 0`
	for name, f := range map[string]func(context.Context) error{
		"statement": func(ctx context.Context) error { _, err := db.Exec(ctx, write); return err },
		"transaction": func(ctx context.Context) error {
			return db.DoTxn(ctx, &dbutil.TxnOptions{}, func(context.Context) error { return nil })
		},
	} {
		b := &batch{}
		if err := f(context.WithValue(ctx, batchKey{}, b)); !store.Passing(err) || !store.Passing(b.err) {
			t.Errorf("%s: error %v, of the batch %v", name, err, b.err)
		}
		if err := f(ctx); !store.Passing(err) { // outside of a sync
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = holder.ExecContext(ctx, `ROLLBACK`)
	must(t, err)
	b := &batch{}
	ctx = context.WithValue(ctx, batchKey{}, b)
	_, err = db.Exec(ctx, write)
	must(t, err)
	if _, err := db.Exec(ctx, `UPDATE no_table SET x = 0`); err == nil || store.Passing(err) || b.err != nil {
		t.Errorf("a fault that will not pass: %v, of the batch %v", err, b.err)
	}
}
