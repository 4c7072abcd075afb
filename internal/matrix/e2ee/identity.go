package e2ee

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/ssss"

	"reverie/internal/store"
)

// Config configures an Identity and a Backup.
type Config struct {
	Client   *mautrix.Client
	Machine  *crypto.OlmMachine
	DB       *sql.DB
	Dir      string // folder of recovery.key
	Password string // of the account; empty = not known
	Log      *slog.Logger
}

func (cfg Config) recoveryKey() string { return filepath.Join(cfg.Dir, "recovery.key") }

// Identity is the account's cross-signing identity and its private keys.
type Identity struct {
	cfg Config

	mu      sync.Mutex
	secrets Secrets
}

// NewIdentity returns an Identity without keys; see Sign and Open.
func NewIdentity(cfg Config) *Identity { return &Identity{cfg: cfg} }

// Sign cross-signs this device. It creates the identity if the account has none. With force it
// signs even if the device seems to be signed.
func (i *Identity) Sign(ctx context.Context, force bool) error {
	m := i.cfg.Machine
	has, verified, err := m.GetOwnVerificationStatus(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("ask for the identity of this account: %w", err)
	case verified && !force:
		return nil
	case !has:
		return i.newIdentity(ctx)
	}
	key, err := os.ReadFile(i.cfg.recoveryKey())
	if err != nil {
		return fmt.Errorf("the account has an identity already, made by another client; "+
			"put that client's recovery key into %s (a file with the one line), or verify this device there: %w", i.cfg.recoveryKey(), err)
	}
	if err := m.VerifyWithRecoveryKey(ctx, strings.TrimSpace(string(key))); err != nil {
		return fmt.Errorf("%s does not open the identity of this account; put the right recovery key there: %w", i.cfg.recoveryKey(), err)
	}
	i.cfg.Log.Info("matrix: device verified with the recovery key", "device", i.cfg.Client.DeviceID)
	return nil
}

// newIdentity creates the account's cross-signing keys. It writes the recovery key to disk first
// and publishes the keys last, so the next start can continue after a crash at any step.
func (i *Identity) newIdentity(ctx context.Context) error {
	m := i.cfg.Machine
	secret, err := i.secretKey(ctx)
	if err != nil {
		return err
	}
	keys, err := m.GenerateCrossSigningKeys()
	if err != nil {
		return fmt.Errorf("make cross-signing keys: %w", err)
	}
	if err := m.UploadCrossSigningKeysToSSSS(ctx, secret, keys); err != nil {
		return fmt.Errorf("store cross-signing keys: %w", err)
	}
	if err := m.SSSS.SetDefaultKeyID(ctx, secret.ID); err != nil {
		return fmt.Errorf("store the default key: %w", err)
	}
	if err := m.PublishCrossSigningKeys(ctx, keys, i.passwordAuth()); err != nil {
		if i.cfg.Password == "" {
			return fmt.Errorf("the homeserver wants the account's password to publish an identity; "+
				"configure matrix.password for one start: %w", err)
		}
		return fmt.Errorf("publish the identity (a homeserver with a separate account page wants this confirmed there): %w", err)
	}
	if err := errors.Join(m.SignOwnDevice(ctx, m.OwnIdentity()), m.SignOwnMasterKey(ctx)); err != nil {
		return fmt.Errorf("sign this device and the identity: %w", err)
	}
	i.cfg.Log.Info("matrix: new identity made and device signed; keep a copy of the recovery key", "device", i.cfg.Client.DeviceID,
		"file", i.cfg.recoveryKey())
	return nil
}

// secretKey returns the SSSS key that encrypts the cross-signing keys on the server. It is the one
// from an earlier attempt, or a new one that is written to disk before its use.
func (i *Identity) secretKey(ctx context.Context) (*ssss.Key, error) {
	m, path := i.cfg.Machine, i.cfg.recoveryKey()
	if old, err := os.ReadFile(path); err == nil {
		if keyID, meta, err := m.SSSS.GetDefaultKeyData(ctx); err == nil {
			if key, err := meta.VerifyRecoveryKey(keyID, strings.TrimSpace(string(old))); err == nil {
				return key, nil
			}
		}
		if err := os.Rename(path, fmt.Sprintf("%s.%d", path, time.Now().Unix())); err != nil {
			return nil, fmt.Errorf("move the old recovery key aside: %w", err)
		}
	}
	key, err := ssss.NewKey("")
	if err != nil {
		return nil, fmt.Errorf("make a recovery key: %w", err)
	}
	if err := store.WriteFile(path, []byte(key.RecoveryKey()+"\n")); err != nil {
		return nil, fmt.Errorf("write the recovery key: %w", err)
	}
	return key, store.Wrap(m.SSSS.SetKeyData(ctx, key.ID, key.Metadata), "store the recovery key's description")
}

// passwordAuth answers the homeserver's user-interactive authentication with the password. It is
// nil without a password; some servers publish a first identity without asking.
func (i *Identity) passwordAuth() mautrix.UIACallback {
	if i.cfg.Password == "" {
		return nil
	}
	return func(ask *mautrix.RespUserInteractive) any {
		return &mautrix.ReqUIAuthLogin{
			BaseAuthData: mautrix.BaseAuthData{Type: mautrix.AuthTypePassword, Session: ask.Session},
			User:         i.cfg.Client.UserID.String(), Password: i.cfg.Password,
		}
	}
}
