package subsession

import (
	"context"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Node is a sub-session with its place among the others.
type Node struct {
	ID, Parent string // Parent started it; "" = the room did
	Room       string
	Talk       history.Timeline // holds its messages
	Readers    trust.Readers
	Objective  string
	Status     string
	Reason     i18n.Text // why it failed or was cancelled
	Rounds     int       // requests to the model
	Created    time.Time
	Ended      time.Time // not valid while it works
	Needs      []string  // ids of those that it waits for
}

// Nodes lists the newest n sub-sessions of all rooms, the oldest first. Callers show those whose Readers may read there.
func Nodes(ctx context.Context, db store.DBTX, n int) ([]Node, error) {
	jobs, err := queryJobs(ctx, db, `WHERE n.rowid IN (SELECT rowid FROM sub_session ORDER BY created DESC, rowid DESC LIMIT ?)
		ORDER BY created, rowid`, n)
	var all []Node
	for i := 0; i < len(jobs) && err == nil; i++ {
		j := &jobs[i]
		of := Node{ID: j.id, Parent: j.parent, Room: j.room, Talk: j.talk(), Readers: j.readers(), Objective: j.Objective, Status: j.status,
			Reason: j.reason, Rounds: j.rounds, Created: j.created, Ended: j.ended}
		of.Needs, err = store.Column[string](ctx, db, `SELECT needs FROM sub_session_need WHERE node = ? ORDER BY needs`, j.id)
		all = append(all, of)
	}
	return all, store.Wrap(err, "subsession: read sub-sessions")
}
