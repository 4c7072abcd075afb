package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/matrix/retry"

	"go.mau.fi/util/dbutil"
	"go.mau.fi/util/jsonbytes"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/ssss"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// secrets are the private keys behind the account's identity. The library does
// not keep them, and without them the bot could sign nobody and back up
// nothing once recovery.key was moved to a safe place. They are in the crypto
// store; if they are lost, recovery.key brings them back.
type secrets struct {
	CrossSigning *crypto.CrossSigningSeeds `json:"cross_signing,omitempty"`
	Backup       *backupSecret             `json:"backup,omitempty"`
}

// secretsName is the name of the secrets in the crypto store. It is no name that other
// devices of the account ask for.
const secretsName id.Secret = "reverie"

// backupSecret is the key backup in use.
type backupSecret struct {
	Version  id.KeyBackupVersion `json:"version"`
	Key      []byte              `json:"key"`
	Restored id.DeviceID         `json:"restored,omitempty"` // the device that has all the keys that were in it
}

// secretStore opens the crypto store in cfg.DB without a login; nil when there is none.
func secretStore(ctx context.Context, cfg Config) (*crypto.SQLCryptoStore, error) {
	device, err := storedDevice(ctx, cfg.DB)
	if err != nil {
		return nil, fmt.Errorf("matrix: look at the crypto store: %w", err)
	}
	if device == "" {
		return nil, nil
	}
	key, err := pickleKey(cfg.dir("pickle.key"), device)
	if err != nil {
		return nil, err
	}
	db, err := dbutil.NewWithDB(cfg.DB, "sqlite")
	if err != nil {
		return nil, fmt.Errorf("matrix: open crypto store: %w", err)
	}
	return crypto.NewSQLCryptoStore(db, dbutil.NoopLogger, "", id.DeviceID(device), key), nil
}

// loadSecrets reads the secrets in the crypto store; nil when there are none.
func loadSecrets(ctx context.Context, cfg Config) (*secrets, error) {
	kept, err := secretStore(ctx, cfg)
	if err != nil || kept == nil {
		return nil, err
	}
	data, err := kept.GetSecret(ctx, secretsName)
	if err != nil {
		return nil, fmt.Errorf("matrix: the keys of the identity in bot.db are damaged; recovery.key brings them back: %w", err)
	}
	if data == "" {
		return nil, nil
	}
	var s secrets
	if err := json.Unmarshal([]byte(data), &s); err != nil {
		return nil, errors.New("matrix: the keys of the identity are damaged; recovery.key brings them back")
	}
	return &s, nil
}

// keepSecrets changes the secrets, in the crypto store first.
func (c *Client) keepSecrets(ctx context.Context, change func(*secrets)) error {
	c.mu.Lock()
	next := c.secrets
	c.mu.Unlock()
	change(&next)
	data, err := json.Marshal(next)
	if err == nil {
		err = c.machine().CryptoStore.PutSecret(ctx, secretsName, string(data))
	}
	if err != nil {
		return fmt.Errorf("matrix: keep secrets: %w", err)
	}
	c.mu.Lock()
	c.secrets = next
	c.mu.Unlock()
	return nil
}

// openSecrets makes the private keys of the identity ready: those that were
// just made or opened, those in the crypto store, or those that recovery.key opens on
// the server. Called by Open, when nothing runs yet.
func (c *Client) openSecrets(ctx context.Context) {
	m := c.machine()
	kept, err := loadSecrets(ctx, c.cfg)
	if err != nil {
		c.log.Warn("matrix: the keys of the identity cannot be taken up as they are; what is missing is fetched anew", "err", err)
	}
	if kept != nil {
		c.secrets = *kept
	}
	if m.CrossSigningKeys == nil && c.secrets.CrossSigning != nil {
		if err := c.importSeeds(ctx, *c.secrets.CrossSigning); err != nil {
			c.log.Warn("matrix: the kept keys of the identity are not used", "err", err)
		}
	}
	if m.CrossSigningKeys == nil {
		ctx, cancel := context.WithTimeout(ctx, backupTimeout)
		defer cancel()
		if err := c.fetchSeeds(ctx); err != nil {
			c.log.Warn("matrix: the keys of the bot's identity are not here, so it can neither verify others nor back up message keys", "err", err)
			return
		}
	}
	seeds := m.ExportCrossSigningKeys()
	if reflect.DeepEqual(c.secrets.CrossSigning, &seeds) {
		return
	}
	if err := c.keepSecrets(ctx, func(s *secrets) {
		if s.CrossSigning != nil {
			s.Backup = nil // of another identity
		}
		s.CrossSigning = &seeds
	}); err != nil {
		c.log.Warn("matrix: the keys of the identity could not be kept; recovery.key is needed again at the next start", "err", err)
	}
}

// importSeeds takes up private keys, if they are those of the account.
func (c *Client) importSeeds(ctx context.Context, seeds crypto.CrossSigningSeeds) error {
	m := c.machine()
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

// fetchSeeds opens the account's secret storage for the keys.
func (c *Client) fetchSeeds(ctx context.Context) error {
	key, err := c.secretStorage(ctx)
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
		if *k.into, err = c.machine().SSSS.GetDecryptedAccountData(ctx, k.name, key); err != nil {
			return fmt.Errorf("open the account's secret storage: %w", err)
		}
	}
	return c.importSeeds(ctx, seeds)
}

// secretStorage opens the account's secret storage with recovery.key.
func (c *Client) secretStorage(ctx context.Context) (*ssss.Key, error) {
	path := c.cfg.dir("recovery.key")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; put it into %s and start again", errNoSecrets, path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the recovery key: %w", err)
	}
	keyID, meta, err := c.machine().SSSS.GetDefaultKeyData(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask for the account's secret storage: %w", err)
	}
	key, err := meta.VerifyRecoveryKey(keyID, strings.TrimSpace(string(text)))
	if err != nil && (key == nil || !errors.Is(err, ssss.ErrUnverifiableKey)) {
		return nil, retry.Refuse(i18n.Text(fmt.Sprintf("%s does not open the account's secret storage: %v", path, err)))
	}
	return key, nil
}
