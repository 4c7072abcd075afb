package matrix

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Process is the program that holds the data folder; its zero value is none.
type Process struct {
	ID    int       // 0 = not known
	Since time.Time // when it took the folder; zero = nobody holds it
}

// Examine is check together with what the bot, which may be another process,
// has noted about its delivery in cfg.DB. It changes nothing. The homeserver is
// asked for everything that it knows better; while it does not answer, that
// part of the status is as it was last known, or empty.
func Examine(ctx context.Context, cfg Config, p Process) (Status, []Finding) {
	s := Status{Running: !p.Since.IsZero(), Homeserver: cfg.Homeserver, User: cfg.User, UnknownDevices: []Device{}}
	now := time.Now()
	if acc, err := loadAccount(cfg.dir("account.json")); err == nil && acc != nil {
		s.User, s.Device, s.CrossSigned = acc.UserID.String(), acc.DeviceID.String(), acc.CrossSigned
	}
	if kept, err := loadSecrets(ctx, cfg); err == nil && kept != nil {
		s.IdentityTrusted = kept.CrossSigning != nil
		if kept.Backup != nil {
			s.Backup = kept.Backup.Version.String()
		}
	}
	err := s.noted(ctx, cfg, now)
	found := check(ctx, cfg, &s)
	if err != nil {
		return s, append(found, Finding{What: "bot.db cannot be read: " + err.Error(), Remedy: "see whether bot.db is a good database and its disk has space"})
	}
	found = append([]Finding{s.syncFinding(p, now)}, found...)
	queues := findings(s.queues())
	if len(queues) == 0 {
		queues.good("nothing waits to be answered, sent or read")
	}
	return s, append(found, queues...)
}

// noted fills in what bot.db tells.
func (s *Status) noted(ctx context.Context, cfg Config, now time.Time) error {
	var at int64
	err := cfg.DB.QueryRowContext(ctx, `SELECT at, failures, problem FROM matrix_sync WHERE user = ? AND device = ?`, s.User, s.Device).Scan(&at, &s.SyncFailures, &s.Problem)
	switch {
	case err == nil:
		s.syncedAt(time.UnixMilli(at), now)
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("matrix: read when the last sync was: %w", err)
	}
	if err := s.stored(ctx, cfg, &queue{db: cfg.DB, now: func() time.Time { return now }}); err != nil {
		return err
	}
	if device, err := storedDevice(ctx, cfg.DB); err != nil || device == "" {
		return err // there are no message keys yet
	}
	s.BackupWaiting, err = keysOutside(ctx, cfg, s.Backup)
	return err
}

// syncFinding says whether the bot keeps up with its homeserver.
func (s Status) syncFinding(p Process, now time.Time) Finding {
	last := s.syncWords(toOperator, now)
	if s.SyncFailures > 0 {
		last += ", the last one with: " + s.Problem
	}
	if !s.Running {
		return Finding{OK: true, Note: true, What: "the bot is not running; " + last, Remedy: "start it with `bot run`"}
	}
	who := "the bot is running"
	if p.ID != 0 {
		who += fmt.Sprintf(" (process %d)", p.ID)
	}
	awake := max(now.Sub(p.Since), 0)
	synced := s.LastSync.After(p.Since) || p.Since.After(now) // the clock was set back
	switch {
	case synced && now.Sub(s.LastSync) <= staleSync && s.SyncFailures == 0:
		return Finding{OK: true, What: who + "; " + last}
	case synced && now.Sub(s.LastSync) <= staleSync:
		return Finding{OK: true, Note: true, What: who + "; " + last, Remedy: "it keeps trying; see below whether the homeserver answers"}
	case !synced && awake <= staleSync:
		return Finding{OK: true, Note: true, What: who + " since " + span(awake) + ", not in contact with the homeserver yet; " + last, Remedy: "look again in a minute"}
	}
	return Finding{
		What:   who + ", but it is out of contact with the homeserver; " + last,
		Remedy: "see below whether the homeserver answers; if it does, the bot's log says why, and a restart loses nothing. If that process is `bot chat`, end it and start `bot run`",
	}
}
