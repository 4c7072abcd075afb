package e2ee

import (
	"context"
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

// DeviceRule selects the users whose devices must be signed by their cross-signing identity. The
// bot does not act on messages of other devices and sends them no room keys.
type DeviceRule string

// The rules.
const (
	DevicesOwners DeviceRule = "owners" // the bot's owners
	DevicesSigned DeviceRule = "signed" // all users
	DevicesAny    DeviceRule = "any"    // no user
)

// DeviceRules returns the names of the rules.
func DeviceRules() []string {
	return []string{string(DevicesOwners), string(DevicesSigned), string(DevicesAny)}
}

// Devices checks other people's devices by the rule and by their cross-signing signatures.
type Devices struct {
	cfg DevicesConfig

	mu    sync.Mutex
	stale map[id.UserID]time.Time // users whose device list could not be fetched, and when
}

// DevicesConfig configures Devices.
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

// NewDevices returns Devices for cfg.
func NewDevices(cfg DevicesConfig) *Devices {
	return &Devices{cfg: cfg, stale: map[id.UserID]time.Time{}}
}

// fetchTimeout is the timeout for fetching one device list.
const fetchTimeout = 10 * time.Second

// ErrUnsigned is the error for an event from a device that the rule excludes.
var ErrUnsigned = errors.New("the sender's identity has not signed the device")

// MustBeSigned reports whether the rule covers the devices of user. It always covers the bot's own
// account: a device added there would get the key of each room.
func (d *Devices) MustBeSigned(user id.UserID) bool {
	switch d.cfg.Rule {
	case DevicesSigned:
		return true
	case DevicesAny:
		return false
	}
	return user == d.cfg.Client.UserID || slices.Contains(d.cfg.Owners, user.String())
}

// hasIdentity reports whether user has a cross-signing identity. The crypto store never deletes
// its keys, so a homeserver cannot hide an identity that was seen once.
func (d *Devices) hasIdentity(ctx context.Context, user id.UserID) (bool, error) {
	keys, err := d.cfg.Machine.CryptoStore.GetCrossSigningKeys(ctx, user)
	has := keys[id.XSUsageMaster].Key != "" && keys[id.XSUsageSelfSigning].Key != ""
	return has, store.Wrap(err, "look up the identity of %s", user)
}

// Unsigned reports whether the sender's identity has not signed the device of an event. It is
// false for plain text and for a sender without an identity.
func (d *Devices) Unsigned(ctx context.Context, evt *event.Event) (bool, error) {
	signed := evt.Mautrix.TrustState >= id.TrustStateCrossSignedUntrusted
	if d.cfg.Rule == DevicesAny || !evt.Mautrix.WasEncrypted || signed || !d.cfg.Allows(evt.Sender.String()) {
		return false, nil
	}
	return d.hasIdentity(ctx, evt.Sender)
}

// Unproven reports whether nothing proves the device that writes as user in a room: the room is
// not encrypted, the rule covers user's devices, and user has an identity.
func (d *Devices) Unproven(ctx context.Context, encrypted bool, user id.UserID) (bool, error) {
	if encrypted || !d.MustBeSigned(user) {
		return false, nil
	}
	return d.hasIdentity(ctx, user)
}

// Decrypt decrypts an event. If its device seems unsigned, it first fetches the sender's device
// list: the signature may be newer than the list in the crypto store.
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

// ChangedKeys is a new key of an identity or a device. The identity or device was seen with another
// key before.
type ChangedKeys struct{ User, Device, Key string } // Device is empty when it is an identity

// Changed returns the identities and devices of allowed people whose keys have changed.
func (d *Devices) Changed(ctx context.Context, db *store.DB) ([]ChangedKeys, error) {
	changes, err := store.List(ctx, db, func(r store.Row) (ch ChangedKeys, err error) {
		err = r.Scan(&ch.User, &ch.Device, &ch.Key)
		return ch, err
	}, `SELECT user_id, '', key FROM crypto_cross_signing_keys WHERE usage = 'master' AND key <> first_seen_key
		UNION ALL SELECT user_id, device_id, signing_key FROM crypto_device WHERE trust = ? AND NOT deleted ORDER BY 1, 2`,
		id.TrustStateDeviceKeyMismatch)
	changes = slices.DeleteFunc(changes, func(ch ChangedKeys) bool { return !d.cfg.Allows(ch.User) })
	return changes, store.Wrap(err, "look up changed keys")
}
