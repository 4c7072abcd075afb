package e2ee

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/store"
)

// DeviceRule says whose devices must be signed by their owner's cross-signing identity.
// The bot does not act on what other devices write and sends them no room keys.
type DeviceRule string

// The rules.
const (
	DevicesOwners DeviceRule = "owners" // those of the bot's owners
	DevicesSigned DeviceRule = "signed" // those of everybody
	DevicesAny    DeviceRule = "any"    // nobody's
)

// DeviceRules are the names of the rules.
func DeviceRules() []string {
	return []string{string(DevicesOwners), string(DevicesSigned), string(DevicesAny)}
}

// Devices judges other people's devices by the rule, and by the signatures of their owners.
type Devices struct {
	cfg DevicesConfig

	mu    sync.Mutex
	stale map[id.UserID]time.Time // whose devices could not be had, and when that was asked
}

// DevicesConfig is what Devices need.
type DevicesConfig struct {
	Rule    DeviceRule
	Owners  []string               // of the bot
	Allows  func(user string) bool // whether user may talk to us
	Client  *mautrix.Client
	Machine *crypto.OlmMachine
	Decrypt func(context.Context, *event.Event) (*event.Event, error)
	Log     *slog.Logger
	Now     func() time.Time
}

// NewDevices returns the judge of devices.
func NewDevices(cfg DevicesConfig) *Devices {
	return &Devices{cfg: cfg, stale: map[id.UserID]time.Time{}}
}

// fetchTimeout is how long one list of devices may take.
const fetchTimeout = 10 * time.Second

// ErrUnsigned is of an event from a device that the rule excludes.
var ErrUnsigned = errors.New("the sender's identity has not signed the device")

// MustBeSigned tells whether the rule covers the devices of a user. The bot's own account
// is covered: a device that somebody adds to it would get the key of each room.
func (d *Devices) MustBeSigned(user id.UserID) bool {
	switch d.cfg.Rule {
	case DevicesSigned:
		return true
	case DevicesAny:
		return false
	}
	return user == d.cfg.Client.UserID || slices.Contains(d.cfg.Owners, user.String())
}

// hasIdentity tells whether a user has a cross-signing identity. The crypto store keeps
// keys for good, so that a homeserver cannot take a known identity away.
func (d *Devices) hasIdentity(ctx context.Context, user id.UserID) (bool, error) {
	keys, err := d.cfg.Machine.CryptoStore.GetCrossSigningKeys(ctx, user)
	if err != nil {
		return false, fmt.Errorf("look up the identity of %s: %w", user, err)
	}
	return keys[id.XSUsageMaster].Key != "" && keys[id.XSUsageSelfSigning].Key != "", nil
}

// Unsigned tells whether an event comes from no device that its sender's identity has
// signed. It is false where nothing can be said: in plain text, and without an identity.
func (d *Devices) Unsigned(ctx context.Context, evt *event.Event) (bool, error) {
	signed := evt.Mautrix.TrustState >= id.TrustStateCrossSignedUntrusted
	if d.cfg.Rule == DevicesAny || !evt.Mautrix.WasEncrypted || signed || !d.cfg.Allows(evt.Sender.String()) {
		return false, nil
	}
	return d.hasIdentity(ctx, evt.Sender)
}

// Unproven tells whether nothing proves which device writes in a room as user: the room is not
// encrypted, and the rule covers the devices of user, who has an identity.
func (d *Devices) Unproven(ctx context.Context, encrypted bool, user id.UserID) (bool, error) {
	if encrypted || !d.MustBeSigned(user) {
		return false, nil
	}
	return d.hasIdentity(ctx, user)
}

// Decrypt decrypts an event. When its device seems to be unsigned, it fetches the sender's
// device list first: the signature may be newer than the list in the crypto store.
func (d *Devices) Decrypt(ctx context.Context, evt *event.Event) (*event.Event, error) {
	plain, err := d.cfg.Decrypt(ctx, evt)
	if err != nil {
		return nil, err
	}
	if unsigned, err := d.Unsigned(ctx, plain); err != nil || !unsigned {
		return plain, err
	}
	fetch, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	if _, err := d.cfg.Machine.FetchKeys(fetch, []id.UserID{evt.Sender}, true); err != nil {
		return nil, fmt.Errorf("fetch the device list of the sender: %w", err)
	}
	return d.cfg.Decrypt(ctx, evt)
}

// ChangedKeys are those of an identity or a device that are not what was seen first.
type ChangedKeys struct{ User, Device, Key string } // Device is empty when it is an identity

// Changed lists the identities and devices of people we listen to whose keys have changed.
func (d *Devices) Changed(ctx context.Context, db *sql.DB) ([]ChangedKeys, error) {
	changes, err := store.List(ctx, db, func(r store.Row) (ch ChangedKeys, err error) {
		err = r.Scan(&ch.User, &ch.Device, &ch.Key)
		return ch, err
	}, `SELECT user_id, '', key FROM crypto_cross_signing_keys WHERE usage = 'master' AND key <> first_seen_key
		UNION ALL SELECT user_id, device_id, signing_key FROM crypto_device WHERE trust = ? AND NOT deleted ORDER BY 1, 2`,
		id.TrustStateDeviceKeyMismatch)
	if err != nil {
		return nil, fmt.Errorf("look up changed keys: %w", err)
	}
	return slices.DeleteFunc(changes, func(ch ChangedKeys) bool { return !d.cfg.Allows(ch.User) }), nil
}
