package matrix

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Status is how the connection stands.
type Status struct {
	Homeserver    string    `json:"homeserver"`
	User          string    `json:"user"`
	Device        string    `json:"device"`
	CrossSigned   bool      `json:"cross_signed"`
	RecoveryKey   bool      `json:"recovery_key"`     // its file is there
	Backup        string    `json:"backup,omitempty"` // version of the key backup in use; empty = none
	BackupWaiting int       `json:"backup_waiting"`   // message keys that are not in it yet
	BackupProblem string    `json:"backup_problem,omitempty"`
	LastSync      time.Time `json:"last_sync"` // zero = none yet since the start
	Problem       string    `json:"problem,omitempty"`
	Rooms         int       `json:"rooms"`
	Encrypted     int       `json:"encrypted_rooms"`
	Inbox         int       `json:"inbox"`         // messages without an answer
	Outbox        int       `json:"outbox"`        // messages not sent yet
	Dead          int       `json:"dead"`          // messages given up
	Undecryptable int       `json:"undecryptable"` // messages that wait to be read
	Lost          int       `json:"lost"`          // messages that could not be read and were given up
	Retries       int       `json:"retries"`       // failed tries of what still waits, syncs included
}

// Status looks at the connection without asking the homeserver.
func (c *Client) Status(ctx context.Context) Status {
	c.mu.Lock()
	acc, problem := c.acc, c.problem
	c.mu.Unlock()
	s := Status{
		Homeserver: c.cfg.Homeserver, User: acc.UserID.String(), Device: acc.DeviceID.String(),
		CrossSigned: acc.CrossSigned, Problem: problem,
	}
	if _, err := os.Stat(c.cfg.dir("recovery.key")); err == nil {
		s.RecoveryKey = true
	}
	if at := c.lastSync.Load(); at > 0 {
		s.LastSync = time.UnixMilli(at)
	}
	n, err := c.q.counts(ctx)
	if err == nil {
		s.Inbox, s.Outbox, s.Dead = n.inbox, n.outbox, n.dead
		s.Undecryptable, s.Lost, s.Retries = n.unread, n.lost, n.retries+int(c.failures.Load())
		err = c.q.db.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(encrypted), 0) FROM matrix_room WHERE membership = 'joined'`).Scan(&s.Rooms, &s.Encrypted)
	}
	if err == nil {
		s.Backup, s.BackupWaiting, s.BackupProblem, err = c.backupStatus(ctx)
	}
	if err != nil && s.Problem == "" {
		s.Problem = err.Error()
	}
	return s
}

// Lines says it in words, for people.
func (s Status) Lines(now time.Time) []string {
	last := "no sync yet"
	if !s.LastSync.IsZero() {
		last = "last sync " + now.Sub(s.LastSync).Round(time.Second).String() + " ago"
	}
	signed := "cross-signed"
	if !s.CrossSigned {
		signed = "not cross-signed"
	}
	lines := []string{
		fmt.Sprintf("%s on %s, %s", s.User, s.Homeserver, last),
		fmt.Sprintf("device %s (%s), %d rooms, %d of them encrypted", s.Device, signed, s.Rooms, s.Encrypted),
	}
	switch {
	case s.BackupProblem != "":
		lines = append(lines, "message keys are not backed up; `bot doctor` says why")
	case s.BackupWaiting > 0:
		lines = append(lines, fmt.Sprintf("message keys are backed up, %d are on their way", s.BackupWaiting))
	case s.Backup != "":
		lines = append(lines, "message keys are backed up")
	}
	if s.Inbox+s.Outbox+s.Dead+s.Undecryptable+s.Lost+s.Retries > 0 {
		lines = append(lines, fmt.Sprintf("%d messages to answer, %d to send, %d cannot be read yet, %d given up, %d retries", s.Inbox, s.Outbox, s.Undecryptable, s.Dead+s.Lost, s.Retries))
	}
	if s.Problem != "" {
		lines = append(lines, "the last sync failed; the log says why")
	}
	return lines
}
