package store

import (
	"errors"
	"slices"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// sqliteCode returns the primary code of a SQLite error, its low byte; 0 = another kind of error.
func sqliteCode(err error) int {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Code() & 0xff
	}
	return 0
}

// IsTransient reports whether a database error may disappear by itself or with help: a full or
// unwritable disk, or another program that locks the database. The same statement may work later.
func IsTransient(err error) bool {
	return slices.Contains([]int{sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}, sqliteCode(err))
}

// IsDiskFull reports whether err means a full disk or an exhausted quota.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || sqliteCode(err) == sqlite3.SQLITE_FULL
}
