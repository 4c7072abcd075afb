package matrix

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/session"
)

// Status is how the connection stands. In JSON times are RFC 3339, and what
// ends in _s is whole seconds.
type Status struct {
	Running         bool      `json:"running"`
	Homeserver      string    `json:"homeserver"`
	User            string    `json:"user"`
	Device          string    `json:"device"`
	CrossSigned     bool      `json:"cross_signed"`     // other clients see the device as the account's own
	IdentityTrusted bool      `json:"identity_trusted"` // the account's identity is the one whose keys are here; Examine only
	UnknownDevices  []Device  `json:"unknown_devices"`  // of the account, that its identity has not signed; Examine only
	RecoveryKey     bool      `json:"recovery_key"`     // its file is there
	Backup          string    `json:"backup,omitempty"` // version of the key backup in use; empty = none
	BackupWaiting   int       `json:"backup_waiting"`   // message keys that are not in it yet
	BackupProblem   string    `json:"backup_problem,omitempty"`
	LastSync        time.Time `json:"last_sync,omitzero"` // zero = none yet; of a running client: none since its start
	LastSyncAge     *int64    `json:"last_sync_age_s,omitempty"`
	SyncFailures    int       `json:"sync_failures"` // since the last sync
	Problem         string    `json:"problem,omitempty"`
	ClockSkew       *int64    `json:"clock_skew_s,omitempty"` // how far the homeserver's clock is ahead of ours; nil = not known
	Rooms           int       `json:"rooms"`
	Encrypted       int       `json:"encrypted_rooms"`
	Inbox           int       `json:"inbox"` // messages without an answer
	InboxOldest     int64     `json:"inbox_oldest_s"`
	Outbox          int       `json:"outbox"` // messages not sent yet
	OutboxOldest    int64     `json:"outbox_oldest_s"`
	OutboxProblem   string    `json:"outbox_problem,omitempty"` // why the oldest of them was not sent
	Dead            int       `json:"dead"`                     // messages given up
	DeadReason      string    `json:"dead_reason,omitempty"`    // why the newest of them was given up
	Undecryptable   int       `json:"undecryptable"`            // messages that wait to be read
	UnreadOldest    int64     `json:"undecryptable_oldest_s"`
	Lost            int       `json:"lost"`                  // messages that could not be read and were given up
	LostReason      string    `json:"lost_reason,omitempty"` // why the newest of them was given up
}

// Device is a device of the bot's account.
type Device struct {
	ID   string `json:"device"`
	Name string `json:"name,omitempty"`
}

const (
	staleSync  = 5 * time.Minute  // without a sync for so long something is wrong
	staleQueue = 10 * time.Minute // nothing should wait for so long
)

// Status looks at the connection without asking the homeserver.
func (c *Client) Status(ctx context.Context) Status {
	c.mu.Lock()
	acc, problem, noBackup, kept := c.acc, c.problem, c.noBackup, c.secrets
	c.mu.Unlock()
	skew := int64(time.Duration(c.skew.Load()).Seconds())
	s := Status{
		Running: true, Homeserver: c.cfg.Homeserver, User: acc.UserID.String(), Device: acc.DeviceID.String(),
		CrossSigned: acc.CrossSigned, Problem: problem, SyncFailures: int(c.failures.Load()), ClockSkew: &skew,
		BackupProblem: noBackup,
	}
	if kept.Backup != nil {
		s.Backup = kept.Backup.Version.String()
	}
	if at := c.lastSync.Load(); at > 0 {
		s.syncedAt(time.UnixMilli(at), c.now())
	}
	err := s.stored(ctx, c.cfg, c.q)
	if err == nil {
		s.BackupWaiting, err = keysOutside(ctx, c.cfg, s.Backup)
	}
	if err != nil && s.Problem == "" {
		s.Problem = err.Error()
	}
	return s
}

// syncedAt notes when the last sync was.
func (s *Status) syncedAt(at, now time.Time) {
	age := max(int64(now.Sub(at).Seconds()), 0)
	s.LastSync, s.LastSyncAge = at, &age
}

// stored fills in what the data folder tells.
func (s *Status) stored(ctx context.Context, cfg Config, q *queue) error {
	if _, err := os.Stat(cfg.dir("recovery.key")); err == nil {
		s.RecoveryKey = true
	}
	age := func(column, of string) string { // in seconds of the oldest; 0 when there is none
		return `(SELECT coalesce(max(0, (?1 - min(` + column + `)) / 1000), 0) FROM ` + of + `)`
	}
	err := q.db.QueryRowContext(ctx, `SELECT
		(SELECT count(*) FROM inbox WHERE state = 'new'), `+age(`received_at`, `inbox WHERE state = 'new'`)+`,
		(SELECT count(*) FROM inbox WHERE state IN ('utd', 'failed')), `+age(`received_at`, `inbox WHERE state IN ('utd', 'failed')`)+`,
		(SELECT count(*) FROM inbox WHERE state = 'dead'),
		coalesce((SELECT error FROM inbox WHERE state = 'dead' ORDER BY received_at DESC LIMIT 1), ''),
		(SELECT count(*) FROM outbox WHERE state = 'pending'), `+age(`created_at`, `outbox WHERE state = 'pending'`)+`,
		coalesce((SELECT error FROM outbox WHERE state = 'pending' ORDER BY created_at, seq LIMIT 1), ''),
		(SELECT count(*) FROM outbox WHERE state = 'dead' AND error <> 'taken back'),
		coalesce((SELECT error FROM outbox WHERE state = 'dead' AND error <> 'taken back' ORDER BY created_at DESC LIMIT 1), ''),
		(SELECT count(*) FROM matrix_room WHERE membership = 'joined'),
		(SELECT coalesce(sum(encrypted), 0) FROM matrix_room WHERE membership = 'joined')`, q.now().UnixMilli()).
		Scan(&s.Inbox, &s.InboxOldest, &s.Undecryptable, &s.UnreadOldest, &s.Lost, &s.LostReason, &s.Outbox, &s.OutboxOldest, &s.OutboxProblem, &s.Dead, &s.DeadReason,
			&s.Rooms, &s.Encrypted)
	return doing("matrix: count what is in the queues and the rooms", err)
}

// Lines says it in words, for people in a chat in the language of say: at most five
// lines, and never what a server answered.
func (s Status) Lines(now time.Time, say i18n.Say) []string {
	sync := s.syncWords(say, now)
	if s.SyncFailures > 0 {
		sync += say("connection.trying")
	} else if s.Problem != "" {
		sync += say("connection.problem")
	}
	lines := []string{
		say("connection.line", "user", s.User, "server", s.Homeserver, "sync", sync),
		say("connection.device", "device", s.Device, "trust", s.trustWords(say), "rooms", say("connection.rooms", "count", fmt.Sprint(s.Rooms)),
			"encrypted", fmt.Sprint(s.Encrypted), "backup", s.backupWords(say)),
	}
	look := s.SyncFailures > 0 || s.Problem != "" || !s.LastSync.IsZero() && now.Sub(s.LastSync) > staleSync ||
		!s.CrossSigned || s.BackupProblem != ""
	var queues []string
	for _, f := range s.queues(say, now) {
		queues = append(queues, f.What)
		look = look || !f.OK
	}
	if len(queues) > 1 || len(queues) == 1 && s.Inbox != 1 { // one message to answer is the one that asks for this
		lines = append(lines, strings.Join(queues, "; "))
	}
	if s.ClockSkew != nil && skewed(*s.ClockSkew) {
		lines, look = append(lines, skewWords(say, *s.ClockSkew)), true
	}
	if look {
		lines = append(lines, say("connection.doctor"))
	}
	return lines
}

// syncWords says when the last sync was, and how many failed since.
func (s Status) syncWords(say i18n.Say, now time.Time) string {
	words := say("connection.never")
	if !s.LastSync.IsZero() {
		words = say("connection.synced", "time", spanIn(say, max(now.Sub(s.LastSync), 0)))
	}
	if s.SyncFailures > 0 {
		words += say("connection.failed", "count", fmt.Sprint(s.SyncFailures))
	}
	return words
}

// queues lists what waits and what was given up, for !status and bot doctor. The reason of
// a finding and its remedy are for the operator.
func (s Status) queues(say i18n.Say, now time.Time) (out []Finding) {
	add := func(key string, n int, oldest int64, f Finding) {
		if n > 0 {
			f.What = say("connection."+key, "count", fmt.Sprint(n)) + sinceIn(say, oldest)
			out = append(out, f)
		}
	}
	waits := func(oldest int64, reason, remedy string) Finding {
		switch {
		case time.Duration(oldest)*time.Second <= staleQueue:
			return Finding{OK: true, reason: reason}
		case !s.Running:
			return Finding{OK: true, Note: true, reason: reason, Remedy: "start the bot: it takes up what waits"}
		}
		return Finding{reason: reason, Remedy: remedy}
	}
	add("messages", s.Inbox, s.InboxOldest, waits(s.InboxOldest, "",
		"see above whether the model answers; the bot's log says what it is doing, and a restart loses nothing"))
	add("outbox", s.Outbox, s.OutboxOldest, waits(s.OutboxOldest, s.OutboxProblem,
		"see above whether the homeserver answers; what waits is sent by itself when it does"))
	add("unread", s.Undecryptable, s.UnreadOldest, Finding{OK: true, Note: true,
		Remedy: "nothing is lost: they are read when their keys come, and the senders were told. If it goes on, ask them to write in a new room"})
	add("lost", s.Lost, 0, Finding{OK: true, Note: true, reason: s.LostReason,
		Remedy: "the senders were told to write again; the log of that time says more"})
	add("dead", s.Dead, 0, Finding{OK: true, Note: true, reason: s.DeadReason,
		Remedy: "see that the bot may write in those rooms (the log of that time names them); who still wants an answer says !retry there"})
	return out
}

func (s Status) trustWords(say i18n.Say) string {
	if s.CrossSigned {
		return say("connection.trusted")
	}
	return say("connection.untrusted")
}

func (s Status) backupWords(say i18n.Say) string {
	switch {
	case s.BackupProblem != "" || s.Backup == "":
		return say("connection.backup_none")
	case s.BackupWaiting > 0:
		return say("connection.backup_waiting", "count", fmt.Sprint(s.BackupWaiting))
	}
	return say("connection.backup")
}

func skewed(seconds int64) bool { return (time.Duration(seconds) * time.Second).Abs() > maxSkew }

func skewWords(say i18n.Say, seconds int64) string {
	if seconds < 0 {
		return say("connection.behind", "time", spanIn(say, time.Duration(-seconds)*time.Second))
	}
	return say("connection.ahead", "time", spanIn(say, time.Duration(seconds)*time.Second))
}

// sinceIn is the age of a queue's oldest message, when it is worth a word.
func sinceIn(say i18n.Say, seconds int64) string {
	if d := time.Duration(seconds) * time.Second; d > time.Minute {
		return " " + say("connection.oldest", "time", spanIn(say, d))
	}
	return ""
}

// toOperator says what people read in rooms, and the operator elsewhere, in English.
func toOperator(key string, fill ...string) string {
	return (*session.Messages)(nil).In("en", key, fill...)
}

func span(d time.Duration) string { return spanIn(toOperator, d) }

// spanIn says how old something is: in whole seconds below a minute, then without them.
func spanIn(say i18n.Say, d time.Duration) string {
	if d < time.Minute {
		return i18n.Span(d.Truncate(time.Second)).In(say)
	}
	return i18n.Span(d.Truncate(time.Minute)).In(say)
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
