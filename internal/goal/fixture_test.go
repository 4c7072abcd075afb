package goal

import (
	"path/filepath"
	"testing"
	"time"

	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const here, there = "!here:example.org", "!there:example.org"

// newGoals returns an empty store whose clock advances by a second per call.
func newGoals(t testing.TB) *Store {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	now := time.Date(2026, 11, 21, 8, 14, 30, 5, time.UTC)
	return NewStore(db, func() time.Time {
		now = now.Add(time.Second)
		return now
	})
}

// in is the room with several people.
func in(room string) trust.Place { return trust.Place{Room: room} }

// asks is a trusted user in the room with several people.
func asks(room, user string) trust.Caller {
	return trust.Caller{Place: trust.Place{Room: room, Person: user}, Integrity: trust.User}
}

// with is the direct chat of a person in a room.
func with(room, person string) trust.Caller {
	return trust.Caller{Place: trust.Place{Room: room, Person: person, Private: true}, Integrity: trust.User}
}
