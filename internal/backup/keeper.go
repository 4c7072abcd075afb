package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"reverie/internal/lazyregexp"
	"reverie/internal/pace"
	"reverie/internal/store"
	"reverie/internal/task"
)

// Keeper makes backups on a schedule, keeps the newest, and tries once a week whether the newest can be
// restored.
type Keeper struct {
	Source   Source
	Target   Target        // for the weekly check
	Folder   string        // of the backups
	Keep     int           // how many
	Schedule task.Schedule // normalised
	Location *time.Location
	Now      func() time.Time
	Log      *slog.Logger
}

const (
	checkEvery = 7 * 24 * time.Hour
	retryAfter = time.Hour         // after a failure
	shortWait  = time.Minute       // the machine may sleep, or its clock may change
	leftAfter  = 24 * time.Hour    // age of what a killed process has left behind
	nameLayout = "20060102-150405" // of the time in a file's name, in UTC
)

var (
	ownName = lazyregexp.New(`^reverie-\d{8}-\d{6}\.tar\.gz(\.age)?$`)
	partial = lazyregexp.New(`^\.reverie-\d{8}-\d{6}\.tar\.gz`)
)

// Run makes backups until ctx ends. The first one is made at once. A failed one is tried again after an hour.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		if err := k.runDue(ctx); err != nil && ctx.Err() == nil {
			k.Log.Error("backup: its state cannot be stored", "err", err)
		}
		if err := pace.Pause(ctx, nil, shortWait); err != nil {
			return nil //nolint:nilerr // the program ends
		}
	}
}

// runDue makes a backup and a check if they are due. Its error says that the outcome could not be stored.
func (k *Keeper) runDue(ctx context.Context) error {
	done, err := ReadState(ctx, k.Source.DB)
	if err != nil {
		return err
	}
	now := k.Now()
	if last := done.Backup; k.isDue(last, now) {
		made, err := k.backUp(ctx, now)
		if ctx.Err() != nil {
			return nil
		}
		if err = k.record(ctx, "backup", made, now, last.GoodAt, err); err != nil {
			return err
		}
		return k.runDue(ctx)
	}
	last := done.Check
	if done.Backup.Problem != "" || done.Backup.At.IsZero() || now.Before(last.GoodAt.Add(checkEvery)) ||
		last.Problem != "" && now.Before(last.At.Add(retryAfter)) && last.File == done.Backup.File {
		return nil
	}
	m, err := Check(ctx, done.Backup.File, k.Folder, k.Target)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		k.Log.Info("backup: the newest one can be restored", "file", done.Backup.File, "files", len(m.Files))
	}
	return k.record(ctx, "check", done.Backup.File, now, last.GoodAt, err)
}

func (k *Keeper) isDue(last Outcome, now time.Time) bool {
	if last.At.IsZero() || last.At.After(now) { // the clock was wrong then, or is now
		return true
	}
	due, ok := k.Schedule.Next(last.At, last.At, k.Location)
	return ok && !due.After(now) || last.Problem != "" && !last.At.Add(retryAfter).After(now)
}

// backUp makes a backup and deletes old ones.
func (k *Keeper) backUp(ctx context.Context, now time.Time) (path string, err error) {
	name := "reverie-" + now.UTC().Format(nameLayout) + ".tar.gz"
	if k.Source.Passphrase != "" {
		name += ".age"
	}
	path = filepath.Join(k.Folder, name)
	if err := os.MkdirAll(k.Folder, 0o700); err != nil {
		return path, err
	}
	if err := k.deleteLeft(now); err != nil { // first: a full disk may be the reason that they are there
		return path, err
	}
	w, err := Write(ctx, path, k.Source)
	if err != nil {
		return path, err
	}
	k.Log.Info("backup made", "file", path, "files", len(w.Files), "left out", len(w.LeftOut))
	entries, err := os.ReadDir(k.Folder)
	old := slices.DeleteFunc(entries, func(e os.DirEntry) bool { return !ownName().MatchString(e.Name()) })
	for _, e := range old[:max(len(old)-k.Keep, 0)] { // sorted by name, so by time
		err = errors.Join(err, os.Remove(filepath.Join(k.Folder, e.Name())))
	}
	return path, store.Wrap(err, "delete old backups")
}

// deleteLeft deletes what killed processes have left behind.
func (k *Keeper) deleteLeft(now time.Time) error {
	entries, err := os.ReadDir(k.Folder)
	for _, e := range entries {
		info, gone := e.Info()
		left := partial().MatchString(e.Name()) || strings.HasPrefix(e.Name(), tempPrefix)
		if left && gone == nil && now.Sub(info.ModTime()) > leftAfter {
			err = errors.Join(err, os.RemoveAll(filepath.Join(k.Folder, e.Name())))
		}
	}
	return err
}

// Outcome is how a backup or a check went.
type Outcome struct {
	File    string
	At      time.Time // zero = never
	GoodAt  time.Time // the last success; zero = never
	Problem string    // empty = it succeeded
}

// State is how the last backup and the last check went.
type State struct{ Backup, Check Outcome }

// ReadState reads how the scheduled backups went.
func ReadState(ctx context.Context, db *store.DB) (s State, err error) {
	err = store.Each(ctx, db, func(row store.Row) error {
		var what string
		var o Outcome
		var at, good int64
		if err := row.Scan(&what, &o.File, &at, &good, &o.Problem); err != nil {
			return err
		}
		if o.At = time.UnixMilli(at); good > 0 {
			o.GoodAt = time.UnixMilli(good)
		}
		if what == "check" {
			s.Check = o
		} else {
			s.Backup = o
		}
		return nil
	}, `SELECT what, file, at, good_at, problem FROM backup_run`)
	return s, store.Wrap(err, "backup: read its state")
}

// Problem returns what is wrong with the scheduled backups, or "".
func (s State) Problem() string {
	switch {
	case s.Backup.Problem != "":
		return s.Backup.Problem
	case s.Check.Problem != "":
		return fmt.Sprintf("the newest backup cannot be restored: %s", s.Check.Problem)
	}
	return ""
}

func (k *Keeper) record(ctx context.Context, what, file string, at, good time.Time, failed error) error {
	problem := ""
	if failed != nil {
		k.Log.Error(what+" failed; it is tried again in an hour", "file", file, "err", failed)
		problem = strings.TrimSpace(failed.Error())
	} else {
		good = at
	}
	return store.Exec(ctx, k.Source.DB, `INSERT INTO backup_run (what, file, at, good_at, problem) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (what) DO UPDATE SET file = excluded.file, at = excluded.at, good_at = excluded.good_at, problem = excluded.problem`,
		what, file, at.UnixMilli(), max(good.UnixMilli(), 0), problem)
}
