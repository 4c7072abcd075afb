package matrix

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
	c *Client
}

// ExecContext implements dbutil.UnderlyingExecable.
func (p patient) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	for attempt := 0; ; attempt++ {
		res, err := p.DB.ExecContext(ctx, query, args...)
		if err == nil || !store.Passing(err) {
			if attempt > 0 {
				p.c.setProblem("")
			}
			return res, err
		}
		p.c.setProblem("the database cannot be written: " + err.Error())
		p.c.log.Error("matrix: the database cannot be written; waiting until it can", "err", err)
		timer := time.NewTimer(min(p.c.pace.again<<min(attempt, 10), time.Minute))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-p.c.ending:
			timer.Stop()
			if batchOf(ctx) != nil {
				p.c.behind.Store(true)
			}
			return nil, err
		}
	}
}

// QueryTiming implements dbutil.DatabaseLogger: it hears of every statement. A
// batch of which something could not be stored is worked on again, with the
// same token.
func (p patient) QueryTiming(ctx context.Context, _, _ string, _ []any, _ int, _ time.Duration, err error) {
	if store.Passing(err) {
		fail(ctx, err)
	}
}

// newStores wraps the database for mautrix.
func (c *Client) newStores() (*dbutil.Database, error) {
	db, err := dbutil.NewWithDB(c.cfg.DB, "sqlite")
	if err != nil {
		return nil, err
	}
	p := patient{DB: c.cfg.DB, DatabaseLogger: dbutil.NoopLogger, c: c}
	db.LoggingDB.UnderlyingExecable, db.Log = p, p
	return db, nil
}
