package memory

import (
	"cmp"
	"context"
	"database/sql"
)

// prepared is a transaction that prepares each statement once: parsing SQL is
// most of the cost of a small one.
type prepared struct {
	tx    *sql.Tx
	stmts map[string]*sql.Stmt
}

func prepare(tx *sql.Tx) *prepared { return &prepared{tx: tx, stmts: map[string]*sql.Stmt{}} }

// ExecContext implements store.DBTX.
func (p *prepared) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	s, err := p.stmt(ctx, query)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, err
	}
	// Each is short, and one that can be interrupted costs a goroutine.
	return s.ExecContext(context.WithoutCancel(ctx), args...)
}

// QueryContext implements store.DBTX.
func (p *prepared) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	s, err := p.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.QueryContext(ctx, args...)
}

// QueryRowContext implements store.DBTX.
func (p *prepared) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	s, err := p.stmt(ctx, query)
	if err != nil {
		return p.tx.QueryRowContext(ctx, query, args...) // it fails with the same error
	}
	return s.QueryRowContext(ctx, args...)
}

func (p *prepared) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := p.stmts[query]; s != nil {
		return s, nil
	}
	s, err := p.tx.PrepareContext(ctx, query)
	if err == nil {
		p.stmts[query] = s
	}
	return s, err
}

func (p *prepared) close() {
	for _, s := range p.stmts {
		_ = s.Close() // the end of the transaction closes it anyway
	}
}
