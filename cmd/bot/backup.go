package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	reverie "reverie"
	"reverie/cmd/bot/config"
	"reverie/internal/backup"
	"reverie/internal/doctor"
	"reverie/internal/i18n"
	"reverie/internal/tty"
)

type backupCommand struct {
	File       filePath `arg:"positional,required" help:"The file to write; outside the data folder, best on another disk."`
	Passphrase filePath `arg:"--passphrase-file" placeholder:"FILE" help:"Encrypt with the passphrase in it; otherwise backup.passphrase."`
}

// Run backs up the data folder. The bot may run at the same time.
func (k backupCommand) Run(ctx context.Context, c console, b *bot) error {
	passphrase, err := passphraseOf(k.Passphrase, b.cfg)
	if err != nil {
		return err
	}
	source := backupSource(b, passphrase)
	source.Progress = c.progress("read")
	w, err := backup.Write(ctx, string(k.File), source)
	source.Progress(-1)
	if err != nil {
		return err
	}
	for _, name := range w.LeftOut {
		fmt.Fprintf(c.err, "left out, because it is a link or no ordinary file: %s\n", name)
	}
	if passphrase == "" {
		fmt.Fprintln(c.err, "This backup is not encrypted, and it holds the keys of the bot's account: keep it like a password.")
	}
	return c.print(w, "%s: %d files, %s\n", k.File, len(w.Files), megabytes(w.Bytes()))
}

func backupSource(b *bot, passphrase string) backup.Source {
	return backup.Source{Dir: b.cfg.Data, DB: b.db, Version: version, Passphrase: passphrase}
}

// passphraseOf reads the passphrase in a file. Without one it is that of the configuration, which may be empty.
func passphraseOf(file filePath, cfg *config.Config) (string, error) {
	if file == "" {
		return string(cfg.Backup.Passphrase), nil
	}
	text, err := os.ReadFile(string(file))
	passphrase := strings.TrimRight(string(text), "\r\n")
	if err == nil && passphrase == "" {
		err = usageError{fmt.Errorf("%s is empty; write the passphrase into it, on one line", file)}
	}
	return passphrase, err
}

// progress returns a function that shows on a terminal how many bytes were handled; a negative number clears it.
func (c console) progress(done string) func(bytes int64) {
	if c.json || !tty.IsTerminal(c.err) {
		return func(int64) {}
	}
	var shown time.Time
	return func(bytes int64) {
		switch {
		case bytes < 0 && !shown.IsZero():
			fmt.Fprintf(c.err, "\r%40s\r", "")
		case bytes >= 0 && time.Since(shown) > 200*time.Millisecond:
			shown = time.Now()
			fmt.Fprintf(c.err, "\r%s: %-30s", done, megabytes(bytes))
		}
	}
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// openKeeper returns the scheduled backups, or nil if they are off.
func openKeeper(b *bot) *backup.Keeper {
	k := b.cfg.Backup
	if k.Dir == "" {
		return nil
	}
	return &backup.Keeper{
		Source: backupSource(b, string(k.Passphrase)),
		Target: backup.Target{Passphrase: string(k.Passphrase), Migrations: reverie.Migrations},
		Folder: k.Dir, Keep: k.Keep, Schedule: k.When, Location: b.cfg.Zone, Now: time.Now, Log: b.log,
	}
}

// backupLines returns a line for !status if scheduled backups fail.
func backupLines(ctx context.Context, b *bot, say i18n.Say) []string {
	if b.cfg.Backup.Dir == "" {
		return nil
	}
	s, err := backup.ReadState(ctx, b.db)
	if err == nil && s.Problem() == "" {
		return nil
	}
	return []string{say("status.backup_failed", "last", minuteOf(b, s.Backup.GoodAt))}
}

// minuteOf formats a time; the zero time is a dash.
func minuteOf(b *bot, t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.In(b.cfg.Zone).Format("2006-01-02 15:04")
}

// examineBackups reports how the scheduled backups went.
func examineBackups(ctx context.Context, b *bot, f *doctor.Findings) {
	if b.cfg.Backup.Dir == "" {
		f.Add("backup", doctor.Note, "no backups are made", "set backup.dir in the configuration, best to a folder on another disk")
		return
	}
	s, err := backup.ReadState(ctx, b.db)
	problem := s.Problem()
	if err != nil {
		problem = err.Error()
	}
	switch {
	case problem != "":
		f.Add("backup", doctor.Broken, problem, "see to the folder "+b.cfg.Backup.Dir+"; it is tried again every hour while the bot runs")
	case s.Backup.At.IsZero():
		f.Add("backup", doctor.Note, "no backup has been made yet; the first one is made when the bot runs")
	default:
		f.Add("backup", doctor.OK, fmt.Sprintf("the last backup was made: %s; one was last restored on trial: %s",
			minuteOf(b, s.Backup.GoodAt), minuteOf(b, s.Check.GoodAt)))
	}
}
