// Package doctor checks the connection to Matrix and says how to fix problems.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/signatures"
	"maunium.net/go/mautrix/id"

	"reverie/internal/i18n"
	"reverie/internal/matrix/account"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/verification"
)

// maxSkew is the clock difference from which on it is reported.
const maxSkew = 2 * time.Minute

// Finding is the result of one check.
type Finding struct {
	OK     bool   `json:"ok"`
	Note   bool   `json:"note,omitempty"` // OK, but worth reporting
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"` // how to fix it; empty when OK and no note
}

// Config configures the doctor.
type Config struct {
	Account account.Config
	// ReadStored fills in the delivery state stored in bot.db.
	ReadStored func(ctx context.Context, s *Status, now time.Time) error
}

// findings are the results so far.
type findings []Finding

func (f *findings) good(format string, args ...any) {
	*f = append(*f, Finding{OK: true, What: fmt.Sprintf(format, args...)})
}

func (f *findings) bad(remedy, format string, args ...any) {
	*f = append(*f, Finding{What: fmt.Sprintf(format, args...), Remedy: remedy})
}

// Check checks everything a bot account needs, and fills in what the homeserver reports. It changes
// nothing and does not log in, because that would create a device.
func Check(ctx context.Context, c Config, s *Status) []Finding {
	var out findings
	cfg := c.Account
	cli, err := account.NewClient(cfg)
	if err != nil {
		out.bad("correct matrix.homeserver", "%v", err)
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cli.ResponseHook = func(_ *http.Request, resp *http.Response, _ error, _ time.Duration) {
		if resp == nil {
			return
		}
		if t, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			ahead := int64(time.Until(t).Seconds())
			s.ClockSkew = &ahead
		}
	}
	versions, err := cli.Versions(ctx)
	newest := versions.GetLatest()
	var h mautrix.HTTPError
	switch {
	case err == nil && newest.Format == mautrix.SpecVersionFormatUnknown,
		errors.As(err, &h) && h.RespError == nil && h.Response != nil && h.Response.StatusCode < 500:
		out.bad("correct matrix.homeserver: the address that clients use, such as https://matrix.example.org",
			"%s answers, but not as a Matrix homeserver", cfg.Homeserver)
		return out
	case err != nil:
		out.bad("start it, or correct matrix.homeserver", "the homeserver %s does not answer: %v", cfg.Homeserver, err)
		return out
	}
	out.good("homeserver %s answers (Matrix %s)", cfg.Homeserver, newest)
	cli.DefaultHTTPRetries = 2 // a bot that has just started may have used up the limit of its requests
	if s.skewed() {
		skew, way := time.Duration(*s.ClockSkew)*time.Second, "ahead of"
		if skew < 0 {
			way = "behind"
		}
		out.bad("set the clock of this machine or of the homeserver; nothing is lost meanwhile, "+
			"but times and the age of messages are wrong",
			"the homeserver's clock is %s %s mine", span(skew.Abs()), way)
	}

	acc, err := account.LoadLogin(cfg.Dir)
	switch {
	case err != nil:
		out.bad("see there", "%v", err)
	case acc == nil && cfg.Password == "" && cfg.Token == "":
		out.bad("set matrix.password or matrix.access_token", "nobody has logged in yet, and there is nothing to log in with")
	case acc == nil:
		out.good("not logged in yet: the first start does that and makes a device")
	default:
		out.account(ctx, cfg, cli, acc, s)
	}
	return out
}

// account checks the account acc.
func (f *findings) account(ctx context.Context, cfg account.Config, cli *mautrix.Client, acc *account.Login, s *Status) {
	if strings.HasPrefix(cfg.User, "@") && cfg.User != acc.UserID.String() {
		f.bad("give each account a data folder of its own", "the data folder belongs to %s, the configuration says %s", acc.UserID,
			cfg.User)
	}
	cli.UserID, cli.DeviceID, cli.AccessToken = acc.UserID, acc.DeviceID, cmp.Or(cfg.Token, acc.AccessToken)
	me, err := cli.Whoami(ctx)
	switch {
	case errors.Is(err, mautrix.MUnknownToken) && cfg.Password != "":
		f.good("the access token is no longer valid; the next start logs in again with the password")
		return
	case errors.Is(err, mautrix.MUnknownToken):
		f.bad("configure a new matrix.access_token for device "+acc.DeviceID.String()+", or a matrix.password",
			"the access token is no longer valid")
		return
	case err != nil:
		f.bad("try again; if it persists, ask whoever runs the homeserver", "the homeserver does not confirm the login: %v", err)
		return
	case me.DeviceID != acc.DeviceID:
		f.bad("use the access token of device "+acc.DeviceID.String()+", or start with an empty data folder",
			"the access token belongs to device %s, the data folder to %s", me.DeviceID, acc.DeviceID)
	default:
		f.good("logged in as %s, device %s", me.UserID, me.DeviceID)
	}
	switch device, err := e2ee.StoredDevice(ctx, cfg.DB); {
	case err != nil:
		f.bad("check whether bot.db is intact", "the crypto store cannot be read: %v", err)
	case device != acc.DeviceID.String():
		f.bad("put bot.db and "+cfg.FilePath("account.json")+" of the same device together",
			"the crypto store belongs to device %q, the account to %s", device, acc.DeviceID)
	default:
		f.fingerprints(ctx, cfg)
	}
	for _, name := range []string{"pickle.key", "recovery.key"} {
		switch info, err := os.Stat(cfg.FilePath(name)); {
		case err != nil:
			f.bad("restore it from a backup", "%s is not there", cfg.FilePath(name))
		case info.Mode().Perm()&0o077 != 0:
			f.bad("chmod 600 "+cfg.FilePath(name), "%s can be read by others", cfg.FilePath(name))
		default:
			f.good("%s is there", cfg.FilePath(name))
		}
	}
	f.backup(ctx, cfg, cli)
	keys, err := cli.QueryKeys(ctx, &mautrix.ReqQueryKeys{DeviceKeys: mautrix.DeviceKeysRequest{acc.UserID: mautrix.DeviceIDList{}}})
	if err != nil {
		f.bad("try again", "the homeserver does not return the keys of the account: %v", err)
		return
	}
	f.signed(acc, keys, s)
	f.devices(ctx, cfg, cli, acc, keys, s)
}

// fingerprints reports the fingerprints of the bot's device and, if known, its identity. They come
// from the crypto store, because a homeserver could forge them.
func (f *findings) fingerprints(ctx context.Context, cfg account.Config) {
	stored, err := e2ee.OpenStore(ctx, cfg.DB, cfg.Dir)
	var own *crypto.OlmAccount
	if err == nil {
		own, err = stored.GetAccount(ctx)
	}
	if err == nil && own == nil {
		err = errors.New("there is no account in it")
	}
	if err != nil {
		f.bad("see whether "+cfg.FilePath("pickle.key")+" belongs to bot.db", "the crypto store cannot be read: %v", err)
		return
	}
	what := "the device's fingerprint is " + verification.Fingerprint(own.SigningKey().String())
	if s, err := e2ee.LoadSecrets(ctx, cfg.DB, cfg.Dir); err == nil && s != nil && s.CrossSigning != nil {
		if keys, err := s.CrossSigning.Decode(); err == nil {
			what += ", the identity's " + verification.Fingerprint(keys.MasterKey.PublicKey().String())
		}
	}
	f.good("%s", what)
}

// backup compares the key backup in use with the homeserver's.
func (f *findings) backup(ctx context.Context, cfg account.Config, cli *mautrix.Client) {
	stored, err := e2ee.LoadSecrets(ctx, cfg.DB, cfg.Dir)
	if err != nil {
		f.bad("start the bot with recovery.key in its place", "%v", err)
		return
	}
	if stored == nil || stored.Backup == nil {
		f.bad("see that "+cfg.FilePath("recovery.key")+" is there and start the bot: it makes the backup, or its log says why not",
			"message keys are not backed up, so with bot.db old messages would be lost")
		return
	}
	latest, err := cli.GetKeyBackupLatestVersion(ctx)
	switch {
	case errors.Is(err, mautrix.MNotFound):
		f.bad("start the bot: it makes a new one", "the key backup is no longer on the homeserver")
	case err != nil:
		f.bad("try again", "the homeserver does not return the key backup: %v", err)
	case latest.Version != stored.Backup.Version:
		f.bad("start the bot: it uses the new one if recovery.key opens it",
			"the key backup was replaced by another client (version %s became %s)", stored.Backup.Version, latest.Version)
	default:
		waiting := ""
		if n, err := e2ee.CountNotBackedUp(ctx, cfg.DB, stored.Backup.Version.String()); err == nil && n > 0 {
			waiting = fmt.Sprintf(", %d more wait for the running bot", n)
		}
		f.good("message keys are backed up (version %s, %d keys)%s", latest.Version, latest.Count, waiting)
	}
}

// signed checks whether others see the device as cross-signed.
func (f *findings) signed(acc *account.Login, keys *mautrix.RespQueryKeys, s *Status) {
	const remedy = "start the bot with matrix.password set, or verify the device in another client of this account"
	device, known := keys.DeviceKeys[acc.UserID][acc.DeviceID]
	signer := keys.SelfSigningKeys[acc.UserID]
	s.CrossSigned = signedBy(device, acc.UserID, signer.FirstKey())
	switch {
	case s.CrossSigned:
		f.good("the device is cross-signed")
	case !known:
		f.bad("start the bot: it says what to do", "the homeserver holds no keys of device %s", acc.DeviceID)
	case len(signer.Keys) == 0:
		f.bad(remedy, "the account has no identity, so other clients warn about the bot's messages")
	default:
		f.bad(remedy, "device %s is not cross-signed, so other clients warn about the bot's messages", acc.DeviceID)
	}
}

// devices checks whether the account's identity is still the bot's own. It lists the devices that
// this identity has not signed. Either would reveal an attacker who took over the account.
func (f *findings) devices(
	ctx context.Context, cfg account.Config, cli *mautrix.Client, acc *account.Login, keys *mautrix.RespQueryKeys, s *Status,
) {
	list, err := cli.GetDevicesInfo(ctx)
	if err != nil {
		f.bad("try again", "the homeserver does not list the devices of the account: %v", err)
		return
	}
	masters, signers := keys.MasterKeys[acc.UserID], keys.SelfSigningKeys[acc.UserID]
	if stored, err := e2ee.LoadSecrets(ctx, cfg.DB, cfg.Dir); err == nil && stored != nil && stored.CrossSigning != nil {
		if own, err := stored.CrossSigning.Decode(); err == nil {
			s.IdentityTrusted = own.PublicKeys().MasterKey == masters.FirstKey()
			if !s.IdentityTrusted {
				f.bad("if it was not you, change the account's password and log the other devices out; "+
					"then put the recovery key of the present identity into "+
					cfg.FilePath("recovery.key")+" and start the bot",
					"the account's identity on the homeserver is not the one that this bot made: another client, or someone else, "+
						"has replaced it")
			}
		}
	}
	var names []string
	for _, d := range list.Devices {
		if d.DeviceID == acc.DeviceID || signedBy(keys.DeviceKeys[acc.UserID][d.DeviceID], acc.UserID, signers.FirstKey()) {
			continue
		}
		s.UnknownDevices = append(s.UnknownDevices, Device{ID: d.DeviceID.String(), Name: d.DisplayName})
		name := fmt.Sprintf("%s (%q)", d.DeviceID, d.DisplayName)
		if d.DeviceID == "shared_secret_registration" {
			name = "shared_secret_registration (left by the tool of Dendrite that made the account)"
		}
		names = append(names, name)
	}
	if len(names) > 0 {
		*f = append(*f, Finding{
			OK: true, Note: true,
			What: fmt.Sprintf("the account has %s that its identity has not signed: %s",
				plural(len(names), "other device", "other devices"), strings.Join(names, "; ")),
			Remedy: "if you do not know a device, log it out in another client of this account and change the password",
		})
	}
}

// signedBy reports whether the self-signing key signer has signed the device.
func signedBy(d mautrix.DeviceKeys, user id.UserID, signer id.Ed25519) bool {
	if signer == "" || len(d.Keys) == 0 {
		return false
	}
	ok, err := signatures.VerifySignatureJSON(d, user, signer.String(), signer)
	return err == nil && ok
}

// Process is the program that holds the data folder; the zero value means no process.
type Process struct {
	ID    int       // 0 = not known
	Since time.Time // when it locked the folder; zero = nothing holds it
}

// Examine is Check together with the delivery state stored in the bot's database. The bot may run in
// another process. Examine changes nothing. It prefers what the homeserver reports; if that does not
// answer, this part of the status is the stored one or empty.
func Examine(ctx context.Context, cfg Config, p Process) (Status, []Finding) {
	acct := cfg.Account
	s := Status{Running: !p.Since.IsZero(), Homeserver: acct.Homeserver, User: acct.User, UnknownDevices: []Device{}}
	now := time.Now()
	if acc, err := account.LoadLogin(acct.Dir); err == nil && acc != nil {
		s.User, s.Device, s.CrossSigned = acc.UserID.String(), acc.DeviceID.String(), acc.CrossSigned
	}
	if stored, err := e2ee.LoadSecrets(ctx, acct.DB, acct.Dir); err == nil && stored != nil {
		s.IdentityTrusted = stored.CrossSigning != nil
		if stored.Backup != nil {
			s.Backup = stored.Backup.Version.String()
		}
	}
	err := cfg.ReadStored(ctx, &s, now)
	found := Check(ctx, cfg, &s)
	if err != nil {
		return s, append(found, Finding{What: "bot.db cannot be read: " + err.Error(),
			Remedy: "check whether bot.db is intact and its disk has space"})
	}
	found = append([]Finding{s.syncFinding(p, now)}, found...)
	queues := findings(s.queues())
	if len(queues) == 0 {
		queues.good("nothing is waiting to be answered, sent or read")
	}
	return s, append(found, queues...)
}

// syncFinding reports whether the bot is in contact with its homeserver.
func (s Status) syncFinding(p Process, now time.Time) Finding {
	last := s.syncText(i18n.English, now)
	if s.SyncFailures > 0 {
		last += ", the last one with: " + s.Problem
	}
	if !s.Running {
		return Finding{OK: true, Note: true, What: "the bot is not running; " + last, Remedy: "start it with `bot run`"}
	}
	who := "the bot is running"
	if p.ID != 0 {
		who += fmt.Sprintf(" (process %d)", p.ID)
	}
	awake, synced := max(now.Sub(p.Since), 0), s.LastSync.After(p.Since)
	switch {
	case synced && now.Sub(s.LastSync) <= staleSync && s.SyncFailures == 0:
		return Finding{OK: true, What: who + "; " + last}
	case synced && now.Sub(s.LastSync) <= staleSync:
		return Finding{OK: true, Note: true, What: who + "; " + last, Remedy: "it keeps trying; see below whether the homeserver answers"}
	case !synced && awake <= staleSync:
		return Finding{OK: true, Note: true, What: who + " since " + span(awake) + ", not in contact with the homeserver yet; " + last,
			Remedy: "check again in a minute"}
	}
	return Finding{
		What: who + ", but it is out of contact with the homeserver; " + last,
		Remedy: "see below whether the homeserver answers; if it does, the bot's log says why, " +
			"and a restart loses nothing. If that process is `bot chat`, end it and start `bot run`",
	}
}
