package store

import (
	"errors"
	"slices"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// code is the primary code of a SQLite error: its low byte; 0 = the error is another one.
func sqliteCode(err error) int {
	var se *sqlite.Error
	if errors.As(err, &se) {
		return se.Code() & 0xff
	}
	return 0
}

// Passing tells whether a database error has a cause that may pass by itself
// or with somebody's help: a full disk, a disk that cannot be written, or
// another program that holds the database. The same statement may work later.
func IsTransient(err error) bool {
	return slices.Contains([]int{sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}, sqliteCode(err))
}

// Full tells whether an error is that a disk is full, or the share of it that may be used.
func IsDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || sqliteCode(err) == sqlite3.SQLITE_FULL
}
