// Package peertest starts peers in tests: registered, logged in and syncing, each with its own folder.
package peertest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/peer"
)

// Patience limits every wait. It is far longer than any event takes, so only a missing event
// exceeds it.
const Patience = 2 * time.Minute

// Start registers localpart on the server, logs in and syncs until the test ends.
func Start(t testing.TB, server *homeserver.Server, localpart string) *peer.Peer {
	t.Helper()
	const password = "a long enough password"
	user, err := server.Register(t.Context(), localpart, password)
	if err != nil {
		t.Fatal(err)
	}
	p, err := peer.Login(t.Context(), peer.Config{
		Homeserver: server.URL, User: user, Password: password,
		DB: filepath.Join(t.TempDir(), localpart+".db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	Run(t, p)
	return p
}

// Run syncs until the test ends, and closes the peer then.
func Run(t testing.TB, p *peer.Peer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	// go: the cleanup below ends it and waits for it.
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", p.UserID(), err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: close: %v", p.UserID(), err)
		}
	})
}

// Next returns the next event that match accepts and skips earlier ones. Without one, the test fails
// and lists the skipped events.
func Next(t testing.TB, p *peer.Peer, match func(peer.Event) bool) peer.Event {
	t.Helper()
	timeout := time.NewTimer(Patience)
	defer timeout.Stop()
	var skipped []peer.Event
	for {
		select {
		case e := <-p.Events():
			if match(e) {
				return e
			}
			skipped = append(skipped, e)
		case <-timeout.C:
			t.Fatalf("%s: no such event within %s; these came: %+v", p.UserID(), Patience, skipped)
		}
	}
}

// Kind returns a match for events of one kind in one room.
func Kind(room string, kind peer.Kind) func(peer.Event) bool {
	return func(e peer.Event) bool { return e.Room == room && e.Kind == kind }
}
