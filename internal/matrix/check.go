package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
)

// maxSkew is how far two clocks may be apart before it is worth a word.
const maxSkew = 2 * time.Minute

// Finding is one thing that a check looked at.
type Finding struct {
	OK     bool   `json:"ok"`
	Note   bool   `json:"note,omitempty"` // OK, but worth knowing
	What   string `json:"what"`
	Remedy string `json:"remedy,omitempty"` // what to do; empty when OK and no note
	reason string // what a server or an error said about it, for the operator alone
}

// check looks at everything a bot account needs, and fills in what the homeserver tells. It
// changes nothing: it does not log in, because that would make a device.
func check(ctx context.Context, cfg Config, s *Status) []Finding {
	var out []Finding
	good := func(format string, args ...any) {
		out = append(out, Finding{OK: true, What: fmt.Sprintf(format, args...)})
	}
	bad := func(remedy, format string, args ...any) {
		out = append(out, Finding{What: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if err := cfg.check(); err != nil {
		bad("correct the matrix section of the configuration", "%v", err)
		return out
	}
	cli, err := newMautrix(cfg)
	if err != nil {
		bad("correct matrix.homeserver", "%v", err)
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
	version, err := newestVersion(ctx, cli)
	if errors.Is(err, errNotMatrix) {
		const remedy = "correct matrix.homeserver: the address that clients use, such as https://matrix.example.org"
		bad(remedy, "%s %v", cfg.Homeserver, err)
		return out
	}
	if err != nil {
		bad("start it, or correct matrix.homeserver", "the homeserver %s does not answer: %v", cfg.Homeserver, err)
		return out
	}
	good("homeserver %s answers (Matrix %s)", cfg.Homeserver, version)
	if s.ClockSkew != nil && skewed(*s.ClockSkew) {
		bad("set the clock of this machine or of the homeserver; nothing is lost meanwhile, but times and the age of messages are wrong", "%s", skewWords(toOperator, *s.ClockSkew))
	}

	acc, err := loadAccount(cfg.dir("account.json"))
	switch {
	case err != nil:
		bad("see there", "%v", err)
		return out
	case acc == nil && cfg.Password == "" && cfg.Token == "":
		bad("set matrix.password or matrix.access_token", "nobody has logged in yet, and there is nothing to log in with")
		return out
	case acc == nil:
		good("not logged in yet: the first start does that and makes a device")
		return out
	}
	return append(out, checkAccount(ctx, cfg, cli, acc, s)...)
}

// errNotMatrix is of an address that has something else than a homeserver. Its text continues a
// sentence that begins with the address.
var errNotMatrix = errors.New("answers, but not as a Matrix homeserver")

// newestVersion asks a server for the newest version of Matrix that it speaks. A server that
// answers without one is errNotMatrix.
func newestVersion(ctx context.Context, cli *mautrix.Client) (string, error) {
	versions, err := cli.Versions(ctx)
	var h mautrix.HTTPError
	switch newest := versions.GetLatest(); {
	case errors.As(err, &h) && h.RespError == nil && h.Response != nil && h.Response.StatusCode < 500:
		return "", errNotMatrix
	case err != nil:
		return "", err
	case newest.Format == mautrix.SpecVersionFormatUnknown:
		return "", errNotMatrix
	default:
		return newest.String(), nil
	}
}

func checkAccount(ctx context.Context, cfg Config, cli *mautrix.Client, acc *account, s *Status) (out []Finding) {
	good := func(format string, args ...any) {
		out = append(out, Finding{OK: true, What: fmt.Sprintf(format, args...)})
	}
	bad := func(remedy, format string, args ...any) {
		out = append(out, Finding{What: fmt.Sprintf(format, args...), Remedy: remedy})
	}
	if strings.HasPrefix(cfg.User, "@") && cfg.User != acc.UserID.String() {
		bad("give each account a data folder of its own", "the data folder belongs to %s, the configuration says %s", acc.UserID, cfg.User)
	}
	cli.UserID, cli.DeviceID, cli.AccessToken = acc.UserID, acc.DeviceID, acc.AccessToken
	if cfg.Token != "" {
		cli.AccessToken = cfg.Token
	}
	me, err := cli.Whoami(ctx)
	switch {
	case errors.Is(err, mautrix.MUnknownToken) && cfg.Password != "":
		good("the access token is no longer valid; the next start logs in again with the password")
		return out
	case errors.Is(err, mautrix.MUnknownToken):
		bad("configure a new matrix.access_token for device "+acc.DeviceID.String()+", or a matrix.password", "the access token is no longer valid")
		return out
	case err != nil:
		bad("try again; if it stays, ask who runs the homeserver", "the homeserver does not say who we are: %v", err)
		return out
	case me.DeviceID != acc.DeviceID:
		bad("use the access token of device "+acc.DeviceID.String()+", or start with an empty data folder", "the access token belongs to device %s, the data folder to %s", me.DeviceID, acc.DeviceID)
	default:
		good("logged in as %s, device %s", me.UserID, me.DeviceID)
	}
	switch device, err := storedDevice(ctx, cfg.DB); {
	case err != nil:
		bad("see whether bot.db is a good database", "the crypto store cannot be read: %v", err)
	case device != acc.DeviceID.String():
		bad("put bot.db and "+cfg.dir("account.json")+" of the same device together", "the crypto store belongs to device %q, the account to %s", device, acc.DeviceID)
	default:
		out = append(out, checkKeys(ctx, cfg))
	}
	for _, name := range []string{"pickle.key", "recovery.key"} {
		switch info, err := os.Stat(cfg.dir(name)); {
		case err != nil:
			bad("put it back from a backup", "%s is not there", cfg.dir(name))
		case info.Mode().Perm()&0o077 != 0:
			bad("chmod 600 "+cfg.dir(name), "%s can be read by others", cfg.dir(name))
		default:
			good("%s is there", cfg.dir(name))
		}
	}
	out = append(out, checkBackup(ctx, cfg, cli))
	return append(out, checkDevices(ctx, cfg, cli, acc, s)...)
}

// checkKeys says by which keys others recognise the bot: its device's and, if they are here, the account's.
// They are read out of the crypto store: the homeserver's word for them would be worth nothing.
func checkKeys(ctx context.Context, cfg Config) Finding {
	var own *crypto.OlmAccount
	kept, err := secretStore(ctx, cfg)
	if err == nil {
		own, err = kept.GetAccount(ctx)
	}
	if err != nil || own == nil {
		return Finding{What: fmt.Sprintf("the crypto store cannot be read: %v", err), Remedy: "see whether " + cfg.dir("pickle.key") + " belongs to bot.db"}
	}
	found := Finding{OK: true, What: "the device's fingerprint is " + Fingerprint(own.SigningKey().String())}
	if s, err := loadSecrets(ctx, cfg); err == nil && s != nil && s.CrossSigning != nil {
		if keys, err := s.CrossSigning.Decode(); err == nil {
			found.What += ", the identity's " + Fingerprint(keys.MasterKey.PublicKey().String())
		}
	}
	return found
}

// checkBackup compares the key backup that is in use here with the server's.
func checkBackup(ctx context.Context, cfg Config, cli *mautrix.Client) Finding {
	kept, err := loadSecrets(ctx, cfg)
	if err != nil {
		return Finding{What: err.Error(), Remedy: "start the bot with recovery.key in its place"}
	}
	if kept == nil || kept.Backup == nil {
		return Finding{What: "message keys are not backed up, so with bot.db old messages would be lost", Remedy: "see that " + cfg.dir("recovery.key") + " is there and start the bot: it makes the backup, or its log says why not"}
	}
	latest, err := cli.GetKeyBackupLatestVersion(ctx)
	switch {
	case errors.Is(err, mautrix.MNotFound):
		return Finding{What: "the key backup is no longer on the homeserver", Remedy: "start the bot: it makes a new one"}
	case err != nil:
		return Finding{What: fmt.Sprintf("the homeserver does not tell about the key backup: %v", err), Remedy: "try again"}
	case latest.Version != kept.Backup.Version:
		return Finding{What: fmt.Sprintf("the key backup was replaced by another client (version %s became %s)", kept.Backup.Version, latest.Version), Remedy: "start the bot: it takes up the new one if recovery.key opens it"}
	}
	out := Finding{OK: true, What: fmt.Sprintf("message keys are backed up (version %s, %d keys)", latest.Version, latest.Count)}
	if n, err := keysOutside(ctx, cfg, kept.Backup.Version.String()); err == nil && n > 0 {
		out.What += fmt.Sprintf(", %d more wait for the running bot", n)
	}
	return out
}

// checkSigned tells whether others see the device as signed.
func checkSigned(keys *mautrix.RespQueryKeys, acc *account) Finding {
	const remedy = "start the bot with matrix.password set, or verify the device in another client of this account"
	device, ok := keys.DeviceKeys[acc.UserID][acc.DeviceID]
	if !ok {
		return Finding{What: fmt.Sprintf("the homeserver holds no keys of device %s", acc.DeviceID), Remedy: "start the bot: it says what to do"}
	}
	signer, ok := keys.SelfSigningKeys[acc.UserID]
	if !ok {
		return Finding{What: "the account has no identity, so other clients warn about the bot's messages", Remedy: remedy}
	}
	if !signedBy(device, acc.UserID, signer.FirstKey()) {
		return Finding{What: fmt.Sprintf("device %s is not cross-signed, so other clients warn about the bot's messages", acc.DeviceID), Remedy: remedy}
	}
	return Finding{OK: true, What: "the device is cross-signed"}
}
