package matrix

import (
	"context"
	"fmt"
	"slices"

	"maunium.net/go/mautrix/id"

	"reverie/internal/store"
)

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
