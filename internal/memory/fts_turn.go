package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const turnColumns = `scope, event, sender, at, conversation, seq, text`

func scanTurn(row interface{ Scan(...any) error }) (Turn, error) {
	var t Turn
	var at int64
	if err := row.Scan(&t.Scope, &t.Event, &t.Sender, &at, &t.Conversation, &t.Seq, &t.Text); err != nil {
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
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("hear: %w", err)
	}
	defer tx.Rollback()
	if err := f.hear(ctx, tx, t); err != nil {
		return fmt.Errorf("hear: %w", err)
	}
	if err := f.commit(tx); err != nil {
		return fmt.Errorf("hear: %w", err)
	}
	return nil
}

func (f *FTS) hear(ctx context.Context, tx *sql.Tx, t Turn) error {
	var n int64
	err := tx.QueryRowContext(ctx, `INSERT INTO memory_turn (`+turnColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (scope, event) WHERE event <> '' DO UPDATE SET text = excluded.text WHERE text <> '' RETURNING n`,
		t.Scope, t.Event, t.Sender, t.At.UnixMilli(), t.Conversation, t.Seq, t.Text).Scan(&n)
	if heardAlready(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.updateTurns(ctx, tx, n)
}

// Unhear takes a message back: it was redacted, or is to be forgotten. One that
// is not there is no error.
func (f *FTS) Unhear(ctx context.Context, scope Scope, event string) error {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("take a message back: %w", err)
	}
	defer tx.Rollback()
	var n int64
	switch err := tx.QueryRowContext(ctx, `DELETE FROM memory_turn WHERE scope = ? AND event = ? AND event <> '' RETURNING n`, scope, event).Scan(&n); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("take a message back: %w", err)
	}
	if err := f.updateTurns(ctx, tx, n); err != nil {
		return err
	}
	if err := f.commit(tx); err != nil {
		return fmt.Errorf("take a message back: %w", err)
	}
	return nil
}

// updateTurns is update for messages, by their numbers.
func (f *FTS) updateTurns(ctx context.Context, tx *sql.Tx, n ...int64) error {
	var all []source
	docs := make([]int64, len(n))
	for i, x := range n {
		docs[i] = -x
		some, err := sources(ctx, tx, turnSource+` AND n = ?`, x)
		if err != nil {
			return fmt.Errorf("index messages: %w", err)
		}
		all = append(all, some...)
	}
	if err := f.begins(ctx, tx); err != nil {
		return fmt.Errorf("index messages: %w", err)
	}
	return f.index(ctx, tx, docs, all)
}

// turnOf is the message n, with the one before and the one after it.
func turnOf(ctx context.Context, db *sql.DB, n int64) (*Turn, []Turn, error) {
	t, err := scanTurn(db.QueryRowContext(ctx, `SELECT `+turnColumns+` FROM memory_turn WHERE n = ?`, n))
	if err != nil {
		return nil, nil, err
	}
	var around []Turn
	if t.Conversation == "" {
		return &t, nil, nil
	}
	for _, side := range []string{`(seq, n) < (?, ?) ORDER BY seq DESC, n DESC`, `(seq, n) > (?, ?) ORDER BY seq, n`} {
		other, err := scanTurn(db.QueryRowContext(ctx, `SELECT `+turnColumns+` FROM memory_turn
			WHERE scope = ? AND conversation = ? AND text <> '' AND `+side+` LIMIT 1`, t.Scope, t.Conversation, t.Seq, n))
		if errors.Is(err, sql.ErrNoRows) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		around = append(around, other)
	}
	return &t, around, nil
}
