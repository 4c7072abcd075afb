package main

import (
	"context"
	"fmt"
	"path/filepath"

	reverie "reverie"
	"reverie/internal/backup"
	"reverie/internal/matrix/account"
	"reverie/internal/store"
)

type restoreCommand struct {
	File       filePath `arg:"positional,required" help:"The backup."`
	Check      bool     `help:"Only try whether it can be restored; nothing is left of it."`
	Passphrase filePath `arg:"--passphrase-file" placeholder:"FILE" help:"The file with its passphrase; otherwise backup.passphrase."`
}

// Run restores a backup into the data folder of the configuration, which must be empty.
func (r restoreCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, _, err := loadConfig(path, c.err, false)
	if err != nil {
		return err
	}
	passphrase, err := passphraseOf(r.Passphrase, cfg)
	if err != nil {
		return err
	}
	t := backup.Target{Passphrase: passphrase, Migrations: reverie.Migrations, Progress: c.progress("unpacked")}
	defer t.Progress(-1)
	if r.Check {
		m, err := backup.Check(ctx, string(r.File), filepath.Dir(string(r.File)), t)
		if err != nil {
			return err
		}
		return c.print(m, "%s can be restored: %d files, %s, of %s\n", r.File, len(m.Files), megabytes(m.Bytes()), m.Created.In(cfg.Zone))
	}
	t.Prepare = func(ctx context.Context, db *store.DB) error { return account.ForgetDevice(ctx, db) }
	m, err := backup.Restore(ctx, string(r.File), cfg.Data, t)
	if err != nil {
		return err
	}
	if cfg.Matrix != nil && cfg.Matrix.Password == "" {
		fmt.Fprintln(c.err, "`bot run` logs in as a new device: it needs matrix.password, or a matrix.access_token of a new login.")
	}
	return c.print(m, "Restored into %s: %d files, %s, of %s. Start the bot with `bot run`; no other machine may run it any more.\n",
		cfg.Data, len(m.Files), megabytes(m.Bytes()), m.Created.In(cfg.Zone))
}
