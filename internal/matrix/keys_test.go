package matrix_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// sessions lists the Megolm sessions that somebody has written in a room with,
// in order.
func sessions(t *testing.T, s *matrixtest.Server, room, user string) (list []string) {
	t.Helper()
	for _, e := range eventsIn(s, room, user, "m.room.encrypted") {
		if !slices.Contains(list, e.Content.Session) {
			list = append(list, e.Content.Session)
		}
	}
	return list
}

// reads fails unless everybody can read what the bot says next.
func reads(t *testing.T, b *bot, room, text string, readers ...*peer.Peer) {
	t.Helper()
	b.says(room, session.Outgoing{ID: text, Text: text})
	for _, p := range readers {
		e := peertest.Next(t, p, func(e peer.Event) bool {
			return e.Room == room && e.Sender == b.UserID() && (e.Kind == peer.Message || e.Kind == peer.Undecryptable)
		})
		if e.Kind != peer.Message || e.Body != text || !e.Encrypted {
			t.Errorf("%s sees %+v", p.UserID(), e)
		}
	}
}

// After 100 messages the key changes, on both sides, with nothing set in the
// room: what comes next is read both ways, also after a restart in between.
// Holds F22.
func TestKeyChangesAfterAHundredMessages(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	for i := range 110 {
		if i == 60 {
			b = b.again(echo)
		}
		converse(t, you, b, room, fmt.Sprint("message ", i))
		if t.Failed() {
			t.Fatalf("after %d messages", i)
		}
	}
	for _, user := range []string{b.UserID(), you.UserID()} {
		if n := len(sessions(t, s, room, user)); n != 2 {
			t.Errorf("%s has written 110 messages with %d keys, want 2", user, n)
		}
	}
}

// People come and go: who is there reads the next message, and who has left gets
// no key for it.
// Holds F22.
func TestKeyFollowsTheMembers(t *testing.T) {
	t.Parallel()
	s, you, friend, b, room := party(t, true, nil)
	reads(t, b, room, "for three", you, friend)

	late := person(t, s, "late")
	s.SetState(you.UserID(), room, "m.room.member", late.UserID(), map[string]any{"membership": "invite"})
	peertest.Next(t, late, peertest.Kind(room, peer.Invited))
	ok(t, late.Join(t.Context(), room))
	seen(t, you, b, room)
	reads(t, b, room, "for four", you, friend, late)

	for i, gone := range []string{"leave", "ban"} {
		before := sessions(t, s, room, b.UserID())
		s.SetState(you.UserID(), room, "m.room.member", friend.UserID(), map[string]any{"membership": gone})
		seen(t, you, b, room)
		told := s.Count("sendToDevice")
		reads(t, b, room, fmt.Sprint("without the friend ", i), you, late)
		after := sessions(t, s, room, b.UserID())
		if last := after[len(after)-1]; slices.Contains(before, last) {
			t.Errorf("after a %s the bot writes with the key that the other one has", gone)
		}
		if s.Count("sendToDevice") == told {
			t.Error("nobody got a key")
		}
		// Back again, without having read that: it is not theirs to read.
		s.SetState(you.UserID(), room, "m.room.member", friend.UserID(), map[string]any{"membership": "invite"})
		s.SetState(friend.UserID(), room, "m.room.member", friend.UserID(), map[string]any{"membership": "join"})
		seen(t, you, b, room)
		reads(t, b, room, fmt.Sprint("with the friend again ", i), you, late)
		e := peertest.Next(t, friend, func(e peer.Event) bool {
			return e.Kind == peer.Message && strings.HasSuffix(e.Body, fmt.Sprint(" ", i))
		})
		if e.Body != fmt.Sprint("with the friend again ", i) {
			t.Errorf("the friend reads %+v", e)
		}
	}
}

// seen waits until the bot has worked through all that happened in the room: it
// hears what comes after that.
func seen(t *testing.T, you *peer.Peer, b *bot, room string) {
	t.Helper()
	sayTo(t, you, room, "seen?", b.UserID())
	b.next()
}

// Encryption is switched on while the bot is in the room, at the worst moments:
// not one word of it leaves unencrypted from then on, and all can read it.
// Holds F23.
func TestSwitchedToEncrypted(t *testing.T) {
	t.Parallel()
	encrypt := func(s *matrixtest.Server, you *peer.Peer, room string) {
		s.SetState(you.UserID(), room, "m.room.encryption", "", map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
	}
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot, room string, restart func() *bot) *bot
	}{
		{"while it is down", func(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot, room string, restart func() *bot) *bot {
			b.stop()
			encrypt(s, you, room)
			return restart()
		}},
		{"while it is down, out of sight", func(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot, room string, restart func() *bot) *bot {
			b.stop()
			encrypt(s, you, room)
			for i := range 120 { // more than a sync shows
				s.Post(you.UserID(), room, "m.room.topic", map[string]any{"topic": i})
			}
			return restart()
		}},
		{"with an answer on its way", func(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot, room string, _ func() *bot) *bot {
			hook := s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), matrixtest.Status(500, ""))
			b.says(room, session.Outgoing{ID: "early", Text: "a secret that was to leave before"})
			await(t, s, "it was not tried", func() bool { return hook.Hits() == 1 })
			encrypt(s, you, room)
			e := peertest.Next(t, you, messageIn(room))
			if !e.Encrypted || !strings.Contains(e.Body, "secret") {
				t.Errorf("got %+v", e)
			}
			return b
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, server := pretend(t)
			you, friend := person(t, s, "you"), person(t, s, "friend")
			dir := t.TempDir()
			restart := func() *bot { return startWith(t, server, dir, nil, hurry, you.UserID()) }
			b := restart()
			room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}, Join: []string{friend.UserID()}})
			joined(t, you, room, b.UserID())
			b.says(room, session.Outgoing{ID: "plain", Text: "plain"})
			for _, p := range []*peer.Peer{you, friend} {
				if e := peertest.Next(t, p, messageIn(room)); e.Body != "plain" || e.Encrypted {
					t.Errorf("%s sees %+v", p.UserID(), e)
				}
			}
			b = c.do(t, s, you, b, room, restart)
			b.says(room, session.Outgoing{ID: "next", Text: "a secret"})
			for _, p := range []*peer.Peer{you, friend} {
				e := peertest.Next(t, p, func(e peer.Event) bool { return e.Room == room && e.Body == "a secret" })
				if !e.Encrypted {
					t.Errorf("%s sees %+v", p.UserID(), e)
				}
			}
			onServer(t, you, room, "secret")
		})
	}
}

// An invitation and a question at once: the bot is not even in the room when the
// question is asked, and its first sync of the room comes after that. The
// question is answered, encrypted where the room is, and readable by all.
// Holds F24.
func TestAskedBeforeTheFirstSyncOfTheRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		encrypted bool
		direct    bool
		down      bool
	}{
		{"an encrypted direct chat", true, true, false},
		{"a plain direct chat", false, true, false},
		{"an encrypted room", true, false, false},
		{"an encrypted direct chat, while the bot is down", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, server := pretend(t)
			you, friend := person(t, s, "you"), person(t, s, "friend")
			dir := t.TempDir()
			b := startWith(t, server, dir, echo, hurry, you.UserID())
			await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
			if c.down {
				b.stop()
			}
			release := make(chan struct{})
			joins := s.Fault(matrixtest.On("join").By(b.UserID()), matrixtest.Hold(release))
			r := matrixtest.NewRoom{Direct: c.direct, Encrypted: c.encrypted, Invite: []string{b.UserID()}}
			if !c.direct {
				r.Join = []string{friend.UserID()}
			}
			room := s.Room(you.UserID(), r)
			joined(t, you, room, you.UserID())
			ask := func(text string) {
				t.Helper()
				sayTo(t, you, room, text, b.UserID())
			}
			ask("one secret")
			if c.down {
				b = b.again(echo)
			}
			await(t, s, "the bot does not join", func() bool { return joins.Hits() > 0 })
			ask("two secrets")
			close(release)
			readers := []*peer.Peer{you}
			if !c.direct {
				readers = append(readers, friend)
			}
			for _, p := range readers {
				for _, text := range []string{"one secret", "two secrets"} {
					e := peertest.Next(t, p, func(e peer.Event) bool { return e.Room == room && e.Sender == b.UserID() && e.Kind == peer.Message })
					if e.Body != "echo: **"+text+"**" || e.Encrypted != c.encrypted {
						t.Errorf("%s sees %+v, want the answer to %q", p.UserID(), e, text)
					}
				}
			}
			if c.encrypted {
				onServer(t, you, room, "secret")
			}
		})
	}
}

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
