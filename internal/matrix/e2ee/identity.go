package e2ee

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"time"

	"go.mau.fi/util/dbutil"
	"go.mau.fi/util/jsonbytes"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/ssss"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/i18n"
	"reverie/internal/matrix/retry"
	"reverie/internal/store"
)

// Config configures an Identity and a Backup.
type Config struct {
	Client   *mautrix.Client
	Machine  *crypto.OlmMachine
	DB       *store.DB
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

// Secrets are the private keys of the account's identity. mautrix does not store them, and without
// them the bot could neither verify people nor back up keys once recovery.key was moved to a safe
// place. They are in the crypto store; if they are lost, recovery.key restores them.
type Secrets struct {
	CrossSigning *crypto.CrossSigningSeeds `json:"cross_signing,omitempty"`
	Backup       *BackupSecret             `json:"backup,omitempty"`
}

// secretsName is the name of Secrets in the crypto store. Other devices of the account never
// request it.
const secretsName id.Secret = "reverie"

// BackupSecret describes the key backup in use.
type BackupSecret struct {
	Version  id.KeyBackupVersion `json:"version"`
	Key      []byte              `json:"key"`
	Restored id.DeviceID         `json:"restored,omitempty"` // the device that has restored all of its keys
}

// OpenStore opens the crypto store in db without a login. It returns nil without a crypto store.
func OpenStore(ctx context.Context, db *store.DB, dir string) (*crypto.SQLCryptoStore, error) {
	device, err := StoredDevice(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("matrix: look at the crypto store: %w", err)
	}
	if device == "" {
		return nil, nil
	}
	key, err := PickleKey(dir, device)
	if err != nil {
		return nil, err
	}
	wrapped, err := dbutil.NewWithDB(db.DB, "sqlite")
	if err != nil {
		return nil, fmt.Errorf("matrix: open crypto store: %w", err)
	}
	return crypto.NewSQLCryptoStore(wrapped, dbutil.NoopLogger, "", id.DeviceID(device), key), nil
}

// LoadSecrets reads the secrets from the crypto store in db. It returns nil if there are no secrets.
func LoadSecrets(ctx context.Context, db *store.DB, dir string) (*Secrets, error) {
	stored, err := OpenStore(ctx, db, dir)
	if err != nil || stored == nil {
		return nil, err
	}
	data, err := stored.GetSecret(ctx, secretsName)
	if err != nil {
		return nil, fmt.Errorf("matrix: the keys of the identity in bot.db are damaged; recovery.key restores them: %w", err)
	}
	if data == "" {
		return nil, nil
	}
	var s Secrets
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		return nil, errors.New("matrix: the keys of the identity are damaged; recovery.key restores them")
	}
	return &s, nil
}

// changeStoredSecrets changes the secrets, in the crypto store first.
func (i *Identity) changeStoredSecrets(ctx context.Context, change func(*Secrets)) error {
	i.mu.Lock()
	next := i.secrets
	i.mu.Unlock()
	change(&next)
	data, err := json.Marshal(next)
	if err == nil {
		err = i.cfg.Machine.CryptoStore.PutSecret(ctx, secretsName, string(data))
	}
	if err != nil {
		return fmt.Errorf("matrix: keep secrets: %w", err)
	}
	i.mu.Lock()
	i.secrets = next
	i.mu.Unlock()
	return nil
}

// backup returns the key backup in use, or nil.
func (i *Identity) backup() *BackupSecret {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.secrets.Backup
}

// Open loads the private keys of the identity: those that Sign just made, those in the crypto
// store, or those in the secret storage that recovery.key opens. It must be called before others
// use the identity.
func (i *Identity) Open(ctx context.Context) {
	m := i.cfg.Machine
	stored, err := LoadSecrets(ctx, i.cfg.DB, i.cfg.Dir)
	if err != nil {
		i.cfg.Log.Warn("matrix: the stored keys of the identity cannot be used; missing ones are fetched again", "err", err)
	}
	if stored != nil {
		i.secrets = *stored
	}
	if m.CrossSigningKeys == nil && i.secrets.CrossSigning != nil {
		if err := i.importSeeds(ctx, *i.secrets.CrossSigning); err != nil {
			i.cfg.Log.Warn("matrix: the stored keys of the identity are not used", "err", err)
		}
	}
	if m.CrossSigningKeys == nil {
		ctx, cancel := context.WithTimeout(ctx, backupTimeout)
		defer cancel()
		if err := i.fetchSeeds(ctx); err != nil {
			i.cfg.Log.Warn("matrix: the keys of the bot's identity are missing, so it can neither verify others nor back up room keys",
				"err", err)
			return
		}
	}
	seeds := m.ExportCrossSigningKeys()
	if reflect.DeepEqual(i.secrets.CrossSigning, &seeds) {
		return
	}
	if err := i.changeStoredSecrets(ctx, func(s *Secrets) {
		if s.CrossSigning != nil {
			s.Backup = nil // it belongs to another identity
		}
		s.CrossSigning = &seeds
	}); err != nil {
		i.cfg.Log.Warn("matrix: the keys of the identity could not be stored; recovery.key is needed again at the next start", "err", err)
	}
}

// importSeeds imports private keys if they are those of the account's identity.
func (i *Identity) importSeeds(ctx context.Context, seeds crypto.CrossSigningSeeds) error {
	m := i.cfg.Machine
	public, err := m.GetOwnCrossSigningPublicKeys(ctx)
	if err != nil {
		return fmt.Errorf("ask for the account's identity: %w", err)
	}
	if public == nil {
		return errors.New("the account has no identity")
	}
	keys, err := seeds.Decode()
	if err != nil {
		return fmt.Errorf("keys of the identity: %w", err)
	}
	if *keys.PublicKeys() != *public {
		return errors.New("the account has another identity now, and these keys are not its own")
	}
	return m.ImportCrossSigningKeys(seeds)
}

// fetchSeeds reads the private keys from the account's secret storage.
func (i *Identity) fetchSeeds(ctx context.Context) error {
	key, err := i.openStorage(ctx)
	if err != nil {
		return err
	}
	var seeds crypto.CrossSigningSeeds
	for _, k := range []struct {
		name event.Type
		into *jsonbytes.UnpaddedURLBytes
	}{
		{event.AccountDataCrossSigningMaster, &seeds.MasterKey},
		{event.AccountDataCrossSigningSelf, &seeds.SelfSigningKey},
		{event.AccountDataCrossSigningUser, &seeds.UserSigningKey},
	} {
		if *k.into, err = i.cfg.Machine.SSSS.GetDecryptedAccountData(ctx, k.name, key); err != nil {
			return fmt.Errorf("open the account's secret storage: %w", err)
		}
	}
	return i.importSeeds(ctx, seeds)
}

// openStorage opens the account's secret storage with recovery.key.
func (i *Identity) openStorage(ctx context.Context) (*ssss.Key, error) {
	path := i.cfg.recoveryKey()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; put it into %s and start again", errNoSecrets, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the recovery key: %w", err)
	}
	keyID, meta, err := i.cfg.Machine.SSSS.GetDefaultKeyData(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the account's secret storage: %w", err)
	}
	key, err := meta.VerifyRecoveryKey(keyID, strings.TrimSpace(string(text)))
	if err != nil && (key == nil || !errors.Is(err, ssss.ErrUnverifiableKey)) {
		return nil, retry.Refuse(i18n.Text(fmt.Sprintf("%s does not open the account's secret storage: %v", path, err)))
	}
	return key, nil
}

// StoredDevice returns the device of the crypto store in db. Without a crypto store it returns "".
func StoredDevice(ctx context.Context, db *store.DB) (string, error) {
	n, err := store.Value[int](ctx, db, `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'crypto_account'`)
	if err != nil || n == 0 {
		return "", err
	}
	return store.Value[string](ctx, db, `SELECT device_id FROM crypto_account WHERE account_id = ''`)
}

// PickleKey returns the key in dir that encrypts the crypto store of device. It creates a key only
// if there is no crypto store yet.
func PickleKey(dir, device string) ([]byte, error) {
	path := filepath.Join(dir, "pickle.key")
	key, err := os.ReadFile(path)
	switch {
	case err == nil && len(key) == 32:
		return key, nil
	case err == nil:
		return nil, fmt.Errorf("matrix: %s is damaged (%d bytes, must be 32); restore it from a backup", path, len(key))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("matrix: read pickle key: %w", err)
	case device != "":
		return nil, fmt.Errorf("matrix: %s is missing, but the encryption keys of device %s in bot.db are sealed with it; "+
			"restore it from a backup", path, device)
	}
	key = make([]byte, 32)
	rand.Read(key)
	return key, store.Wrap(store.WriteFile(path, key), "matrix: write pickle key")
}
