// Package account logs the bot in once and keeps its device. It sends the requests to the homeserver
// and detects that the login or the device keys are no longer valid.
package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/cryptohelper"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/retry"
	"reverie/internal/pace"
	"reverie/internal/store"
)

// Config configures an Account. Password or Token is needed until Dir holds a login.
type Config struct {
	Homeserver, User, Password, Token, DeviceName string

	Dir     string // folder of account.json and the keys
	DB      *store.DB
	HTTP    http.RoundTripper
	Log     *slog.Logger
	Now     func() time.Time
	Syncer  func() mautrix.Syncer // returns one without handlers
	Store   *e2ee.Store
	Devices e2ee.DevicesConfig // the fields that Open cannot fill in
}

// FilePath returns the path of a file in Dir.
func (cfg Config) FilePath(name string) string { return filepath.Join(cfg.Dir, name) }

const fileName = "account.json"

// Account is the bot's login with its client, keys and identity.
type Account struct {
	Client   *mautrix.Client
	Crypto   *cryptohelper.CryptoHelper
	Store    *e2ee.Store
	Devices  *e2ee.Devices
	Identity *e2ee.Identity

	cfg            Config
	token          atomic.Pointer[string]
	refusedUploads atomic.Int64 // uploads of one-time keys that the homeserver has refused
	skew           atomic.Int64 // nanoseconds that the homeserver's clock is ahead of ours
	signAgain      bool         // the homeserver has lost our device's signature; before Run, then sync goroutine only

	mu    sync.Mutex
	login *Login // replaced, never changed
}

// Login is the result of a login. It is stored because a new login has a new access token, and
// transaction IDs are unique only per token.
type Login struct {
	UserID      id.UserID   `json:"user_id"`
	DeviceID    id.DeviceID `json:"device_id"`
	AccessToken string      `json:"access_token"`
	CrossSigned bool        `json:"cross_signed"` // this device was signed; not checked again
	Named       bool        `json:"named"`        // the account's display name was checked; not checked again
}

// LoadLogin reads the login in dir. It returns nil if there is no login.
func LoadLogin(dir string) (*Login, error) {
	path := filepath.Join(dir, fileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("matrix: read account: %w", err)
	}
	var l Login
	if err := json.Unmarshal(data, &l); err != nil || l.UserID == "" || l.DeviceID == "" || l.AccessToken == "" {
		return nil, fmt.Errorf("matrix: %s is damaged; move it away, "+
			"and with a password in the configuration the same device logs in again", path)
	}
	return &l, nil
}

func (a *Account) saveLogin() error {
	data, err := json.MarshalIndent(a.login, "", "  ")
	if err == nil {
		err = store.WriteFile(a.cfg.FilePath(fileName), append(data, '\n'))
	}
	return store.Wrap(err, "matrix: save account")
}

// Open logs in or reuses the stored device, and opens the crypto store.
func Open(ctx context.Context, cfg Config) (*Account, error) {
	a := &Account{cfg: cfg, Store: cfg.Store}
	if err := a.logInAndOpenCrypto(ctx); err != nil {
		return nil, err
	}
	d := cfg.Devices
	d.Client, d.Machine, d.Decrypt, d.Log, d.Now = a.Client, a.olmMachine(), a.Crypto.Decrypt, cfg.Log, cfg.Now
	a.Devices = e2ee.NewDevices(d)
	a.Client.Crypto = a.Devices.Encrypter(a.Crypto)
	cfg.Store.Attach(a.olmMachine(), a.Devices)
	a.Identity = e2ee.NewIdentity(a.E2EEConfig())
	return a, nil
}

// E2EEConfig returns the configuration of the identity and the key backup.
func (a *Account) E2EEConfig() e2ee.Config {
	return e2ee.Config{Client: a.Client, Machine: a.olmMachine(), DB: a.cfg.DB, Dir: a.cfg.Dir, Password: a.cfg.Password, Log: a.cfg.Log}
}

// CurrentLogin returns the login in use.
func (a *Account) CurrentLogin() Login {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.login
}

// logInAndOpenCrypto creates a.Client and a.Crypto and logs in if needed.
func (a *Account) logInAndOpenCrypto(ctx context.Context) (err error) {
	if a.login, err = LoadLogin(a.cfg.Dir); err != nil {
		return err
	}
	device, err := e2ee.StoredDevice(ctx, a.cfg.DB)
	if err != nil {
		return fmt.Errorf("matrix: look at the crypto store: %w", err)
	}
	returning := a.login == nil && device != ""
	key, err := e2ee.PickleKey(a.cfg.Dir, device)
	if err != nil {
		return err
	}
	if a.Client, err = NewClient(a.cfg); err != nil {
		return err
	}
	a.Client.Client.Transport = transport{a}
	a.Client.Syncer = a.cfg.Syncer()
	if err := a.authenticate(ctx, id.DeviceID(device)); err != nil {
		return err
	}
	db, err := a.cfg.Store.Database()
	if err != nil {
		return fmt.Errorf("matrix: open crypto store: %w", err)
	}
	if a.Crypto, err = cryptohelper.NewCryptoHelper(a.Client, key, db); err != nil {
		return fmt.Errorf("matrix: open crypto store: %w", err)
	}
	if err := a.initCryptoAndRepairKeys(ctx); err != nil {
		if !returning || !isDeviceKeyMismatch(err) || !a.canLogInAsNewDevice() {
			return a.explainCryptoStoreError(err)
		}
		// account.json was moved away, as explainCryptoStoreError advises.
		a.cfg.Log.Warn("matrix: the keys in bot.db do not match their device; they are set aside, and a new device is created",
			"device", a.login.DeviceID)
		if err := a.setDeviceKeysAside(ctx, a.login.DeviceID); err != nil {
			return fmt.Errorf("matrix: set the keys in bot.db aside: %w", err)
		}
		return a.logInAndOpenCrypto(ctx)
	}
	return nil
}

// initCryptoAndRepairKeys opens the crypto store and compares it with the device keys on the homeserver.
func (a *Account) initCryptoAndRepairKeys(ctx context.Context) error {
	open := func() error {
		return a.RetryRequest(ctx, "opening the crypto store", func() error { return a.Crypto.Init(ctx) })
	}
	err := open()
	if errors.Is(err, mautrix.MUnknownToken) {
		if err := a.RenewAccessToken(ctx); err != nil {
			return err
		}
		err = open()
	}
	if err != nil && strings.Contains(err.Error(), "not marked as shared") {
		if there, failed := a.markKeysUploadedIfOnServer(ctx); failed != nil {
			return failed
		} else if there {
			err = open()
		}
	}
	if err != nil && strings.Contains(err.Error(), "disappeared from the server") {
		// The device was deleted there, but all its keys are here: they are uploaded again, and the
		// device stays the same.
		a.cfg.Log.Warn("matrix: the homeserver has lost this device's keys; uploading them again", "device", a.login.DeviceID)
		if _, err := a.cfg.DB.ExecContext(ctx, `UPDATE crypto_account SET shared = 0 WHERE account_id = ''`); err != nil {
			return fmt.Errorf("matrix: prepare uploading the device's keys again: %w", err)
		}
		a.signAgain = true
		err = open()
	}
	return err
}

// ReuploadDeviceKeysIfLost uploads this device's keys again if the homeserver has lost them. It loses
// them when the device is logged out.
func (a *Account) ReuploadDeviceKeysIfLost(ctx context.Context) error {
	m := a.olmMachine()
	resp, err := a.Client.QueryKeys(ctx, &mautrix.ReqQueryKeys{DeviceKeys: mautrix.DeviceKeysRequest{a.login.UserID: {a.login.DeviceID}}})
	if err != nil {
		return fmt.Errorf("matrix: ask for this device's keys: %w", err)
	}
	if len(resp.DeviceKeys[a.login.UserID][a.login.DeviceID].Keys) > 0 {
		return nil
	}
	a.cfg.Log.Warn("matrix: the homeserver has lost this device's keys; uploading them again", "device", a.login.DeviceID)
	m.GetAccount().Shared = false
	if err := m.ShareKeys(ctx, -1); err != nil {
		return fmt.Errorf("matrix: upload this device's keys again: %w", err)
	}
	a.signAgain = true
	a.CrossSignDevice(ctx)
	return nil
}

// signTime limits the retries of cross-signing.
const signTime = 15 * time.Second

// CrossSignDevice cross-signs the bot's device once. Clients warn of messages from an unsigned device,
// and some refuse them. The bot also works without the signature, so a failure is only logged.
func (a *Account) CrossSignDevice(ctx context.Context) {
	if a.login.CrossSigned && !a.signAgain {
		return
	}
	trying, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	if err := a.RetryRequest(trying, "signing the bot's device", func() error { return a.Identity.Sign(ctx, a.signAgain) }); err != nil {
		a.cfg.Log.Warn("matrix: the bot's device is not cross-signed, so other clients show a warning at its messages; "+
			"this is tried again at the next start", "device", a.login.DeviceID, "err", err)
		return
	}
	signed := *a.login
	signed.CrossSigned = true
	a.useLogin(&signed)
	a.signAgain = false
	if err := a.saveLogin(); err != nil {
		a.cfg.Log.Warn("matrix: the device is cross-signed, but that could not be stored", "err", err)
	}
}

// SetDisplayNameOnce gives the account the display name name if it has none but its localpart. It does so at the
// first start only, so that a name chosen or removed later stays. A failure is only logged.
func (a *Account) SetDisplayNameOnce(ctx context.Context, name string) {
	if a.login.Named || name == "" {
		return
	}
	trying, cancel := context.WithTimeout(ctx, signTime)
	defer cancel()
	profile, err := a.Client.GetOwnDisplayName(trying)
	if errors.Is(err, mautrix.MNotFound) || err == nil && (profile.DisplayName == "" || profile.DisplayName == a.login.UserID.Localpart()) {
		err = a.Client.SetDisplayName(trying, name)
	}
	if err == nil {
		named := *a.login
		named.Named = true
		a.useLogin(&named)
		err = a.saveLogin()
	}
	if err != nil {
		a.cfg.Log.Warn("matrix: the account's display name was not set; this is tried again at the next start", "err", err)
	}
}

// NewClient returns a client for the homeserver without a login.
func NewClient(cfg Config) (*mautrix.Client, error) {
	cli, err := mautrix.NewClient(cfg.Homeserver, "", "")
	if err != nil {
		return nil, fmt.Errorf("matrix: homeserver %q is not a URL: %w", cfg.Homeserver, err)
	}
	cli.UserAgent = "Reverie"
	cli.Client.Transport = cfg.HTTP
	cli.Log = zerolog.New(zerologWriter{cfg.Log}).Level(zerolog.WarnLevel)
	return cli, nil
}

// authenticate sets user, device and token of a.Client: from the stored login, from the configured
// token, or from a new login.
func (a *Account) authenticate(ctx context.Context, device id.DeviceID) error {
	if a.login != nil && strings.HasPrefix(a.cfg.User, "@") && a.login.UserID.String() != a.cfg.User {
		return fmt.Errorf("matrix: this data folder belongs to %s, but the configuration says %s; "+
			"give each account a data folder of its own", a.login.UserID, a.cfg.User)
	}
	switch {
	case a.login != nil && (a.cfg.Token == "" || a.cfg.Token == a.login.AccessToken):
		a.useLogin(a.login)
		return nil
	case a.cfg.Token != "":
		return a.useConfiguredToken(ctx)
	case a.cfg.Password != "":
		return a.logInWithPassword(ctx, device)
	}
	return errors.New("matrix: neither password nor access token is configured, and this data folder has no login yet; " +
		"set matrix.password or matrix.access_token")
}

// useLogin makes requests use l. The access token may change while requests run; user and device
// may not.
func (a *Account) useLogin(l *Login) {
	a.mu.Lock()
	a.login = l
	a.mu.Unlock()
	a.token.Store(&l.AccessToken)
	if a.Client.UserID != l.UserID || a.Client.DeviceID != l.DeviceID {
		a.Client.UserID, a.Client.DeviceID, a.Client.AccessToken = l.UserID, l.DeviceID, l.AccessToken
	}
}

// useConfiguredToken checks and stores the access token of the configuration.
func (a *Account) useConfiguredToken(ctx context.Context) error {
	a.Client.AccessToken = a.cfg.Token
	var me *mautrix.RespWhoami
	err := a.RetryRequest(ctx, "asking who the access token belongs to", func() (err error) { me, err = a.Client.Whoami(ctx); return err })
	switch {
	case errors.Is(err, mautrix.MUnknownToken):
		return errors.New("matrix: the homeserver does not know the configured access token; get a new one, " +
			"or configure a password instead")
	case err != nil:
		return fmt.Errorf("matrix: ask who the access token belongs to: %w", err)
	case me.DeviceID == "":
		return errors.New("matrix: the configured access token has no device, so it cannot be used for encryption; configure a password, " +
			"or a token from a login")
	case strings.HasPrefix(a.cfg.User, "@") && me.UserID.String() != a.cfg.User:
		return fmt.Errorf("matrix: the configured access token belongs to %s, not to %s", me.UserID, a.cfg.User)
	}
	a.useLogin(&Login{UserID: me.UserID, DeviceID: me.DeviceID, AccessToken: a.cfg.Token, Named: a.login != nil && a.login.Named})
	return a.saveLogin()
}

// logInWithPassword logs in with the password, as the given device when there is one.
func (a *Account) logInWithPassword(ctx context.Context, device id.DeviceID) error {
	var resp *mautrix.RespLogin
	err := a.RetryRequest(ctx, "logging in", func() (err error) {
		resp, err = a.Client.Login(ctx, &mautrix.ReqLogin{
			Type:       mautrix.AuthTypePassword,
			Identifier: mautrix.UserIdentifier{Type: mautrix.IdentifierTypeUser, User: a.cfg.User},
			Password:   a.cfg.Password, DeviceID: device, InitialDeviceDisplayName: a.cfg.DeviceName,
		})
		return err
	})
	switch {
	case errors.Is(err, mautrix.MForbidden):
		return fmt.Errorf("matrix: %s does not accept user %s with the configured password; check matrix.user and matrix.password",
			a.cfg.Homeserver, a.cfg.User)
	case errors.Is(err, mautrix.MUserDeactivated):
		return fmt.Errorf("matrix: the account %s is deactivated on %s; use another one", a.cfg.User, a.cfg.Homeserver)
	case err != nil:
		return fmt.Errorf("matrix: log in at %s: %w", a.cfg.Homeserver, err)
	case device != "" && resp.DeviceID != device:
		return fmt.Errorf("matrix: the homeserver gave device %s instead of %s; the encryption keys in bot.db cannot be used for it",
			resp.DeviceID, device)
	case strings.HasPrefix(a.cfg.User, "@") && resp.UserID.String() != a.cfg.User:
		return fmt.Errorf("matrix: the homeserver logged %s in, but the configuration says %s; correct matrix.user", resp.UserID,
			a.cfg.User)
	}
	signed := a.login != nil && a.login.DeviceID == resp.DeviceID && a.login.CrossSigned
	a.useLogin(&Login{UserID: resp.UserID, DeviceID: resp.DeviceID, AccessToken: resp.AccessToken, CrossSigned: signed,
		Named: a.login != nil && a.login.Named})
	a.cfg.Log.Info("matrix: logged in", "user", a.login.UserID, "device", a.login.DeviceID)
	return a.saveLogin()
}

// RenewAccessToken replaces an invalid access token. The device stays the same, so messages that were
// encrypted for it stay readable.
func (a *Account) RenewAccessToken(ctx context.Context) error {
	if a.cfg.Password == "" {
		return errors.New("matrix: the homeserver no longer accepts the access token (the device was logged out); " +
			"configure a new matrix.access_token for the same device, or a matrix.password so that the bot can log in by itself")
	}
	a.cfg.Log.Warn("matrix: the access token is no longer valid; logging in again", "device", a.login.DeviceID)
	return a.logInWithPassword(ctx, a.login.DeviceID)
}

// explainCryptoStoreError turns mautrix's errors about the crypto store into advice for the operator. It
// deletes nothing.
func (a *Account) explainCryptoStoreError(err error) error {
	dir := a.cfg.FilePath("") + "/"
	text, remedy := err.Error(), ""
	switch {
	case strings.Contains(text, "not marked as shared"), strings.Contains(text, "mismatching identity key"):
		remedy = fmt.Sprintf("bot.db does not hold the encryption keys of device %s (it was replaced or restored from an old backup). "+
			"Put the right bot.db back; or move %saccount.json away and configure a password: "+
			"the bot then logs in as a new device and verifies it with recovery.key. "+
			"Log the old device out in another client afterwards", a.login.DeviceID, dir)
	case strings.Contains(text, "mismatching device ID"):
		remedy = fmt.Sprintf("bot.db and %saccount.json belong to different devices; put the files of one device back together, "+
			"or configure the access token of the device in bot.db", dir)
	case strings.Contains(text, "bad mac"), strings.Contains(text, "pickle"):
		remedy = fmt.Sprintf("%spickle.key does not fit the encryption keys in bot.db; put the key back that was made together with it",
			dir)
	default:
		if strings.HasPrefix(text, "matrix: ") {
			return err
		}
		return fmt.Errorf("matrix: open crypto store: %w", err)
	}
	return fmt.Errorf("matrix: the encryption keys cannot be used: %s: %w", remedy, err)
}

// RetryRequest calls f until it succeeds or fails for good. The delays grow while the homeserver does
// not answer.
func (a *Account) RetryRequest(ctx context.Context, doing string, f func() error) error {
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
		a.cfg.Log.Warn("matrix: the homeserver does not answer; trying again", "homeserver", a.cfg.Homeserver, "while", doing,
			"in", wait.Round(time.Second), "err", err)
		if err := pace.Pause(ctx, nil, wait); err != nil {
			return err
		}
	}
}

// olmMachine returns the Olm machine of the account.
func (a *Account) olmMachine() *crypto.OlmMachine { return a.Crypto.Machine() }

// transport sends the requests of an Account.
type transport struct{ a *Account }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	// mautrix keeps its access token in a field. The field cannot be changed while others read it.
	if token := t.a.token.Load(); token != nil && r.Header.Get("Authorization") != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+*token)
	}
	if err := t.a.Store.CheckRequest(r); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // required of a RoundTripper
		}
		return nil, err
	}
	resp, err := t.a.cfg.HTTP.RoundTrip(r)
	if err != nil {
		return resp, err
	}
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		t.a.skew.Store(int64(at.Sub(t.a.cfg.Now())))
	}
	// A web page with status 200 comes from a proxy or a captive portal. Callers of many requests
	// check the status only.
	if resp.StatusCode < 300 && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") &&
		!strings.Contains(r.URL.Path, "/download/") {
		resp.StatusCode = http.StatusBadGateway
		resp.Status = "502 a web page instead of an answer"
	}
	// The homeserver refuses a known one-time key ID with other contents. This happens after bot.db
	// was restored from an older copy: it generates key IDs again that this device has used since.
	// mautrix only logs the refusal and tries again at every sync.
	if resp.StatusCode == http.StatusBadRequest && strings.HasSuffix(r.URL.Path, "/keys/upload") {
		t.a.refusedUploads.Add(1)
	}
	return resp, nil
}

// HomeserverClockSkew returns by how much the homeserver's clock is ahead of ours.
func (a *Account) HomeserverClockSkew() time.Duration { return time.Duration(a.skew.Load()) }
