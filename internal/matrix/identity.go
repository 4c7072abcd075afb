package matrix

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/ssss"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/store"
)

// signTime is how long cross-signing is tried again while the homeserver is in trouble.
const signTime = 15 * time.Second

// ensureIdentity cross-signs the bot's device, once. Clients show messages of
// a device that its owner has not signed with a warning, and some refuse them.
// Failing is no reason not to start: the bot can talk without.
func (c *Client) ensureIdentity(ctx context.Context) {
	if c.acc.CrossSigned && !c.resign {
		return
	}
	trying, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	if err := c.persist(trying, "signing the bot's device", func() error { return c.crossSign(ctx) }); err != nil {
		c.log.Warn("matrix: the bot's device is not cross-signed, so other clients show a warning at its messages; this is tried again at the next start", "device", c.acc.DeviceID, "err", err)
		return
	}
	signed := *c.acc
	signed.CrossSigned = true
	c.use(&signed)
	c.resign = false
	if err := c.saveAccount(); err != nil {
		c.log.Warn("matrix: the device is cross-signed, but that could not be noted down", "err", err)
	}
}

func (c *Client) crossSign(ctx context.Context) error {
	m := c.machine()
	has, verified, err := m.GetOwnVerificationStatus(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("ask for the identity of this account: %w", err)
	case verified && !c.resign:
		return nil
	case !has:
		return c.newIdentity(ctx)
	}
	key, err := os.ReadFile(c.cfg.dir("recovery.key"))
	if err != nil {
		return fmt.Errorf("the account has an identity already, made by another client; put that client's recovery key into %s (a file with the one line), or verify this device there: %w", c.cfg.dir("recovery.key"), err)
	}
	if err := m.VerifyWithRecoveryKey(ctx, strings.TrimSpace(string(key))); err != nil {
		return fmt.Errorf("%s does not open the identity of this account; put the right recovery key there: %w", c.cfg.dir("recovery.key"), err)
	}
	c.log.Info("matrix: device verified with the recovery key", "device", c.acc.DeviceID)
	return nil
}

// newIdentity makes the account's cross-signing keys. The recovery key is on
// disk before anything depends on it, and the server is asked to publish the
// keys last: stopping anywhere in between leaves a state from which the next
// start can go on.
func (c *Client) newIdentity(ctx context.Context) error {
	m := c.machine()
	secret, err := c.secretKey(ctx)
	if err != nil {
		return err
	}
	keys, err := m.GenerateCrossSigningKeys()
	if err != nil {
		return fmt.Errorf("make cross-signing keys: %w", err)
	}
	for _, k := range []struct {
		name event.Type
		seed []byte
	}{
		{event.AccountDataCrossSigningMaster, keys.MasterKey.Seed()},
		{event.AccountDataCrossSigningSelf, keys.SelfSigningKey.Seed()},
		{event.AccountDataCrossSigningUser, keys.UserSigningKey.Seed()},
	} {
		if err := m.SSSS.SetEncryptedAccountData(ctx, k.name, k.seed, secret); err != nil {
			return fmt.Errorf("store cross-signing keys: %w", err)
		}
	}
	if err := m.SSSS.SetDefaultKeyID(ctx, secret.ID); err != nil {
		return fmt.Errorf("store the default key: %w", err)
	}
	if err := m.PublishCrossSigningKeys(ctx, keys, c.interactive()); err != nil {
		if c.cfg.Password == "" {
			return fmt.Errorf("the homeserver wants the account's password to publish an identity; configure matrix.password for one start: %w", err)
		}
		return fmt.Errorf("publish the identity (a homeserver with a separate account page wants this confirmed there): %w", err)
	}
	return c.signSelf(ctx, keys)
}

func (c *Client) signSelf(ctx context.Context, keys *crypto.CrossSigningKeysCache) error {
	m := c.machine()
	pub := keys.PublicKeys()
	for _, k := range []struct {
		usage id.CrossSigningUsage
		key   id.Ed25519
	}{{id.XSUsageMaster, pub.MasterKey}, {id.XSUsageSelfSigning, pub.SelfSigningKey}, {id.XSUsageUserSigning, pub.UserSigningKey}} {
		if err := m.CryptoStore.PutCrossSigningKey(ctx, c.acc.UserID, k.usage, k.key); err != nil {
			return fmt.Errorf("keep the public keys: %w", err)
		}
	}
	if err := m.SignOwnDevice(ctx, m.OwnIdentity()); err != nil {
		return fmt.Errorf("sign this device: %w", err)
	}
	if err := m.SignOwnMasterKey(ctx); err != nil {
		return fmt.Errorf("sign the identity: %w", err)
	}
	c.log.Info("matrix: new identity made and device signed; keep a copy of the recovery key", "device", c.acc.DeviceID, "file", c.cfg.dir("recovery.key"))
	return nil
}

// secretKey returns the key that the cross-signing keys are sealed with on the
// server: the one from an earlier attempt, or a new one that is on disk before
// it is used.
func (c *Client) secretKey(ctx context.Context) (*ssss.Key, error) {
	m, path := c.machine(), c.cfg.dir("recovery.key")
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
	if err := m.SSSS.SetKeyData(ctx, key.ID, key.Metadata); err != nil {
		return nil, fmt.Errorf("store the recovery key's description: %w", err)
	}
	return key, nil
}

// interactive answers the homeserver's question for the password; nil when we
// have none, and then some servers publish a first identity without asking.
func (c *Client) interactive() mautrix.UIACallback {
	if c.cfg.Password == "" {
		return nil
	}
	return func(ask *mautrix.RespUserInteractive) any {
		return &mautrix.ReqUIAuthLogin{
			BaseAuthData: mautrix.BaseAuthData{Type: mautrix.AuthTypePassword, Session: ask.Session},
			User:         c.acc.UserID.String(), Password: c.cfg.Password,
		}
	}
}
