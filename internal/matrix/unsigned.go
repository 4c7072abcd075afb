package matrix

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/store"
	"reverie/internal/text"
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

// errUnsigned is of an event from a device that the rule excludes.
var errUnsigned = errors.New("the sender's identity has not signed the device")

// mustBeSigned tells whether the rule covers the devices of a user. The bot's own account
// is covered: a device that somebody adds to it would get the key of each room.
func (c *Client) mustBeSigned(user id.UserID) bool {
	switch c.cfg.Devices {
	case DevicesSigned:
		return true
	case DevicesAny:
		return false
	}
	return user == c.cli.UserID || slices.Contains(c.cfg.Owners, user.String())
}

// hasIdentity tells whether a user has a cross-signing identity. The crypto store keeps
// keys for good, so that a homeserver cannot take a known identity away.
func (c *Client) hasIdentity(ctx context.Context, user id.UserID) (bool, error) {
	keys, err := c.machine().CryptoStore.GetCrossSigningKeys(ctx, user)
	if err != nil {
		return false, fmt.Errorf("look up the identity of %s: %w", user, err)
	}
	return keys[id.XSUsageMaster].Key != "" && keys[id.XSUsageSelfSigning].Key != "", nil
}

// unsigned tells whether an event comes from no device that its sender's identity has
// signed. It is false where nothing can be said: in plain text, and without an identity.
func (c *Client) unsigned(ctx context.Context, evt *event.Event) (bool, error) {
	signed := evt.Mautrix.TrustState >= id.TrustStateCrossSignedUntrusted
	if c.cfg.Devices == DevicesAny || !evt.Mautrix.WasEncrypted || signed || !c.gate.allows(evt.Sender.String()) {
		return false, nil
	}
	return c.hasIdentity(ctx, evt.Sender)
}

// unproven tells whether nothing proves which device writes in a room as user: the room is not
// encrypted, and the rule covers the devices of user, who has an identity.
func (c *Client) unproven(ctx context.Context, room roomFacts, user id.UserID) (bool, error) {
	if room.encrypted || !c.mustBeSigned(user) {
		return false, nil
	}
	return c.hasIdentity(ctx, user)
}

// decrypt decrypts an event. When its device seems to be unsigned, it fetches the sender's
// device list first: the signature may be newer than the list in the crypto store.
func (c *Client) decrypt(ctx context.Context, evt *event.Event) (*event.Event, error) {
	plain, err := c.crypto.Decrypt(ctx, evt)
	if err != nil {
		return nil, err
	}
	if unsigned, err := c.unsigned(ctx, plain); err != nil || !unsigned {
		return plain, err
	}
	fetch, cancel := context.WithTimeout(ctx, smallTimeout)
	defer cancel()
	if _, err := c.machine().FetchKeys(fetch, []id.UserID{evt.Sender}, true); err != nil {
		return nil, fmt.Errorf("fetch the device list of the sender: %w", err)
	}
	return c.crypto.Decrypt(ctx, evt)
}

// fromUnsigned deals with a message of an unsigned device: its sender and the owners are
// told once for each device. It returns true when the bot must not act on the message.
func (c *Client) fromUnsigned(ctx context.Context, b *batch, evt *event.Event, room roomFacts, o opinion) (refused bool, err error) {
	if unsigned, err := c.unsigned(ctx, evt); err != nil || !unsigned {
		return false, err
	}
	refused = c.mustBeSigned(evt.Sender)
	device := evt.Mautrix.TrustSource
	if evt.Mautrix.TrustState != id.TrustStateUnset {
		device = nil // the room key does not prove which device has written this
	}
	c.log.Warn("matrix: a message comes from a device that its sender's identity has not signed", "room", evt.RoomID, "event", evt.ID,
		"sender", evt.Sender, "device", deviceID(device), "trust", evt.Mautrix.TrustState.String(), "refused", refused)
	if refused { // as done: it must not be answered when the device is signed later
		in, err := c.inbound(ctx, evt, room)
		if err != nil {
			return true, err
		}
		b.in = append(b.in, incoming{Inbound: in, past: true})
	}
	switch {
	case !o.pass && !room.private(evt.Sender.String()):
	case device != nil:
		err = c.tellUnsigned(ctx, b, evt, device, refused)
	case refused:
		c.refuse(ctx, b, evt, "matrix.unknown_device")
	}
	return refused, err
}

func deviceID(d *id.Device) string {
	if d == nil {
		return ""
	}
	return text.Clip(text.Clean(d.DeviceID.String()), 40)
}

// refuse answers a message that the bot does not act on.
func (c *Client) refuse(ctx context.Context, b *batch, evt *event.Event, key string, fill ...string) {
	room, event := evt.RoomID.String(), evt.ID.String()
	b.notices = append(b.notices, notice{id: "unsigned-" + event, room: room, replyTo: event, text: c.cfg.Text(ctx, room, key, fill...)})
}

// tellUnsigned tells the sender in the room and the owners in their direct chats of an
// unsigned device. The sender of a later message is told only that it is refused.
func (c *Client) tellUnsigned(ctx context.Context, b *batch, evt *event.Event, device *id.Device, refused bool) error {
	name := "unsigned-" + device.UserID.String() + "-" + device.SigningKey.String()
	text := func(room, key string) string {
		said := c.cfg.Text(ctx, room, key, "person", evt.Sender.String(), "device", deviceID(device))
		if refused {
			said += " " + c.cfg.Text(ctx, room, "matrix.unsigned_ignored")
		}
		return said
	}
	by, err := c.q.toldBy(ctx, b, name)
	if err != nil {
		return err
	}
	room := evt.RoomID.String()
	switch {
	case by == "":
		b.notices = append(b.notices, notice{id: name, room: room, replyTo: evt.ID.String(), text: text(room, "matrix.unsigned_own")})
	case by != evt.ID.String() && refused:
		c.refuse(ctx, b, evt, "matrix.unsigned_refused", "device", deviceID(device))
	}
	for _, owner := range c.cfg.Owners {
		chat, err := c.DirectChat(ctx, owner)
		if err != nil {
			return err
		}
		key := "matrix.unsigned_other"
		if owner == evt.Sender.String() {
			key = "matrix.unsigned_own"
		}
		if chat != "" && (chat != room || owner != evt.Sender.String()) {
			b.notices = append(b.notices, notice{id: name + "-" + chat, room: chat, text: text(chat, key)})
		}
	}
	return nil
}

// tellUnproven tells in a room that is not encrypted what the bot does not do there, once. It is
// told to those for whom that is something else than in an encrypted room.
func (c *Client) tellUnproven(ctx context.Context, b *batch, m chat.Inbound, room roomFacts) {
	if m.Unproven && (room.pair() && room.with == m.Sender || slices.Contains(c.cfg.Owners, m.Sender)) {
		b.notices = append(b.notices, notice{id: "unencrypted-" + m.Room, room: m.Room, text: c.cfg.Text(ctx, m.Room, "matrix.unencrypted")})
	}
}

// toldBy is the message that the notice named id answers; empty if there is no such notice.
func (q *queue) toldBy(ctx context.Context, b *batch, id string) (event string, err error) {
	if at := slices.IndexFunc(b.notices, func(n notice) bool { return n.id == id }); at >= 0 {
		return b.notices[at].replyTo, nil
	}
	if event, err = value[string](ctx, q.db, `SELECT reply_to FROM outbox WHERE id = ?`, id); err != nil {
		return "", fmt.Errorf("look up a notice: %w", err)
	}
	return event, nil
}

// changedKeys tells the owners when the identity of somebody we listen to is
// another one than we saw first, or when a device shows other keys than before.
// Talking goes on: most who reset an identity have lost their recovery key. Each
// change is told once.
func (c *Client) changedKeys(ctx context.Context, b *batch) error {
	type change struct{ user, device, key string }
	changes, err := store.List(ctx, c.q.db, func(r store.Row) (ch change, err error) {
		err = r.Scan(&ch.user, &ch.device, &ch.key)
		return ch, err
	}, `SELECT user_id, '', key FROM crypto_cross_signing_keys WHERE usage = 'master' AND key <> first_seen_key
		UNION ALL SELECT user_id, device_id, signing_key FROM crypto_device WHERE trust = ? AND NOT deleted ORDER BY 1, 2`, id.TrustStateDeviceKeyMismatch)
	if err != nil {
		return fmt.Errorf("look up changed keys: %w", err)
	}
	changes = slices.DeleteFunc(changes, func(ch change) bool { return !c.gate.allows(ch.user) })
	if len(changes) == 0 {
		return nil
	}
	for _, owner := range c.cfg.Owners {
		chat, err := c.DirectChat(ctx, owner)
		if err != nil {
			return err
		}
		for _, ch := range changes {
			key := "matrix.new_identity"
			if ch.device != "" {
				key = "matrix.new_device_keys"
			}
			text := c.cfg.Text(ctx, chat, key, "person", ch.user, "device", ch.device)
			c.log.Warn("matrix: keys have changed", "user", ch.user, "device", ch.device, "told", chat != "")
			if chat != "" {
				b.notices = append(b.notices, notice{id: "keys-" + chat + "-" + ch.user + "-" + ch.device + "-" + ch.key, room: chat, text: text})
			}
		}
	}
	return nil
}
