package peer

import (
	"context"
	"errors"
	"fmt"

	"maunium.net/go/mautrix/id"
)

// ResetIdentity creates a new cross-signing identity for the person and signs this device. Call it
// before Run.
func (p *Peer) ResetIdentity(ctx context.Context, password string) error {
	m := p.crypto.Machine()
	if _, _, err := m.GenerateAndUploadCrossSigningKeysWithPassword(ctx, password, ""); err != nil {
		return fmt.Errorf("make an identity: %w", err)
	}
	if err := errors.Join(m.SignOwnDevice(ctx, m.OwnIdentity()), m.SignOwnMasterKey(ctx)); err != nil {
		return fmt.Errorf("sign this device: %w", err)
	}
	return nil
}

// DeviceID returns the ID of this device.
func (p *Peer) DeviceID() string { return p.client.DeviceID.String() }

// SignDevice signs another device of the person with the identity of ResetIdentity.
func (p *Peer) SignDevice(ctx context.Context, device string) error {
	m := p.crypto.Machine()
	lists, err := m.FetchKeys(ctx, []id.UserID{p.client.UserID}, true)
	if err != nil {
		return fmt.Errorf("sign device %s: %w", device, err)
	}
	d := lists[p.client.UserID][id.DeviceID(device)]
	if d == nil {
		return fmt.Errorf("sign device %s: the homeserver does not list it", device)
	}
	if err := m.SignOwnDevice(ctx, d); err != nil {
		return fmt.Errorf("sign device %s: %w", device, err)
	}
	return nil
}

// Read fetches an encrypted message and decrypts it with this device's keys.
func (p *Peer) Read(ctx context.Context, room, eventID string) (string, error) {
	evt, err := p.client.GetEvent(ctx, id.RoomID(room), id.EventID(eventID))
	if err != nil {
		return "", fmt.Errorf("fetch event %s: %w", eventID, err)
	}
	evt.RoomID = id.RoomID(room)
	if err := evt.Content.ParseRaw(evt.Type); err != nil {
		return "", fmt.Errorf("read event %s: %w", eventID, err)
	}
	plain, err := p.crypto.Decrypt(ctx, evt)
	if err != nil {
		return "", fmt.Errorf("decrypt event %s: %w", eventID, err)
	}
	return plain.Content.AsMessage().Body, nil
}
