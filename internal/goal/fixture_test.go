package goal

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/store/storetest"
	"reverie/internal/trust"
)

const here, there = "!here:example.org", "!there:example.org"

// newGoals is an empty store, whose clock goes on by a second with each look.
func newGoals(t testing.TB) *Store {
	t.Helper()
	db := must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	now := time.Date(2026, 11, 21, 8, 14, 30, 5, time.UTC)
	return NewStore(db, func() time.Time {
		now = now.Add(time.Second)
		return now
	})
}

// must is a value that comes without an error.
func must[T any](v T, err error) func(failer) T {
	return func(t failer) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

// failer is a test, or a part of one that rapid makes.
type failer interface {
	Helper()
	Fatal(...any)
}

// noError ends the test after an error.
func noError(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// in is the room among several people.
func in(room string) trust.Place { return trust.Place{Room: room} }

// asks is user, whose words are trusted, asking in the room among several people.
func asks(room, user string) trust.Caller {
	return trust.Caller{Place: trust.Place{Room: room, Person: user}, Integrity: trust.User}
}

// with is the direct chat of a person in a room.
func with(room, person string) trust.Caller {
	return trust.Caller{Place: trust.Place{Room: room, Person: person, Private: true}, Integrity: trust.User}
}

func equal[T comparable](t testing.TB, got, want T, about string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(about+": got %#v, want %#v", append(args, got, want)...)
	}
}

func refused(t testing.TB, err error, why, about string, args ...any) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf(about+": %v, want %q", append(args, err, why)...)
	}
}
