package matrix_test

import (
	"slices"
	"strings"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/session"
)

// plainNotice stands in the notice of a room that is not encrypted.
const plainNotice = "This room is not encrypted"

// noticesIn counts the events of an unencrypted room that hold the words of the notice.
func noticesIn(s *matrixtest.Server, room string) (n int) {
	for _, raw := range s.Events(room) {
		if strings.Contains(string(raw), plainNotice) {
			n++
		}
	}
	return n
}

// Who has an access token of a person opens a new room without encryption. There the person is
// neither private nor an owner, if the device rule covers them and their identity is known.
func TestUnencryptedRoomOfAnotherDevice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		rule     matrix.DeviceRule
		friend   bool // it is no owner's account
		identity bool
		proven   bool
	}{
		{name: "owner", rule: matrix.DevicesOwners, identity: true},
		{name: "owner without an identity", rule: matrix.DevicesOwners, proven: true},
		{name: "owner, any device", rule: matrix.DevicesAny, identity: true, proven: true},
		{name: "friend", rule: matrix.DevicesOwners, friend: true, identity: true, proven: true},
		{name: "friend, signed devices", rule: matrix.DevicesSigned, friend: true, identity: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, server := pretend(t)
			you := account{Peer: person(t, s, "without"), s: s, name: "without"}
			if c.identity {
				you = identified(t, s, "you")
			}
			owner := you.UserID()
			if c.friend {
				owner = s.Account("owner", personPassword)
			}
			b := startWith(t, server, t.TempDir(), echo, rule(c.rule, owner))
			encrypted := chat(t, s, you.Peer, b, true)
			answer(t, you.Peer, b, encrypted, "one") // the bot knows the identity from here on

			other := you.second(t)
			room := create(t, other, peer.Room{Direct: true, Invite: []string{b.UserID()}})
			await(t, s, "the bot does not come", func() bool { return s.Membership(room, b.UserID()) == "join" })
			for _, text := range []string{"!config mode quiet", "what do you know of me?"} {
				say(t, other, room, text)
				if in := b.next(); in.Text != text || in.Private != c.proven || in.Unproven == c.proven {
					t.Errorf("the bot heard %+v", in)
				}
			}
			with, err := b.DirectWith(t.Context(), room)
			if err != nil || (with != "") != c.proven {
				t.Errorf("the room is private with %q, %v", with, err)
			}
			if chosen, err := b.DirectChat(t.Context(), you.UserID()); err != nil || chosen == "" || !c.proven && chosen != encrypted {
				t.Errorf("the direct chat is %q, %v", chosen, err)
			}
			await(t, s, "no answer", func() bool { return strings.Contains(string(slices.Concat(s.Events(room)...)), "echo: **what") })
			if n := noticesIn(s, room); (n == 1) == c.proven || n > 1 {
				t.Errorf("%d notices", n)
			}
		})
	}
}

// In a group that is not encrypted an owner is no owner. Who is none anyway is not told.
func TestUnencryptedGroup(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := identified(t, s, "you"), identified(t, s, "friend")
	b := startWith(t, server, t.TempDir(), echo, rule(matrix.DevicesSigned, you.UserID()))
	answer(t, you.Peer, b, chat(t, s, you.Peer, b, true), "one")
	answer(t, friend.Peer, b, chat(t, s, friend.Peer, b, true), "two")
	group := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}, Join: []string{friend.UserID()}})
	await(t, s, "the bot does not come", func() bool { return s.Membership(group, b.UserID()) == "join" })

	toBot := func(user, text string) string {
		return s.Post(user, group, "m.room.message", map[string]any{
			"msgtype": "m.text", "body": b.UserID() + " " + text, "m.mentions": map[string]any{"user_ids": []string{b.UserID()}},
		})
	}
	asked := toBot(friend.UserID(), "hello")
	b.judges(false, true)
	await(t, s, "no answer", func() bool { return strings.Contains(string(slices.Concat(s.Events(group)...)), "echo: **hello") })
	if n := noticesIn(s, group); n != 0 {
		t.Errorf("%d notices to somebody who is no owner", n)
	}
	toBot(you.UserID(), "!config mode quiet")
	b.judges(false, true)
	await(t, s, "no notice", func() bool { return noticesIn(s, group) == 1 })

	// Nor may the owner's reaction stop what somebody else asked for.
	react := func(user string) {
		s.Post(user, group, "m.reaction", map[string]any{
			"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": asked, "key": "❌"},
		})
	}
	react(you.UserID())
	react(friend.UserID())
	if ch := <-b.changes; ch.Sender != friend.UserID() || ch.Change != session.StopThis || !ch.Unproven {
		t.Errorf("a reaction is taken: %+v", ch)
	}
}

// What waits in the queue while the identity becomes known, or over a restart, is no more than
// it was; and an edit without a proof does not change words that had one.
func TestUnencryptedRoomInTheQueue(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := identified(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, nil, rule(matrix.DevicesOwners, you.UserID()))
	room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Invite: []string{b.UserID()}})
	await(t, s, "the bot does not come", func() bool { return s.Membership(room, b.UserID()) == "join" })
	before := s.Say(you.UserID(), room, "before")
	b.judges(true, false)
	encrypted := chat(t, s, you.Peer, b, true)
	say(t, you.Peer, encrypted, "this is my identity")
	b.judges(true, false)
	after := s.Say(you.UserID(), room, "after")
	b.judges(false, true)
	for _, target := range []string{before, after} {
		s.Post(you.UserID(), room, "m.room.message", map[string]any{
			"msgtype": "m.text", "body": "* edited", "m.new_content": map[string]any{"msgtype": "m.text", "body": "edited"},
			"m.relates_to": map[string]any{"rel_type": "m.replace", "event_id": target},
		})
	}
	if ch := <-b.changes; ch.Target != after || !ch.Unproven || ch.Private {
		t.Errorf("an edit is taken: %+v", ch)
	}

	b.stop()
	b = startWith(t, server, dir, nil, rule(matrix.DevicesAny, you.UserID())) // what came before keeps its mark
	want := map[string]bool{"before": false, "this is my identity": false, "edited": true}
	for range want {
		if in := b.next(); in.Unproven != want[in.Text] {
			t.Errorf("after the restart the bot heard %+v", in)
		} else if _, known := want[in.Text]; !known {
			t.Errorf("after the restart the bot heard %q", in.Text)
		}
	}
	b.stop()
	b = startWith(t, server, dir, nil, rule(matrix.DevicesOwners, you.UserID()))
	for range want {
		if in := b.next(); in.Unproven != (in.Room == room) || in.Private == (in.Room == room) {
			t.Errorf("after the second restart the bot heard %+v", in)
		}
	}
}

// A message that was not encrypted gets no more rights when its room is encrypted afterwards.
func TestRoomIsEncryptedAfterwards(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := identified(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, nil, rule(matrix.DevicesOwners, you.UserID()))
	encrypted := chat(t, s, you.Peer, b, true)
	say(t, you.Peer, encrypted, "this is my identity")
	b.next()
	room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Invite: []string{b.UserID()}})
	await(t, s, "the bot does not come", func() bool { return s.Membership(room, b.UserID()) == "join" })
	s.Say(you.UserID(), room, "in plain text")
	b.next()
	s.SetState(you.UserID(), room, "m.room.encryption", "", map[string]any{"algorithm": "m.megolm.v1.aes-sha2"})
	joined(t, you.Peer, room, b.UserID())
	say(t, you.Peer, room, "encrypted")
	if in := b.next(); in.Text != "encrypted" || !in.Private || in.Unproven {
		t.Errorf("the bot heard %+v", in)
	}
	b.stop()
	b = startWith(t, server, dir, nil, rule(matrix.DevicesOwners, you.UserID()))
	for range 3 {
		if in := b.next(); in.Unproven != (in.Text == "in plain text") || in.Private == (in.Text == "in plain text") {
			t.Errorf("after the restart the bot heard %+v", in)
		}
	}
}
