// Package delivery stores incoming and outgoing messages: the inbox, the outbox and related tables.
// It owns every SQL statement on these tables. Each file has one table with a diagram of its
// states, and each method is a transition between them.
//
// A message takes two transactions. The events of a sync commit together with the sync token, so
// that none is lost or handled twice; see Inbox.Commit. An answer commits together with its outbox
// rows and with the messages that it answers; see Outbox.StoreFinal.
//
// Rooms, events and transaction ids are plain strings here. Only the transport knows their meaning.
package delivery

import (
	"time"

	"reverie/internal/store"
)

// New returns inbox and outbox in db. isRetry reports whether a text asks for another answer.
func New(db *store.DB, now func() time.Time, isRetry func(text string) bool) (*Inbox, *Outbox) {
	out := &Outbox{db: db, now: now}
	return &Inbox{db: db, now: now, out: out, group: groupContext{now: now}, isRetry: isRetry}, out
}
