// Package delivery holds the messages on their way in and out: the inbox, the outbox and what
// belongs to them. It owns every SQL statement on their tables. Each file has one table, with its
// states on top, and each method is a transition between these states.
//
// Two transactions carry a message through. What a sync brought commits together with the sync
// token, so that no message is lost or taken twice; see Inbox.Commit. An answer commits together
// with its rows in the outbox and with the messages that it answers; see Outbox.Say.
//
// Rooms, events and transaction ids are strings here: what they mean on the wire, the transport knows.
package delivery

import (
	"database/sql"
	"time"
)

// New returns both directions of the messages in db. retries tells whether a text asks for an
// answer once more.
func New(db *sql.DB, now func() time.Time, retries func(text string) bool) (*Inbox, *Outbox) {
	out := &Outbox{db: db, now: now}
	return &Inbox{db: db, now: now, out: out, group: groupContext{now: now}, isRetry: retries}, out
}
