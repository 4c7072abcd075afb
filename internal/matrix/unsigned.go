package matrix

import (
	"context"
	"slices"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/gate"
	"reverie/internal/text"
)

// warnOrRefuseIfDeviceUnsigned handles a message from an unsigned device. Its sender and the owners are
// told once per device. It returns true if the bot must not act on the message.
func (t *intake) warnOrRefuseIfDeviceUnsigned(
	ctx context.Context, b *batch, evt *event.Event, room gate.Room, o gate.Decision,
) (refused bool, err error) {
	if unsigned, err := t.devices.Unsigned(ctx, evt); err != nil || !unsigned {
		return false, err
	}
	refused = t.devices.MustBeSigned(evt.Sender)
	device := evt.Mautrix.TrustSource
	if evt.Mautrix.TrustState != id.TrustStateUnset {
		device = nil // the room key does not prove the sending device
	}
	t.cfg.Log.Warn("matrix: a message comes from a device that its sender's identity has not signed", "room", evt.RoomID, "event", evt.ID,
		"sender", evt.Sender, "device", printableDeviceID(device), "trust", evt.Mautrix.TrustState.String(), "refused", refused)
	if refused { // stored as handled: it must not be answered when the device is signed later
		head, err := t.buildHeadInRoom(ctx, evt, room)
		if err != nil {
			return true, err
		}
		b.In = append(b.In, delivery.Incoming{Event: chat.Message{Head: head}, Past: true})
	}
	switch {
	case !o.Pass && !room.Private(evt.Sender.String()):
	case device != nil:
		err = t.tellOfUnsignedDevice(ctx, b, evt, device, refused)
	case refused:
		t.addUnsignedDeviceRefusal(ctx, b, evt, "matrix.unknown_device")
	}
	return refused, err
}

func printableDeviceID(d *id.Device) string {
	if d == nil {
		return ""
	}
	return text.Clip(text.Clean(d.DeviceID.String()), 40)
}

// addUnsignedDeviceRefusal tells the sender that the bot does not act on a message.
func (t *intake) addUnsignedDeviceRefusal(ctx context.Context, b *batch, evt *event.Event, key string, fill ...string) {
	room, event := evt.RoomID.String(), evt.ID.String()
	b.Notices = append(b.Notices, delivery.Notice{ID: "unsigned-" + event, Room: room, ReplyTo: event,
		Text: t.cfg.Text(ctx, room, key, fill...)})
}

// tellOfUnsignedDevice tells the sender, and the owners in their direct chats, about an unsigned
// device. For a later message the sender is told only that it is refused.
func (t *intake) tellOfUnsignedDevice(ctx context.Context, b *batch, evt *event.Event, device *id.Device, refused bool) error {
	name := "unsigned-" + device.UserID.String() + "-" + device.SigningKey.String()
	text := func(room, key string) string {
		out := t.cfg.Text(ctx, room, key, "person", evt.Sender.String(), "device", printableDeviceID(device))
		if refused {
			out += " " + t.cfg.Text(ctx, room, "matrix.unsigned_ignored")
		}
		return out
	}
	by, err := t.findEventNoticeRepliesTo(ctx, b, name)
	if err != nil {
		return err
	}
	room := evt.RoomID.String()
	switch {
	case by == "":
		b.Notices = append(b.Notices, delivery.Notice{ID: name, Room: room, ReplyTo: evt.ID.String(),
			Text: text(room, "matrix.unsigned_own")})
	case by != evt.ID.String() && refused:
		t.addUnsignedDeviceRefusal(ctx, b, evt, "matrix.unsigned_refused", "device", printableDeviceID(device))
	}
	for _, owner := range t.cfg.Owners {
		chat, err := t.rooms.DirectChat(ctx, owner)
		if err != nil {
			return err
		}
		key := "matrix.unsigned_other"
		if owner == evt.Sender.String() {
			key = "matrix.unsigned_own"
		}
		if chat != "" && (chat != room || owner != evt.Sender.String()) {
			b.Notices = append(b.Notices, delivery.Notice{ID: name + "-" + chat, Room: chat, Text: text(chat, key)})
		}
	}
	return nil
}

// addUnencryptedRoomNotice tells an unencrypted room once what the bot does not do there. It does so
// only if the sender could do more in an encrypted room.
func (t *intake) addUnencryptedRoomNotice(ctx context.Context, b *batch, m chat.Message, room gate.Room) {
	if m.Unproven && (room.DirectPair() && room.With == m.Sender || slices.Contains(t.cfg.Owners, m.Sender)) {
		b.Notices = append(b.Notices, delivery.Notice{ID: "unencrypted-" + m.Room, Room: m.Room,
			Text: t.cfg.Text(ctx, m.Room, "matrix.unencrypted")})
	}
}

// findEventNoticeRepliesTo returns the event that the notice id replies to. Without such a notice it returns
// "".
func (t *intake) findEventNoticeRepliesTo(ctx context.Context, b *batch, id string) (event string, err error) {
	if at := slices.IndexFunc(b.Notices, func(n delivery.Notice) bool { return n.ID == id }); at >= 0 {
		return b.Notices[at].ReplyTo, nil
	}
	return t.outbox.ReplyTarget(ctx, id)
}

// tellOwnersOfChangedKeys tells the owners once when an allowed user's identity or device has new keys.
// Messages are still answered: most people who reset their identity have lost their recovery key.
func (t *intake) tellOwnersOfChangedKeys(ctx context.Context, b *batch) error {
	changes, err := t.devices.Changed(ctx, t.cfg.DB)
	if err != nil || len(changes) == 0 {
		return err
	}
	for _, owner := range t.cfg.Owners {
		chat, err := t.rooms.DirectChat(ctx, owner)
		if err != nil {
			return err
		}
		for _, ch := range changes {
			key := "matrix.new_identity"
			if ch.Device != "" {
				key = "matrix.new_device_keys"
			}
			text := t.cfg.Text(ctx, chat, key, "person", ch.User, "device", ch.Device)
			t.cfg.Log.Warn("matrix: keys have changed", "user", ch.User, "device", ch.Device, "told", chat != "")
			if chat != "" {
				b.Notices = append(b.Notices, delivery.Notice{ID: "keys-" + chat + "-" + ch.User + "-" + ch.Device + "-" + ch.Key,
					Room: chat, Text: text})
			}
		}
	}
	return nil
}
