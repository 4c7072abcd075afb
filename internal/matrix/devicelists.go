package matrix

import (
	"context"
	"fmt"
	"slices"
	"time"

	"maunium.net/go/mautrix/id"
)

// askDevicesAgain is how long a list of devices that could not be had, because
// its owner's server is away, is not asked for again.
const askDevicesAgain = time.Minute

// devicesChanged notes whose lists of devices are out of date. The crypto
// machine fetches them at once; should that fail, it forgets about it.
func (c *Client) devicesChanged(ctx context.Context, users []id.UserID) error {
	err := c.machine().CryptoStore.MarkTrackedUsersOutdated(ctx, users)
	return doing("note that lists of devices have changed", err)
}

// freshDevices fetches the lists of devices of users that are out of date: a new
// device that is not in its owner's list could not read what is sent.
func (c *Client) freshDevices(ctx context.Context, users []id.UserID) error {
	old, err := c.machine().CryptoStore.GetOutdatedTrackedUsers(ctx)
	if err != nil {
		return fmt.Errorf("look for lists of devices that have changed: %w", err)
	}
	now := c.now()
	c.mu.Lock()
	old = slices.DeleteFunc(old, func(u id.UserID) bool {
		return !slices.Contains(users, u) || now.Sub(c.stale[u]).Abs() < askDevicesAgain
	})
	c.mu.Unlock()
	if len(old) == 0 {
		return nil
	}
	lists, err := c.machine().FetchKeys(ctx, old, true)
	if err != nil {
		return fmt.Errorf("fetch lists of devices that have changed: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range old {
		if _, ok := lists[u]; ok {
			delete(c.stale, u)
			continue
		}
		c.stale[u] = now
		c.log.Warn("matrix: the devices of a member are not known for certain; a new one may not be able to read what is sent", "user", u)
	}
	return nil
}
