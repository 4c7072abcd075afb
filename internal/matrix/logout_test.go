package matrix_test

import (
	"context"
	"net/http"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// A login that does not help ends the bot with a reason, at once, and leaves all
// it has: with the account back, it goes on where it was.
// Holds F26.
func TestLoggedOutForGood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		end   func(s *matrixtest.Server, bot string) (undo func())
		words []string
	}{
		{"the account is deactivated", func(s *matrixtest.Server, bot string) func() {
			s.Deactivate(bot)
			return func() { s.Reactivate(bot) }
		}, []string{"matrix.password"}},
		{"the account is deactivated, in so many words", func(s *matrixtest.Server, bot string) func() {
			s.RevokeToken(bot)
			return s.Fault(matrixtest.On("login"), matrixtest.Status(http.StatusForbidden, "M_USER_DEACTIVATED")).Remove
		}, []string{"deactivated"}},
		{"the homeserver refuses the account", func(s *matrixtest.Server, bot string) func() {
			return s.Fault(matrixtest.On("sync").By(bot), matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN")).Remove
		}, []string{"refuses this account"}},
		{"the password was changed", func(s *matrixtest.Server, bot string) func() {
			s.Account("reverie", "another long password")
			s.RevokeToken(bot)
			return func() { s.Account("reverie", botPassword) }
		}, []string{"matrix.password"}},
		{"every new token is refused", func(s *matrixtest.Server, bot string) func() {
			return s.Fault(matrixtest.On("sync").By(bot), matrixtest.Status(http.StatusUnauthorized, "M_UNKNOWN_TOKEN")).Remove
		}, []string{"refuses it again"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, server := pretend(t)
			you := person(t, s, "you")
			dir := t.TempDir()
			b := startWith(t, server, dir, nil, hurry, you.UserID()) // hears, and does not handle
			room := chat(t, s, you, b, true)
			open := say(t, you, room, "a question that waits")
			b.next()
			device := b.account().DeviceID
			b.stop()

			db := openDB(t, dir)
			defer db.Close()
			cfg := config(server, dir, db, you.UserID())
			cfg.Hurry()
			client, err := matrix.Open(t.Context(), cfg)
			ok(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
			defer cancel()
			ended := make(chan error, 1)
			// go: it ends by itself, or with ctx.
			go func() {
				ended <- client.Run(ctx, func(context.Context, session.Inbound) error { return nil })
			}()
			await(t, s, "no sync", func() bool { return !client.Status(ctx).LastSync.IsZero() })
			logins := s.Count("login")
			undo := c.end(s, client.UserID())
			wants(t, <-ended, c.words...)
			if n := s.Count("login") - logins; n > 1 {
				t.Errorf("%d logins, want one at most", n)
			}
			if ctx.Err() != nil {
				t.Error("it did not end by itself")
			}
			ok(t, db.Close())
			undo()

			b = startWith(t, server, dir, echo, hurry, you.UserID())
			if in := b.next(); in.ID != open {
				t.Errorf("heard %+v", in)
			}
			hears(t, you, room, "echo: **a question that waits**")
			if now := b.account().DeviceID; now != device {
				t.Errorf("device %s became %s", device, now)
			}
		})
	}
}
