package matrix

import (
	"context"
	"fmt"
	"os"
	"time"

	"reverie/internal/delivery"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/room"
	"reverie/internal/store"
)

// Status returns the state of the connection without asking the homeserver.
func (c *Client) Status(ctx context.Context) doctor.Status {
	problem, last := c.sync.problemAndLastSuccess()
	skew := int64(c.acc.HomeserverClockSkew().Seconds())
	login := c.acc.CurrentLogin()
	s := doctor.Status{
		Running: true, Homeserver: c.cfg.Homeserver, User: login.UserID.String(), Device: login.DeviceID.String(),
		CrossSigned: login.CrossSigned, Problem: problem, SyncFailures: int(c.sync.failures.Load()), ClockSkew: &skew,
	}
	s.Backup, s.BackupProblem = c.backup.Status()
	if !last.IsZero() {
		s.SetLastSync(last, c.cfg.now())
	}
	if err := fillRecoveryKeyAndCounts(ctx, c.cfg, c.cfg.now(), &s); err != nil && s.Problem == "" {
		s.Problem = err.Error()
	}
	return s
}

// doctorConfig returns the configuration of the doctor.
func (cfg Config) doctorConfig() doctor.Config {
	cfg = cfg.withDefaults()
	return doctor.Config{Account: cfg.accountConfig(), ReadStored: cfg.readStoredStatus}
}

// ExamineAccount checks the account and the delivery state stored in cfg.DB. The bot may run in another
// process. Examine changes nothing.
func ExamineAccount(ctx context.Context, cfg Config, p doctor.Process) (doctor.Status, []doctor.Finding) {
	return doctor.Examine(ctx, cfg.doctorConfig(), p)
}

// readStoredStatus fills in the state stored in bot.db.
func (cfg Config) readStoredStatus(ctx context.Context, s *doctor.Status, now time.Time) error {
	var at int64
	found, err := store.Found(cfg.DB.QueryRowContext(ctx, `SELECT at, failures, problem FROM matrix_sync
		WHERE user = ? AND device = ?`, s.User, s.Device).Scan(&at, &s.SyncFailures, &s.Problem))
	if err != nil {
		return fmt.Errorf("matrix: read when the last sync was: %w", err)
	}
	if found {
		s.SetLastSync(time.UnixMilli(at), now)
	}
	return fillRecoveryKeyAndCounts(ctx, cfg, now, s)
}

// fillRecoveryKeyAndCounts fills in the state of the data folder, the sizes of the queues, and the
// numbers of rooms and of keys to back up.
func fillRecoveryKeyAndCounts(ctx context.Context, cfg Config, now time.Time, s *doctor.Status) error {
	_, err := os.Stat(cfg.matrixPath("recovery.key"))
	s.RecoveryKey = err == nil
	if s.Queues, err = delivery.CountRows(ctx, cfg.DB, now.UnixMilli()); err != nil {
		return err
	}
	if s.Rooms, s.Encrypted, err = room.Count(ctx, cfg.DB); err != nil {
		return err
	}
	if device, err := e2ee.StoredDevice(ctx, cfg.DB); err != nil || device == "" {
		return err // there are no room keys yet
	}
	s.BackupWaiting, err = e2ee.CountNotBackedUp(ctx, cfg.DB, s.Backup)
	return err
}
