package account

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/e2ee"
	"reverie/internal/store"
)

// staleAfter is the number of refused one-time key uploads that prove outdated keys. A single one
// may be an accident.
const staleAfter = 2

// SetStaleKeysAsideAndFail sets outdated keys of this device aside and returns an error: messages to it may
// be unreadable for good. Without outdated keys it does nothing.
func (a *Account) SetStaleKeysAsideAndFail(ctx context.Context) error {
	if a.refusedUploads.Load() < staleAfter {
		return nil
	}
	device := a.login.DeviceID
	const why = "matrix: bot.db was put back from an older copy: the homeserver holds newer keys of device %s, " +
		"and messages to it would be lost. "
	if !a.canLogInAsNewDevice() {
		return fmt.Errorf(why+"Configure matrix.password in place of matrix.access_token and start again: "+
			"the bot then logs in as a new device", device)
	}
	if err := a.setDeviceKeysAside(ctx, device); err != nil {
		return fmt.Errorf(why+"They could not be set aside: %w", device, err)
	}
	return fmt.Errorf(why+"They are set aside, nothing is deleted. Start the bot again: "+
		"it logs in as a new device and verifies that with recovery.key. Log device %s out in another client", device, device)
}

// canLogInAsNewDevice reports whether the bot can log in as a new device on its own.
func (a *Account) canLogInAsNewDevice() bool { return a.cfg.Password != "" && a.cfg.Token == "" }

// setDeviceKeysAside disables the keys of a device. The next login then creates a new device. It deletes
// nothing, and room keys stay in use: they belong to no device.
func (a *Account) setDeviceKeysAside(ctx context.Context, device id.DeviceID) error {
	// The account first: if only this step is done, the next start finds the same device again. With
	// the other order it would miss the keys.
	path := a.cfg.FilePath(fileName)
	aside := fmt.Sprintf("%s.%d", path, time.Now().Unix())
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	err := setKeysAside(context.WithoutCancel(ctx), a.cfg.DB, device.String())
	if err != nil {
		err = errors.Join(err, os.Rename(aside, path))
	}
	return err
}

// ForgetDevice makes the next login with db create a new device. It is for a copy of a database whose
// device may have gone on: with the same Olm sessions, neither could read what the other received. The
// login is not in db; the caller leaves out account.json.
func ForgetDevice(ctx context.Context, db *store.DB) error {
	device, err := e2ee.StoredDevice(ctx, db)
	if err != nil || device == "" {
		return store.Wrap(err, "matrix: look at the crypto store")
	}
	return store.Wrap(setKeysAside(ctx, db, device), "matrix: set the keys of the device aside")
}

// setKeysAside disables the keys of a device in db. The lists of other people's devices are fetched again.
func setKeysAside(ctx context.Context, db *store.DB, device string) error {
	return store.InTx(ctx, db, func(tx *sql.Tx) error {
		for _, table := range []string{"crypto_olm_session", "crypto_megolm_outbound_session", "crypto_account"} {
			err := store.Exec(ctx, tx, `UPDATE `+table+` SET account_id = ? WHERE account_id = ''`, "set aside: "+device)
			if err != nil {
				return err
			}
		}
		return store.Exec(ctx, tx, `UPDATE crypto_tracked_user SET devices_outdated = 1`)
	})
}

// isDeviceKeyMismatch reports whether mautrix refuses the crypto store because of the device's keys. The
// homeserver has other keys of its device then.
func isDeviceKeyMismatch(err error) bool {
	return strings.Contains(err.Error(), "not marked as shared") || strings.Contains(err.Error(), "mismatching identity key")
}

// markKeysUploadedIfOnServer repairs a lost response to the first key upload: the crypto store says
// that its keys are not on the homeserver, but they are. It reports whether they are.
func (a *Account) markKeysUploadedIfOnServer(ctx context.Context) (bool, error) {
	m := a.olmMachine()
	resp, err := a.Client.QueryKeys(ctx, &mautrix.ReqQueryKeys{DeviceKeys: mautrix.DeviceKeysRequest{a.login.UserID: {a.login.DeviceID}}})
	if err != nil {
		return false, err
	}
	there := resp.DeviceKeys[a.login.UserID][a.login.DeviceID].Keys
	own := m.GetAccount()
	if there.GetEd25519(a.login.DeviceID) != own.SigningKey() || there.GetCurve25519(a.login.DeviceID) != own.IdentityKey() {
		return false, nil
	}
	own.Internal.MarkKeysAsPublished()
	own.Shared = true
	return true, m.CryptoStore.PutAccount(ctx, own)
}
