package task

import (
	"context"
	"database/sql"
	"time"

	"reverie/internal/store"
)

// seen is a Version, and what the database's log was just before it was read:
// as long as that is the same, nobody has written anything.
type seen struct {
	path    string // of the log; "" = not known yet
	log     store.Stamp
	settled bool // log alone tells whether version holds
	version int64
}

// next is s as it is now.
func (s seen) next(ctx context.Context, db *sql.DB) (seen, error) {
	if s.path == "" {
		if err := db.QueryRowContext(ctx, `SELECT file || '-wal' FROM pragma_database_list WHERE name = 'main'`).Scan(&s.path); err != nil {
			return s, err
		}
	}
	log, err := store.Stat(s.path)
	if err != nil {
		return s, err
	}
	if s.settled && log == s.log {
		return s, nil
	}
	// The times of files are the system's, whatever the clock of the tasks says.
	s.log, s.settled = log, log.Exists() && log.Settled(time.Now())
	return s, db.QueryRowContext(ctx, `SELECT n FROM task_change`).Scan(&s.version)
}
