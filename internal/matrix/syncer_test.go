package matrix_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
)

// stumbling panics when the crypto library has something to say about a sender:
// in the middle of the library's work on one event.
type stumbling struct {
	slog.Handler
	over string // user id
}

func (h stumbling) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "matrix library: Failed to decrypt to-device event" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "sender" && a.Value.String() == h.over {
				panic("a fault for a test")
			}
			return true
		})
	}
	return h.Handler.Handle(ctx, r)
}

func (h stumbling) WithAttrs(a []slog.Attr) slog.Handler {
	return stumbling{h.Handler.WithAttrs(a), h.over}
}

// One event among those that bring keys breaks the library: the keys before
// and after it are taken.
// Holds F40.
func TestPanicOverOneKey(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	poison := s.Account("poison", "a long enough password")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID(), friend.UserID())
	room, other := chat(t, s, you, b, true), chat(t, s, friend, b, true)
	b.stop()
	say(t, you, room, "before the poison")
	s.SendToDevice(poison, b.UserID(), "m.room.encrypted", map[string]any{"algorithm": "m.olm.v1.curve25519-aes-sha2", "sender_key": "x", "ciphertext": map[string]any{}})
	say(t, friend, other, "after the poison")
	s.Fault(func(r *matrixtest.Request) bool { // a lost key cannot be asked for
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request")
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
	b = startWith(t, server, dir, echo, func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Log = slog.New(stumbling{cfg.Log.Handler(), poison})
	}, you.UserID(), friend.UserID())
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **before the poison**" {
		t.Errorf("got %+v", e)
	}
	if e := peertest.Next(t, friend, messageIn(other)); e.Body != "echo: **after the poison**" {
		t.Errorf("got %+v", e)
	}
	say(t, you, room, "and now?") // with a key that comes in another sync
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **and now?**" {
		t.Errorf("got %+v", e)
	}
	if !strings.Contains(b.log.String(), "an event could not be handled") {
		t.Error("the fault was not met")
	}
}
