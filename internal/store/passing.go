package store

import (
	"errors"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Passing tells whether a database error has a cause that may pass by itself
// or with somebody's help: a full disk, a disk that cannot be written, or
// another program that holds the database. The same statement may work later.
func Passing(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	switch se.Code() & 0xff { // the low byte is the primary code
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return true
	}
	return false
}

// Full tells whether an error is that a disk is full, or the share of it that may be used.
func Full(err error) bool {
	var se *sqlite.Error
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL
}
