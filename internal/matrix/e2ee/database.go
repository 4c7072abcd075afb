package e2ee

import (
	"context"
	"database/sql"
	"time"

	"go.mau.fi/util/dbutil"

	"reverie/internal/store"
)

// patient stands between mautrix and the database. A key that mautrix cannot
// store is lost: it logs the error and goes on, and the Olm message that carried
// the key cannot be decrypted a second time. So a write that fails because the
// disk is full or another program holds the database waits, and with it the
// sync, until it succeeds or the program ends.
type patient struct {
	*sql.DB
	dbutil.DatabaseLogger
	s *Store
}

// ExecContext implements dbutil.UnderlyingExecable.
func (p patient) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	for attempt := 0; ; attempt++ {
		res, err := p.DB.ExecContext(ctx, query, args...)
		if err == nil || !store.IsTransient(err) {
			if attempt > 0 {
				p.s.cfg.Problem("")
			}
			return res, err
		}
		p.s.cfg.Problem("the database cannot be written: " + err.Error())
		p.s.cfg.Log.Error("matrix: the database cannot be written; waiting until it can", "err", err)
		timer := time.NewTimer(min(p.s.cfg.Again<<min(attempt, 10), time.Minute))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-p.s.cfg.Ending:
			timer.Stop()
			if ctx.Value(failedKey{}) != nil {
				p.s.behind.Store(true)
			}
			return nil, err
		}
	}
}

// QueryTiming implements dbutil.DatabaseLogger: it hears of every statement. A
// batch of which something could not be stored is worked on again, with the
// same token.
func (p patient) QueryTiming(ctx context.Context, _, _ string, _ []any, _ int, _ time.Duration, err error) {
	if failed, ok := ctx.Value(failedKey{}).(func(error)); ok && store.IsTransient(err) {
		failed(err)
	}
}

type failedKey struct{} // the func(error) of a context

// WithFailures returns a context for the work on a sync: failed hears of what could not be
// stored, whether or not mautrix passes the error on.
func WithFailures(ctx context.Context, failed func(error)) context.Context {
	return context.WithValue(ctx, failedKey{}, failed)
}

// Database wraps the database for mautrix.
func (s *Store) Database() (*dbutil.Database, error) {
	db, err := dbutil.NewWithDB(s.cfg.DB, "sqlite")
	if err != nil {
		return nil, err
	}
	p := patient{DB: s.cfg.DB, DatabaseLogger: dbutil.NoopLogger, s: s}
	db.LoggingDB.UnderlyingExecable, db.Log = p, p
	return db, nil
}
