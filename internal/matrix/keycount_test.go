package matrix_test

import (
	"testing"

	"reverie/internal/matrix/matrixtest"
)

// TestSyncWithoutKeyCount: a sync that does not say how many one-time keys there are says
// nothing about them. The keys that the homeserver gives away stay those that are stored.
func TestSyncWithoutKeyCount(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	s.Fault(matrixtest.On("sync"), rewritten(t, func(body map[string]any) { delete(body, "device_one_time_keys_count") }))
	dir := t.TempDir()
	for i := range 3 {
		b := startWith(t, server, dir, echo, hurry, you.UserID())
		await(t, s, "first sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
		stored, err := b.OneTimeKeys(t.Context())
		ok(t, err)
		if n := s.OneTimeKeys(b.UserID(), b.account().DeviceID); n < 40 || n > 60 || len(stored) != n {
			t.Errorf("start %d: the homeserver has %d one-time keys, and %d are stored", i+1, n, len(stored))
		}
		b.stop()
	}
}
