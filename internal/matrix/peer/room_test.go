package peer_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
)

// Who is invited joins before the one who made the room has read the answers.
func TestJoinedWhileTheRoomIsMade(t *testing.T) {
	for _, endpoint := range []string{"createRoom", "state"} {
		t.Run(endpoint, func(t *testing.T) {
			s := matrixtest.Start(t)
			enter := func(name string) *peer.Peer {
				user := s.Account(name, "a long enough password")
				p, err := peer.Login(t.Context(), peer.Config{Homeserver: s.URL, User: user, Password: "a long enough password", DB: filepath.Join(t.TempDir(), name+".db")})
				if err != nil {
					t.Fatal(err)
				}
				peertest.Run(t, p)
				return p
			}
			you, friend := enter("you"), enter("friend")
			sees := func(room string) {
				ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
				defer cancel()
				if err := you.WaitJoined(ctx, room, friend.UserID()); err != nil {
					t.Error(err)
				}
			}
			join := sync.OnceFunc(func() {
				e := peertest.Next(t, friend, func(e peer.Event) bool { return e.Kind == peer.Invited })
				if err := friend.Join(t.Context(), e.Room); err != nil {
					t.Error(err)
				}
				sees(e.Room)
			})
			s.Fault(matrixtest.On(endpoint).By(you.UserID()), matrixtest.Changed(func(*httptest.ResponseRecorder, *http.Request) { join() }))
			room, err := you.CreateRoom(t.Context(), peer.Room{Encrypted: true, Invite: []string{friend.UserID()}})
			if err != nil {
				t.Fatal(err)
			}
			join()
			sees(room)
			if _, err := you.Say(t.Context(), room, "welcome"); err != nil {
				t.Fatal(err)
			}
			if e := peertest.Next(t, friend, peertest.Kind(room, peer.Message)); e.Body != "welcome" || !e.Encrypted {
				t.Errorf("got %+v", e)
			}
		})
	}
}
