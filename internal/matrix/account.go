package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/cryptohelper"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/retry"
	"reverie/internal/store"
)

// account is what a login gave us. It is kept, because a new login would be a
// new access token, and the server recognises a repeated transaction only
// within one.
type account struct {
	UserID      id.UserID   `json:"user_id"`
	DeviceID    id.DeviceID `json:"device_id"`
	AccessToken string      `json:"access_token"`
	CrossSigned bool        `json:"cross_signed"` // this device was signed; not checked again
}

func loadAccount(path string) (*account, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("matrix: read account: %w", err)
	}
	var a account
	if err := json.Unmarshal(data, &a); err != nil || a.UserID == "" || a.DeviceID == "" || a.AccessToken == "" {
		return nil, fmt.Errorf("matrix: %s is damaged; move it away, and with a password in the configuration the same device logs in again", path)
	}
	return &a, nil
}

func (c *Client) saveAccount() error {
	data, err := json.MarshalIndent(c.acc, "", "  ")
	if err != nil {
		return fmt.Errorf("matrix: save account: %w", err)
	}
	err = store.WriteFile(c.cfg.dir("account.json"), append(data, '\n'))
	return doing("matrix: save account", err)
}

// openAccount brings up c.cli and c.crypto, logging in when it must.
func (c *Client) openAccount(ctx context.Context) (err error) {
	if c.acc, err = loadAccount(c.cfg.dir("account.json")); err != nil {
		return err
	}
	device, err := e2ee.StoredDevice(ctx, c.cfg.DB)
	if err != nil {
		return fmt.Errorf("matrix: look at the crypto store: %w", err)
	}
	returning := c.acc == nil && device != ""
	key, err := e2ee.PickleKey(c.cfg.dir(""), device)
	if err != nil {
		return err
	}
	if c.cli, err = newMautrix(c.cfg); err != nil {
		return err
	}
	c.cli.Client.Transport = transport{c, c.store.Transport(c.cfg.HTTP)}
	c.cli.Syncer = &syncer{DefaultSyncer: mautrix.NewDefaultSyncer(), c: c}
	if err := c.credentials(ctx, id.DeviceID(device)); err != nil {
		return err
	}
	db, err := c.store.Database()
	if err != nil {
		return fmt.Errorf("matrix: open crypto store: %w", err)
	}
	if c.crypto, err = cryptohelper.NewCryptoHelper(c.cli, key, db); err != nil {
		return fmt.Errorf("matrix: open crypto store: %w", err)
	}
	if err := c.openCrypto(ctx); err != nil {
		if !returning || !foreignKeys(err) || !c.mayLogInAnew() {
			return c.explainInit(err)
		}
		// Somebody took account.json away, as the explanation advises.
		c.log.Warn("matrix: the keys in bot.db are not those of their device; they are set aside, and a new device is made", "device", c.acc.DeviceID)
		if err := c.setAside(ctx, c.acc.DeviceID); err != nil {
			return fmt.Errorf("matrix: set the keys in bot.db aside: %w", err)
		}
		return c.openAccount(ctx)
	}
	c.devices = e2ee.NewDevices(e2ee.DevicesConfig{
		Rule: c.cfg.Devices, Owners: c.cfg.Owners, Allows: c.Allows, Client: c.cli, Machine: c.machine(), Decrypt: c.crypto.Decrypt,
		Log: c.log, Now: c.now,
	})
	c.cli.Crypto = c.devices.Encrypter(c.crypto)
	c.store.Attach(c.machine(), c.devices)
	return nil
}

// openCrypto opens the crypto store and compares it with what the homeserver
// has of this device.
func (c *Client) openCrypto(ctx context.Context) error {
	open := func() error {
		return c.persist(ctx, "opening the crypto store", func() error { return c.crypto.Init(ctx) })
	}
	err := open()
	if errors.Is(err, mautrix.MUnknownToken) {
		if err := c.relogin(ctx); err != nil {
			return err
		}
		err = open()
	}
	if err != nil && strings.Contains(err.Error(), "not marked as shared") {
		if there, failed := c.published(ctx); failed != nil {
			return failed
		} else if there {
			err = open()
		}
	}
	if err != nil && strings.Contains(err.Error(), "disappeared from the server") {
		// The device was deleted there, but its keys are all here: they are
		// uploaded again, and the device is the same as before.
		c.log.Warn("matrix: the homeserver has lost this device's keys; uploading them again", "device", c.acc.DeviceID)
		if _, err := c.cfg.DB.ExecContext(ctx, `UPDATE crypto_account SET shared = 0 WHERE account_id = ''`); err != nil {
			return fmt.Errorf("matrix: prepare uploading the device's keys again: %w", err)
		}
		c.resign = true
		err = open()
	}
	return err
}

// republish uploads this device's keys again if the homeserver has lost them,
// as it does with the keys of a device that is logged out.
func (c *Client) republish(ctx context.Context) error {
	m := c.machine()
	resp, err := c.cli.QueryKeys(ctx, &mautrix.ReqQueryKeys{DeviceKeys: mautrix.DeviceKeysRequest{c.acc.UserID: {c.acc.DeviceID}}})
	if err != nil {
		return fmt.Errorf("matrix: ask for this device's keys: %w", err)
	}
	if len(resp.DeviceKeys[c.acc.UserID][c.acc.DeviceID].Keys) > 0 {
		return nil
	}
	c.log.Warn("matrix: the homeserver has lost this device's keys; uploading them again", "device", c.acc.DeviceID)
	m.GetAccount().Shared = false
	if err := m.ShareKeys(ctx, -1); err != nil {
		return fmt.Errorf("matrix: upload this device's keys again: %w", err)
	}
	c.resign = true
	c.ensureIdentity(ctx)
	return nil
}

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
	if err := c.persist(trying, "signing the bot's device", func() error { return c.identity.Sign(ctx, c.resign) }); err != nil {
		c.log.Warn("matrix: the bot's device is not cross-signed, so other clients show a warning at its messages; "+
			"this is tried again at the next start", "device", c.acc.DeviceID, "err", err)
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

func newMautrix(cfg Config) (*mautrix.Client, error) {
	cli, err := mautrix.NewClient(cfg.Homeserver, "", "")
	if err != nil {
		return nil, fmt.Errorf("matrix: homeserver %q is not a URL: %w", cfg.Homeserver, err)
	}
	cli.UserAgent = "Reverie"
	cli.Client.Transport = cfg.HTTP
	cli.Log = mautrixLog(cfg.Log)
	return cli, nil
}

// credentials puts user, device and token into c.cli: those of the last start,
// or those of the configured token, or those of a fresh login.
func (c *Client) credentials(ctx context.Context, device id.DeviceID) error {
	if c.acc != nil && strings.HasPrefix(c.cfg.User, "@") && c.acc.UserID.String() != c.cfg.User {
		return fmt.Errorf("matrix: this data folder belongs to %s, but the configuration says %s; give each account a data folder of its own", c.acc.UserID, c.cfg.User)
	}
	switch {
	case c.acc != nil && (c.cfg.Token == "" || c.cfg.Token == c.acc.AccessToken):
		c.use(c.acc)
		return nil
	case c.cfg.Token != "":
		return c.adoptToken(ctx)
	case c.cfg.Password != "":
		return c.login(ctx, device)
	}
	return errors.New("matrix: neither password nor access token is configured, and nobody has logged in with this data folder yet; set matrix.password or matrix.access_token")
}

// use makes requests go out in the name of a. The access token may change
// while requests are under way, the rest may not.
func (c *Client) use(a *account) {
	c.mu.Lock()
	c.acc = a
	c.mu.Unlock()
	c.token.Store(&a.AccessToken)
	if c.cli.UserID != a.UserID || c.cli.DeviceID != a.DeviceID {
		c.cli.UserID, c.cli.DeviceID, c.cli.AccessToken = a.UserID, a.DeviceID, a.AccessToken
	}
}

// adoptToken takes up the access token from the configuration.
func (c *Client) adoptToken(ctx context.Context) error {
	c.cli.AccessToken = c.cfg.Token
	var me *mautrix.RespWhoami
	err := c.persist(ctx, "asking who the access token belongs to", func() (err error) { me, err = c.cli.Whoami(ctx); return err })
	switch {
	case errors.Is(err, mautrix.MUnknownToken):
		return errors.New("matrix: the homeserver does not know the configured access token; get a new one, or configure a password instead")
	case err != nil:
		return fmt.Errorf("matrix: ask who the access token belongs to: %w", err)
	case me.DeviceID == "":
		return errors.New("matrix: the configured access token has no device, so it cannot be used for encryption; configure a password, or a token that a login gave")
	case strings.HasPrefix(c.cfg.User, "@") && me.UserID.String() != c.cfg.User:
		return fmt.Errorf("matrix: the configured access token belongs to %s, not to %s", me.UserID, c.cfg.User)
	}
	c.use(&account{UserID: me.UserID, DeviceID: me.DeviceID, AccessToken: c.cfg.Token})
	return c.saveAccount()
}

// login logs in with the password, as the given device when there is one.
func (c *Client) login(ctx context.Context, device id.DeviceID) error {
	var resp *mautrix.RespLogin
	err := c.persist(ctx, "logging in", func() (err error) {
		resp, err = c.cli.Login(ctx, &mautrix.ReqLogin{
			Type:       mautrix.AuthTypePassword,
			Identifier: mautrix.UserIdentifier{Type: mautrix.IdentifierTypeUser, User: c.cfg.User},
			Password:   c.cfg.Password, DeviceID: device, InitialDeviceDisplayName: c.cfg.DeviceName,
		})
		return err
	})
	switch {
	case errors.Is(err, mautrix.MForbidden):
		return fmt.Errorf("matrix: %s does not accept user %s with the configured password; check matrix.user and matrix.password", c.cfg.Homeserver, c.cfg.User)
	case errors.Is(err, mautrix.MUserDeactivated):
		return fmt.Errorf("matrix: the account %s is deactivated on %s; use another one", c.cfg.User, c.cfg.Homeserver)
	case err != nil:
		return fmt.Errorf("matrix: log in at %s: %w", c.cfg.Homeserver, err)
	case device != "" && resp.DeviceID != device:
		return fmt.Errorf("matrix: the homeserver gave device %s instead of %s; the encryption keys in bot.db are of no use for that", resp.DeviceID, device)
	case strings.HasPrefix(c.cfg.User, "@") && resp.UserID.String() != c.cfg.User:
		return fmt.Errorf("matrix: the homeserver logged %s in, but the configuration says %s; correct matrix.user", resp.UserID, c.cfg.User)
	}
	signed := c.acc != nil && c.acc.DeviceID == resp.DeviceID && c.acc.CrossSigned
	c.use(&account{UserID: resp.UserID, DeviceID: resp.DeviceID, AccessToken: resp.AccessToken, CrossSigned: signed})
	c.log.Info("matrix: logged in", "user", c.acc.UserID, "device", c.acc.DeviceID)
	return c.saveAccount()
}

// relogin replaces an access token that the homeserver no longer accepts. The
// device stays the same, so nothing that was encrypted for it is lost.
func (c *Client) relogin(ctx context.Context) error {
	if c.cfg.Password == "" {
		return errors.New("matrix: the homeserver no longer accepts the access token (the device was logged out); configure a new matrix.access_token for the same device, or a matrix.password so that the bot can log in by itself")
	}
	c.log.Warn("matrix: the access token is no longer valid; logging in again", "device", c.acc.DeviceID)
	return c.login(ctx, c.acc.DeviceID)
}

// explainInit turns the library's reasons for not opening the crypto store
// into what a person can do. Nothing is deleted: keys that are gone are gone.
func (c *Client) explainInit(err error) error {
	dir := c.cfg.dir("") + "/"
	text, remedy := err.Error(), ""
	switch {
	case strings.Contains(text, "not marked as shared"), strings.Contains(text, "mismatching identity key"):
		remedy = fmt.Sprintf("bot.db does not hold the encryption keys of device %s (it was replaced or restored from an old backup). "+
			"Put the right bot.db back; or move %saccount.json away and configure a password: the bot then logs in as a new device and verifies it with recovery.key. "+
			"Log the old device out in another client afterwards", c.acc.DeviceID, dir)
	case strings.Contains(text, "mismatching device ID"):
		remedy = fmt.Sprintf("bot.db and %saccount.json belong to different devices; put the files of one device back together, or configure the access token of the device in bot.db", dir)
	case strings.Contains(text, "bad mac"), strings.Contains(text, "pickle"):
		remedy = fmt.Sprintf("%spickle.key does not fit the encryption keys in bot.db; put the key back that was made together with it", dir)
	default:
		if strings.HasPrefix(text, "matrix: ") {
			return err
		}
		return fmt.Errorf("matrix: open crypto store: %w", err)
	}
	return fmt.Errorf("matrix: the encryption keys cannot be used: %s: %w", remedy, err)
}

// persist calls f until it succeeds or fails for good; it waits longer and
// longer while the homeserver does not answer.
func (c *Client) persist(ctx context.Context, doing string, f func() error) error {
	for attempt := 0; ; attempt++ {
		err := f()
		var h mautrix.HTTPError
		if !errors.As(err, &h) {
			return err
		}
		v, wait := retry.Classify(err, attempt)
		if v != retry.Again || ctx.Err() != nil {
			return err
		}
		c.log.Warn("matrix: the homeserver does not answer; trying again", "homeserver", c.cfg.Homeserver, "while", doing, "in", wait.Round(time.Second), "err", err)
		if err := retry.Pause(ctx, nil, wait); err != nil {
			return err
		}
	}
}

// machine is shorter than what it stands for.
func (c *Client) machine() *crypto.OlmMachine { return c.crypto.Machine() }
