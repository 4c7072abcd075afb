package e2ee

import (
	"context"
	"database/sql"
	"time"

	"go.mau.fi/util/dbutil"

	"reverie/internal/store"
)

// retryingDB repeats writes of mautrix that fail because of a full disk or locked database. mautrix
// only logs a failed write of a room key, and the Olm message that carried the key cannot be
// decrypted twice. So the write waits, and the sync with it, until it succeeds or the program ends.
type retryingDB struct {
	*sql.DB
	dbutil.DatabaseLogger
	s *Store
}

// ExecContext implements dbutil.UnderlyingExecable.
func (p retryingDB) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	for attempt := 0; ; attempt++ {
		res, err := p.DB.ExecContext(ctx, query, args...)
		if err == nil || !store.IsTransient(err) {
			if attempt > 0 {
				p.s.cfg.OnProblem("")
			}
			return res, err
		}
		p.s.cfg.OnProblem("the database cannot be written: " + err.Error())
		p.s.cfg.Log.Error("matrix: the database cannot be written; waiting until it can", "err", err)
		select {
		case <-time.After(min(p.s.cfg.RetryDelay<<min(attempt, 10), time.Minute)):
		case <-ctx.Done():
			return nil, err
		case <-p.s.cfg.Ending:
			if ctx.Value(failedKey{}) != nil {
				p.s.writeLost.Store(true)
			}
			return nil, err
		}
	}
}

// QueryTiming implements dbutil.DatabaseLogger. It gets the result of every statement. After a
// failed write the batch is processed again, with the same sync token.
func (p retryingDB) QueryTiming(ctx context.Context, _, _ string, _ []any, _ int, _ time.Duration, err error) {
	if failed, ok := ctx.Value(failedKey{}).(func(error)); ok && store.IsTransient(err) {
		failed(err)
	}
}

type failedKey struct{} // the func(error) of a context

// WithFailures returns a context for processing a sync. failed is called for each failed write,
// whether or not mautrix returns the error.
func WithFailures(ctx context.Context, failed func(error)) context.Context {
	return context.WithValue(ctx, failedKey{}, failed)
}

// Database wraps the database for mautrix.
func (s *Store) Database() (*dbutil.Database, error) {
	db, err := dbutil.NewWithDB(s.cfg.DB, "sqlite")
	if err != nil {
		return nil, err
	}
	p := retryingDB{DB: s.cfg.DB, DatabaseLogger: dbutil.NoopLogger, s: s}
	db.LoggingDB.UnderlyingExecable, db.Log = p, p
	return db, nil
}
