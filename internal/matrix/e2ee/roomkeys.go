package e2ee

import (
	"context"
	"fmt"
	"slices"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto/cryptohelper"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// encrypter encrypts room events for the devices that the device rule admits.
type encrypter struct {
	*cryptohelper.CryptoHelper
	d *Devices
}

// Encrypter returns a helper that encrypts with h. It shares room keys with admitted devices only.
func (d *Devices) Encrypter(h *cryptohelper.CryptoHelper) mautrix.CryptoHelper {
	return encrypter{h, d}
}

type sharingKey struct{} // context key: a room key is being shared

// Encrypt implements mautrix.CryptoHelper.
func (e encrypter) Encrypt(ctx context.Context, room id.RoomID, kind event.Type, content any) (*event.EncryptedEventContent, error) {
	if err := e.d.rotateRoomKey(ctx, room); err != nil {
		return nil, fmt.Errorf("check who has the key of the room: %w", err)
	}
	return e.CryptoHelper.Encrypt(context.WithValue(ctx, sharingKey{}, true), room, kind, content)
}

// rotateRoomKey drops a room's outbound megolm session if the rule now admits other devices. The
// session was shared with those admitted before. Since then a device was signed, or the rule or an
// identity has changed.
func (d *Devices) rotateRoomKey(ctx context.Context, room id.RoomID) error {
	store := d.cfg.Machine.CryptoStore
	session, err := store.GetOutboundGroupSession(ctx, room)
	if err != nil || session == nil || !session.Shared {
		return err
	}
	members, err := d.cfg.Client.StateStore.GetRoomJoinedOrInvitedMembers(ctx, room)
	if err != nil {
		return err
	}
	for _, user := range members {
		if has, err := d.hasIdentity(ctx, user); err != nil || !has {
			if err != nil {
				return err
			}
			continue
		}
		devices, err := store.GetDevices(ctx, user)
		if err != nil {
			return err
		}
		for _, of := range devices {
			withheld, err := d.withheld(ctx, of)
			if err != nil {
				return err
			}
			shared, err := store.IsOutboundGroupSessionShared(ctx, user, of.IdentityKey, session.ID())
			if err != nil {
				return err
			}
			if shared == withheld && of.DeviceID != d.cfg.Client.DeviceID && of.Trust != id.TrustStateBlacklisted {
				return store.RemoveOutboundGroupSession(ctx, room)
			}
		}
	}
	return nil
}

// withheld reports whether a device gets no room keys. After an identity has changed, all devices
// get them until its owner verifies again: if the new identity is false, the real owner must be
// able to read the warning.
func (d *Devices) withheld(ctx context.Context, of *id.Device) (bool, error) {
	if !d.MustBeSigned(of.UserID) {
		return false, nil
	}
	if has, err := d.hasIdentity(ctx, of.UserID); err != nil || !has {
		return false, err
	}
	m := d.cfg.Machine
	if trust, err := m.ResolveTrustContext(ctx, of); err != nil || trust >= id.TrustStateCrossSignedUntrusted {
		return false, err
	}
	keys, err := m.CryptoStore.GetCrossSigningKeys(ctx, of.UserID)
	if err != nil {
		return false, err
	}
	if master := keys[id.XSUsageMaster]; master.Key == master.First {
		return true, nil
	}
	return m.IsUserTrusted(ctx, of.UserID)
}

// GetDevices implements crypto.Store. While a room key is shared, it marks the admitted devices as
// verified: SendKeysMinTrust excludes the others.
func (k *Store) GetDevices(ctx context.Context, user id.UserID) (map[id.DeviceID]*id.Device, error) {
	devices, err := k.SQLCryptoStore.GetDevices(ctx, user)
	if err != nil || ctx.Value(sharingKey{}) == nil {
		return devices, err
	}
	ctx = context.WithValue(ctx, sharingKey{}, nil)
	if devices == nil { // else the machine would fetch them without calling this method again
		lists, err := k.machine.FetchKeys(ctx, []id.UserID{user}, true)
		if err != nil {
			return nil, err
		}
		if devices = lists[user]; devices == nil {
			devices = map[id.DeviceID]*id.Device{}
		}
	}
	for _, d := range devices {
		withheld, err := k.devices.withheld(ctx, d)
		if err != nil {
			return nil, err
		}
		if !withheld && d.Trust != id.TrustStateBlacklisted {
			d.Trust = id.TrustStateVerified
		}
	}
	return devices, nil
}

// deviceListRetry is the delay before a device list is requested again. It applies to a list that
// could not be fetched.
const deviceListRetry = time.Minute

// RefreshLists fetches the outdated device lists of users. A new device that is missing in its
// user's list could not read what is sent.
func (d *Devices) RefreshLists(ctx context.Context, users []id.UserID) error {
	old, err := d.cfg.Machine.CryptoStore.GetOutdatedTrackedUsers(ctx)
	if err != nil {
		return fmt.Errorf("look for lists of devices that have changed: %w", err)
	}
	now := d.cfg.Now()
	d.mu.Lock()
	old = slices.DeleteFunc(old, func(u id.UserID) bool {
		return !slices.Contains(users, u) || now.Sub(d.stale[u]).Abs() < deviceListRetry
	})
	d.mu.Unlock()
	if len(old) == 0 {
		return nil
	}
	lists, err := d.cfg.Machine.FetchKeys(ctx, old, true)
	if err != nil {
		return fmt.Errorf("fetch lists of devices that have changed: %w", err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range old {
		if _, ok := lists[u]; ok {
			delete(d.stale, u)
			continue
		}
		d.stale[u] = now
		d.cfg.Log.Warn("matrix: the device list of a member may be outdated; a new device may not be able to read what is sent",
			"user", u)
	}
	return nil
}
