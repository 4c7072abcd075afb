package matrix

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Identity is what others compare to be sure that they talk to this bot.
type Identity struct {
	User        string    `json:"user"`
	Device      string    `json:"device"`
	Fingerprint string    `json:"fingerprint"`        // the device's key, in groups of four
	Master      string    `json:"identity,omitempty"` // the account's key, in groups of four; empty when it is not known here
	CrossSigned bool      `json:"cross_signed"`
	RecoveryKey bool      `json:"recovery_key"`     // its file is there
	Backup      string    `json:"backup,omitempty"` // version of the key backup in use; empty = none
	Waiting     int       `json:"backup_waiting"`   // message keys that are not in it yet
	Findings    []Finding `json:"findings"`         // what the homeserver says of both
}

// Identify reads the identity from the data folder and asks the homeserver how
// others see it. It changes nothing, and may run beside the bot.
func Identify(ctx context.Context, cfg Config) (Identity, error) {
	if err := cfg.check(); err != nil {
		return Identity{}, err
	}
	acc, err := loadAccount(cfg.dir("account.json"))
	if err != nil {
		return Identity{}, err
	}
	stored, err := storedDevice(ctx, cfg.DB)
	switch {
	case err != nil:
		return Identity{}, fmt.Errorf("matrix: look at the crypto store: %w", err)
	case acc == nil || stored == "":
		return Identity{}, errors.New("matrix: nobody has logged in with this data folder yet; start the bot once with `bot run`")
	case stored != acc.DeviceID.String():
		return Identity{}, fmt.Errorf("matrix: bot.db belongs to device %s, %s to device %s; `bot doctor` says what to do", stored, cfg.dir("account.json"), acc.DeviceID)
	}
	out := Identity{User: acc.UserID.String(), Device: acc.DeviceID.String(), CrossSigned: acc.CrossSigned}
	if out.Fingerprint, err = deviceKey(ctx, cfg); err != nil {
		return Identity{}, err
	}
	if _, err := os.Stat(cfg.dir("recovery.key")); err == nil {
		out.RecoveryKey = true
	}
	kept, err := loadSecrets(ctx, cfg)
	if err == nil && kept != nil && kept.CrossSigning != nil {
		if keys, err := kept.CrossSigning.Decode(); err == nil {
			out.Master = Fingerprint(keys.MasterKey.PublicKey().String())
		}
	}
	if err == nil && kept != nil && kept.Backup != nil {
		out.Backup = kept.Backup.Version.String()
	}
	if out.Waiting, err = keysOutside(ctx, cfg, out.Backup); err != nil {
		return Identity{}, err
	}
	cli, err := newMautrix(cfg)
	if err != nil {
		return Identity{}, err
	}
	cli.UserID, cli.DeviceID, cli.AccessToken = acc.UserID, acc.DeviceID, acc.AccessToken
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	out.Findings = []Finding{checkSigned(ctx, cli, acc), checkBackup(ctx, cfg, cli)}
	return out, nil
}

// deviceKey reads the device's own key out of the crypto store: the
// homeserver's word for it would be worth nothing.
func deviceKey(ctx context.Context, cfg Config) (string, error) {
	kept, err := secretStore(ctx, cfg)
	if err != nil {
		return "", err
	}
	own, err := kept.GetAccount(ctx)
	if err == nil && own == nil {
		err = errors.New("there is no account in it")
	}
	if err != nil {
		return "", fmt.Errorf("matrix: read the crypto store (does %s belong to it?): %w", cfg.dir("pickle.key"), err)
	}
	return Fingerprint(own.SigningKey().String()), nil
}
