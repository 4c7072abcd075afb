package doctor

import (
	"fmt"
	"slices"
	"time"

	"reverie/internal/delivery"
	"reverie/internal/i18n"
)

// Status is the state of the connection. In JSON, times are RFC 3339, and fields that end in _s are
// whole seconds.
type Status struct {
	Running         bool      `json:"running"`
	Homeserver      string    `json:"homeserver"`
	User            string    `json:"user"`
	Device          string    `json:"device"`
	CrossSigned     bool      `json:"cross_signed"`     // others see the device as cross-signed
	IdentityTrusted bool      `json:"identity_trusted"` // the account's identity is the bot's own; Examine only
	UnknownDevices  []Device  `json:"unknown_devices"`  // devices that the identity has not signed; Examine only
	RecoveryKey     bool      `json:"recovery_key"`     // recovery.key exists
	Backup          string    `json:"backup,omitempty"` // version of the key backup in use; empty = none
	BackupWaiting   int       `json:"backup_waiting"`   // room keys that are not backed up yet
	BackupProblem   string    `json:"backup_problem,omitempty"`
	LastSync        time.Time `json:"last_sync,omitzero"` // zero = never; of a running client: not since its start
	LastSyncAge     *int64    `json:"last_sync_age_s,omitempty"`
	SyncFailures    int       `json:"sync_failures"` // since the last sync
	Problem         string    `json:"problem,omitempty"`
	ClockSkew       *int64    `json:"clock_skew_s,omitempty"` // how far the homeserver's clock is ahead of ours; nil = unknown
	Rooms           int       `json:"rooms"`
	Encrypted       int       `json:"encrypted_rooms"`
	delivery.Queues
}

// Device is a device of the bot's account.
type Device struct {
	ID   string `json:"device"`
	Name string `json:"name,omitempty"`
}

const (
	staleSync  = 5 * time.Minute  // age of the last sync from which on it is a problem
	staleQueue = 10 * time.Minute // waiting time from which on it is a problem
)

// SetLastSync sets the time of the last sync.
func (s *Status) SetLastSync(at, now time.Time) {
	age := max(int64(now.Sub(at).Seconds()), 0)
	s.LastSync, s.LastSyncAge = at, &age
}

// Lines returns the status as text for people in a chat. It uses the language of say. Server errors
// are left out: they are for the operator.
func (s Status) Lines(now time.Time, say i18n.Say) []string {
	lines := []string{say("connection.line", "user", s.User, "server", s.Homeserver, "sync",
		s.syncText(say, now)) + "; " + say("connection.rooms", "count", fmt.Sprint(s.Rooms))}
	if s.Inbox > 1 { // one is the message that asks for the status
		lines = append(lines, say("connection.messages", "count", fmt.Sprint(s.Inbox)))
	}
	ill := s.SyncFailures > 0 || s.Problem != "" || !s.LastSync.IsZero() && now.Sub(s.LastSync) > staleSync ||
		!s.CrossSigned || s.BackupProblem != "" || s.skewed()
	if ill || slices.ContainsFunc(s.queues(), func(f Finding) bool { return !f.OK }) {
		lines = append(lines, say("connection.doctor"))
	}
	return lines
}

// syncText says when the last sync was, and how many failed since.
func (s Status) syncText(say i18n.Say, now time.Time) string {
	words := say("connection.never")
	if !s.LastSync.IsZero() {
		words = say("connection.synced", "time", spanIn(say, max(now.Sub(s.LastSync), 0)))
	}
	if s.SyncFailures > 0 {
		words += say("connection.failed", "count", fmt.Sprint(s.SyncFailures))
	}
	return words
}

// queues reports what waits and what was given up, and why.
func (s Status) queues() (out []Finding) {
	add := func(f Finding, n int, one, more string, oldest int64, reason string) {
		if n == 0 {
			return
		}
		f.What = plural(n, one, more)
		if d := time.Duration(oldest) * time.Second; d > time.Minute {
			f.What += " (the oldest for " + span(d) + ")"
		}
		if reason != "" {
			f.What += ": " + reason
		}
		out = append(out, f)
	}
	waits := func(oldest int64, remedy string) Finding {
		switch {
		case time.Duration(oldest)*time.Second <= staleQueue:
			return Finding{OK: true}
		case !s.Running:
			return Finding{OK: true, Note: true, Remedy: "start the bot: it processes what is waiting"}
		}
		return Finding{Remedy: remedy}
	}
	note := func(remedy string) Finding { return Finding{OK: true, Note: true, Remedy: remedy} }
	add(waits(s.InboxOldest, "see above whether the model answers; the bot's log says what it is doing, and a restart loses nothing"),
		s.Inbox, "message to answer", "messages to answer", s.InboxOldest, "")
	add(waits(s.OutboxOldest, "see above whether the homeserver answers; what waits is sent by itself when it does"),
		s.Outbox, "message to send", "messages to send", s.OutboxOldest, s.OutboxProblem)
	add(note("nothing is lost: they are read when their keys come, and the senders were told. If it goes on, "+
		"ask them to write in a new room"),
		s.Undecryptable, "message cannot be read yet", "messages cannot be read yet", s.UnreadOldest, "")
	add(note("the senders were told to write again; the log of that time says more"),
		s.Lost, "message could not be read and was given up", "messages could not be read and were given up", 0, s.LostReason)
	add(note("check that the bot may write in those rooms (the log of that time names them); !retry there answers after all"),
		s.Dead, "message could not be sent and was given up", "messages could not be sent and were given up", 0, s.DeadReason)
	return out
}

// skewed reports whether the homeserver's clock and ours differ by more than maxSkew.
func (s Status) skewed() bool {
	return s.ClockSkew != nil && (time.Duration(*s.ClockSkew)*time.Second).Abs() > maxSkew
}

func span(d time.Duration) string { return spanIn(i18n.English, d) }

// spanIn formats an age: in seconds below a minute, then in minutes.
func spanIn(say i18n.Say, d time.Duration) string {
	unit := time.Minute
	if d < unit {
		unit = time.Second
	}
	return i18n.Span(d.Truncate(unit)).In(say)
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
