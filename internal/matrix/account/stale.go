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

	"reverie/internal/store"
)

// staleAfter is how many refused uploads of one-time keys show that the keys
// are out of date; a single one may be an accident.
const staleAfter = 2

// CheckStale fails when the keys of this device are out of date: what others
// send it cannot be relied on to be readable any more, for good.
func (a *Account) CheckStale(ctx context.Context) error {
	if a.refused.Load() < staleAfter {
		return nil
	}
	device := a.login.DeviceID
	const why = "matrix: bot.db was put back from an older copy: the homeserver holds newer keys of device %s, " +
		"and messages to it would be lost. "
	if !a.mayLogInAnew() {
		return fmt.Errorf(why+"Configure matrix.password in place of matrix.access_token and start again: "+
			"the bot then logs in as a new device", device)
	}
	if err := a.setAside(ctx, device); err != nil {
		return fmt.Errorf(why+"They could not be set aside: %w", device, err)
	}
	return fmt.Errorf(why+"They are set aside, nothing is deleted. Start the bot again: "+
		"it logs in as a new device and verifies that with recovery.key. Log device %s out in another client", device, device)
}

// mayLogInAnew tells whether a new device can be made without anybody's help.
func (a *Account) mayLogInAnew() bool { return a.cfg.Password != "" && a.cfg.Token == "" }

// setAside takes the keys of a device out of use, so that the next login makes
// a new one. Nothing is deleted, and message keys stay in use: they belong to no
// device.
func (a *Account) setAside(ctx context.Context, device id.DeviceID) error {
	// The account first: with the keys and without it, the same device would be
	// found once more; the other way round it would be missed.
	path := a.cfg.File(fileName)
	aside := fmt.Sprintf("%s.%d", path, time.Now().Unix())
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	err := store.InTx(context.WithoutCancel(ctx), a.cfg.DB, func(tx *sql.Tx) error {
		for _, table := range []string{"crypto_olm_session", "crypto_megolm_outbound_session", "crypto_account"} {
			if _, err := tx.ExecContext(ctx, `UPDATE `+table+` SET account_id = ? WHERE account_id = ''`,
				"set aside: "+device.String()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, os.Rename(aside, path))
	}
	return nil
}

// foreignKeys tells whether the library refuses the crypto store because the
// homeserver has other keys of its device.
func foreignKeys(err error) bool {
	return strings.Contains(err.Error(), "not marked as shared") || strings.Contains(err.Error(), "mismatching identity key")
}

// published makes up for the lost answer to the very first upload: the crypto
// store says that its keys are not on the homeserver, and they are.
func (a *Account) published(ctx context.Context) (bool, error) {
	m := a.machine()
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
