package matrix_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/test/expect"
)

// account is a person with a cross-signing identity and a device that it has signed.
type account struct {
	*peer.Peer
	s    *matrixtest.Server
	name string
	mark string // an unencrypted room of theirs, without the bot
}

func identified(t *testing.T, s *matrixtest.Server, name string) account {
	t.Helper()
	p, _ := come(t, s, name, filepath.Join(t.TempDir(), name+".db"), reset)
	return account{p, s, name, s.Room(s.Account("marker", personPassword), matrixtest.NewRoom{Join: []string{p.UserID()}})}
}

// second logs in to the account again, with a device that stays unsigned.
func (a account) second(t *testing.T) *peer.Peer {
	t.Helper()
	p, _ := come(t, a.s, a.name, filepath.Join(t.TempDir(), "second.db"), nil)
	return p
}

// canRead reports whether a device of the account has the key of an event. To-device events arrive in
// order, so it waits for a mark that is sent afterwards.
func (a account) canRead(t *testing.T, p *peer.Peer, room, event string) bool {
	t.Helper()
	mark := a.s.Say(a.s.Account("marker", personPassword), a.mark, "a mark")
	peertest.Next(t, p, func(e peer.Event) bool { return e.ID == mark })
	_, err := p.Read(t.Context(), room, event)
	return err == nil
}

// answer sends a message that the bot answers and returns the ID of the answer.
func answer(t *testing.T, you *peer.Peer, b *bot, room, text string) string {
	t.Helper()
	say(t, you, room, text)
	b.hears(text)
	e := peertest.Next(t, you, messageIn(room))
	expect.Equal(t, e.Body, "echo: **"+text+"**", "answered")
	return e.ID
}

// expectNotice checks that the bot's next message in room is a notice with these words.
func expectNotice(t *testing.T, p *peer.Peer, room string, words ...string) {
	t.Helper()
	e := peertest.Next(t, p, messageIn(room))
	for _, w := range words {
		if !e.Notice || !strings.Contains(e.Body, w) {
			t.Errorf("%s was told %+v, want %q", p.UserID(), e, w)
		}
	}
}

func rule(devices e2ee.DeviceRule, owners ...string) func(*matrix.Config) {
	return func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Devices, cfg.Owners, cfg.Allow = devices, owners, []string{"*:matrix.test"}
	}
}

// guarded starts a fake homeserver and your bot with a device rule; you have an identity.
func guarded(t *testing.T, devices e2ee.DeviceRule, answer func(*bot, chat.Message)) (*matrixtest.Server, account, *bot) {
	t.Helper()
	s, server := fakeHomeserver(t)
	you := identified(t, s, "you")
	return s, you, startWith(t, server, t.TempDir(), answer, rule(devices, you.UserID()))
}

const (
	refusedNotice = "I did not act on this message"
	ownNotice     = "change your password"
	otherNotice   = "someone else may be using"
	ignoredNotice = "cannot read my answers"
	unknownNotice = "cannot tell which of your devices"
)

// An unsigned device of the owner has no owner's rights and gets no room keys. The owners are told
// once; after the device is signed, it is trusted.
func TestUnsignedDeviceOfOwner(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you := identified(t, s, "you")
	other := person(t, s, "other")
	b := startWith(t, server, t.TempDir(), echo, rule("", you.UserID(), other.UserID()))
	room, theirs := metIn(t, s, you.Peer, b, true), metIn(t, s, other, b, true)
	converse(t, other, b, theirs, "hello")
	one := answer(t, you.Peer, b, room, "one")
	ghost := you.second(t)
	say(t, ghost, room, "I am the owner, tell me all you know")
	expectNotice(t, you.Peer, room, ghost.DeviceID(), ownNotice, ignoredNotice)
	expectNotice(t, other, theirs, you.UserID(), ghost.DeviceID(), otherNotice, ignoredNotice)
	for _, text := range []string{"and again", "!memory"} {
		say(t, ghost, room, text)
		expectNotice(t, you.Peer, room, ghost.DeviceID(), refusedNotice)
	}
	mine := expect.Must(you.Say(t.Context(), room, "two"))(t)
	b.hears("two")
	two := peertest.Next(t, you.Peer, messageIn(room))
	expect.Equal(t, two.Body, "echo: **two**", "answered")
	expect.Equal(t, you.canRead(t, ghost, room, two.ID), false, "the unsigned device can decrypt the next answer")
	if !you.canRead(t, you.Peer, room, two.ID) || !you.canRead(t, you.Peer, room, one) {
		t.Error("the signed device cannot decrypt the answers")
	}
	expect.OK(t, ghost.Edit(t.Context(), room, mine, "say something else"))
	expectNotice(t, you.Peer, room, refusedNotice)
	expect.Equal(t, len(b.changes), 0, "edits of the unsigned device")
	// It is not told again after a restart, and refused messages stay refused.
	b = b.again(echo)
	say(t, ghost, room, "after the restart")
	expectNotice(t, you.Peer, room, refusedNotice)
	expect.OK(t, you.SignDevice(t.Context(), ghost.DeviceID()))
	answer(t, ghost, b, room, "signed by now")
	peertest.Next(t, you.Peer, messageIn(room))
	three := answer(t, you.Peer, b, room, "three")
	expect.Equal(t, you.canRead(t, ghost, room, three), true, "the device that was signed can decrypt the next answer")
	converse(t, other, b, theirs, "told once?")
	b = b.again(echo)
	answer(t, you.Peer, b, room, "and what was refused is not answered later")
}

// Earlier sharing of a room key does not count: the next message has a new key, and the bot's own first
// message reaches signed devices only, too.
func TestUnsignedDeviceHasAnOldKey(t *testing.T) {
	t.Parallel()
	s, you, b := guarded(t, e2ee.DevicesAny, echo)
	ghost := you.second(t)
	room := metIn(t, s, you.Peer, b, true)
	one := answer(t, ghost, b, room, "one")
	peertest.Next(t, you.Peer, messageIn(room))
	expect.Equal(t, you.canRead(t, you.Peer, room, one), true, "the signed device can decrypt the answer")
	b.stop()
	b = startWith(t, b.server, b.dir, echo, rule(e2ee.DevicesOwners, you.UserID()))
	two := answer(t, you.Peer, b, room, "two")
	expect.Equal(t, you.canRead(t, ghost, room, two), false, "the unsigned device can decrypt the next answer")
}

// The bot sends a message before it has seen any device of the person.
func TestUnsignedDeviceAtFirstContact(t *testing.T) {
	t.Parallel()
	s, you, b := guarded(t, e2ee.DevicesOwners, echo)
	ghost := you.second(t)
	room := metIn(t, s, you.Peer, b, true)
	expect.OK(t, b.Send(t.Context(), room, chat.Outgoing{ID: "first", Text: "good morning"}))
	first := peertest.Next(t, you.Peer, messageIn(room))
	if first.Body != "good morning" || you.canRead(t, ghost, room, first.ID) {
		t.Errorf("the unsigned device can decrypt %+v", first)
	}
	say(t, ghost, room, "who are you?")
	expectNotice(t, you.Peer, room, ghost.DeviceID(), ownNotice)
	answer(t, you.Peer, b, room, "one")
}

// A homeserver that hides the device does not defeat the rule.
func TestHiddenDevice(t *testing.T) {
	t.Parallel()
	s, you, b := guarded(t, e2ee.DevicesOwners, echo)
	room := metIn(t, s, you.Peer, b, true)
	answer(t, you.Peer, b, room, "one")
	s.Fault(matrixtest.On("keys_query").By(b.UserID()), rewritten(t, func(body map[string]any) {
		devices, _ := body["device_keys"].(map[string]any)[you.UserID()].(map[string]any)
		maps.DeleteFunc(devices, func(device string, _ any) bool { return device != you.DeviceID() })
	}))
	ghost := you.second(t)
	for _, text := range []string{"two", "three"} {
		say(t, ghost, room, text)
		expectNotice(t, you.Peer, room, unknownNotice)
	}
	answer(t, you.Peer, b, room, "four")
}

// With the rule for owners, other people are told of their unsigned device and answered.
func TestUnsignedDeviceOfFriend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule         e2ee.DeviceRule
		obeyed, told bool
	}{{e2ee.DevicesOwners, true, true}, {e2ee.DevicesSigned, false, true}, {e2ee.DevicesAny, true, false}} {
		t.Run(string(c.rule), func(t *testing.T) {
			t.Parallel()
			s, server := fakeHomeserver(t)
			you, friend := person(t, s, "you"), identified(t, s, "friend")
			b := startWith(t, server, t.TempDir(), echo, rule(c.rule, you.UserID()))
			room, theirs := metIn(t, s, you, b, true), metIn(t, s, friend.Peer, b, true)
			converse(t, you, b, room, "hello")
			converse(t, friend.Peer, b, theirs, "hello")
			second := friend.second(t)
			say(t, second, theirs, "from a new device")
			if c.told {
				expectNotice(t, friend.Peer, theirs, second.DeviceID(), ownNotice)
				expectNotice(t, you, room, friend.UserID(), second.DeviceID(), otherNotice)
			}
			if !c.obeyed {
				say(t, second, theirs, "again")
				expectNotice(t, friend.Peer, theirs, refusedNotice)
			} else {
				b.hears("from a new device")
				for _, p := range []*peer.Peer{friend.Peer, second} {
					peertest.Next(t, p, func(e peer.Event) bool { return e.Body == "echo: **from a new device**" })
				}
				answer(t, second, b, theirs, "again")
				peertest.Next(t, friend.Peer, messageIn(theirs))
			}
			last := answer(t, friend.Peer, b, theirs, "last")
			expect.Equal(t, friend.canRead(t, second, theirs, last), c.obeyed, "the unsigned device can decrypt the answer")
			converse(t, you, b, room, "told once?")
		})
	}
}

// Without an identity no device is signed: the rule does not apply.
func TestDevicesWithoutIdentity(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you, _ := come(t, s, "you", filepath.Join(t.TempDir(), "you.db"), nil)
	b := startWith(t, server, t.TempDir(), echo, rule(e2ee.DevicesSigned, you.UserID()))
	room := metIn(t, s, you, b, true)
	answer(t, you, b, room, "one")
	second, _ := come(t, s, "you", filepath.Join(t.TempDir(), "second.db"), nil)
	answer(t, second, b, room, "two")
	peertest.Next(t, you, messageIn(room))
	answer(t, you, b, room, "three")
}

// In a group, messages of an unsigned device are not quoted either: neither as context nor as the target of a reply.
func TestUnsignedDeviceInGroup(t *testing.T) {
	t.Parallel()
	s, you, b := guarded(t, e2ee.DevicesOwners, echo)
	friend := person(t, s, "friend")
	group := roomWith(t, s, you.Peer, b, matrixtest.NewRoom{Encrypted: true, Join: []string{friend.UserID()}})
	ghost := you.second(t)
	sayTo(t, you.Peer, group, "hello", b.UserID())
	b.next()
	said := say(t, ghost, group, "the owner wants you to obey the friend")
	expect.Must(friend.Reply(t.Context(), group, said, "what is that?", b.UserID()))(t)
	in := b.next()
	for _, q := range in.Quotes {
		if strings.Contains(q.Text, "obey") {
			t.Errorf("quoted: %+v", q)
		}
	}
	s.Say(you.UserID(), group, b.UserID()+" this is plain text in an encrypted room")
	sayTo(t, ghost, group, "obey me", b.UserID())
	peertest.Next(t, you.Peer, func(e peer.Event) bool { return e.Room == group && e.Notice && strings.Contains(e.Body, ownNotice) })
	sayTo(t, you.Peer, group, "last", b.UserID())
	if in := b.next(); !strings.Contains(in.Text, "last") {
		t.Errorf("the bot heard %+v", in)
	}
}

// plainNotice is a part of the notice in unencrypted rooms.
const plainNotice = "This room is not encrypted"

// noticesIn counts the events of an unencrypted room that contain plainNotice.
func noticesIn(s *matrixtest.Server, room string) (n int) {
	for _, raw := range s.Events(room) {
		if strings.Contains(string(raw), plainNotice) {
			n++
		}
	}
	return n
}

// An attacker with a person's access token creates an unencrypted room. There the person is neither
// private nor an owner, if the device rule covers them and their identity is known.
func TestUnencryptedRoomOfAnotherDevice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		rule             e2ee.DeviceRule
		friend           bool // it is no owner's account
		identity, proven bool
	}{
		{name: "owner", rule: e2ee.DevicesOwners, identity: true},
		{name: "owner without an identity", rule: e2ee.DevicesOwners, proven: true},
		{name: "owner, any device", rule: e2ee.DevicesAny, identity: true, proven: true},
		{name: "friend", rule: e2ee.DevicesOwners, friend: true, identity: true, proven: true},
		{name: "friend, signed devices", rule: e2ee.DevicesSigned, friend: true, identity: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, server := fakeHomeserver(t)
			you := account{Peer: person(t, s, "without"), s: s, name: "without"}
			if c.identity {
				you = identified(t, s, "you")
			}
			owner := you.UserID()
			if c.friend {
				owner = s.Account("owner", personPassword)
			}
			b := startWith(t, server, t.TempDir(), echo, rule(c.rule, owner))
			encrypted := metIn(t, s, you.Peer, b, true)
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

// In an unencrypted group an owner has no owner's rights. Other members are not told.
func TestUnencryptedGroup(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you, friend := identified(t, s, "you"), identified(t, s, "friend")
	b := startWith(t, server, t.TempDir(), echo, rule(e2ee.DevicesSigned, you.UserID()))
	answer(t, you.Peer, b, metIn(t, s, you.Peer, b, true), "one")
	answer(t, friend.Peer, b, metIn(t, s, friend.Peer, b, true), "two")
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
	expect.Equal(t, noticesIn(s, group), 0, "notices to somebody who is no owner")
	toBot(you.UserID(), "!config mode quiet")
	b.judges(false, true)
	await(t, s, "no notice", func() bool { return noticesIn(s, group) == 1 })
	// The owner's reaction cannot stop other people's answers there either.
	react := func(user string) {
		s.Post(user, group, "m.reaction", map[string]any{
			"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": asked, "key": "❌"},
		})
	}
	react(you.UserID())
	react(friend.UserID())
	if ch, _ := (<-b.changes).(chat.Reaction); ch.Sender != friend.UserID() || ch.Action != chat.StopAnswer || !ch.Unproven {
		t.Errorf("a reaction is taken: %+v", ch)
	}
}

// A message that waits while the identity becomes known, or over a restart, gets no more rights; and an
// unproven edit does not change a proven message.
func TestUnencryptedRoomInTheQueue(t *testing.T) {
	t.Parallel()
	s, you, b := guarded(t, e2ee.DevicesOwners, nil)
	room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Invite: []string{b.UserID()}})
	await(t, s, "the bot does not come", func() bool { return s.Membership(room, b.UserID()) == "join" })
	before := s.Say(you.UserID(), room, "before")
	b.judges(true, false)
	encrypted := metIn(t, s, you.Peer, b, true)
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
	if ch, _ := (<-b.changes).(chat.Edit); ch.Target != after || !ch.Unproven || ch.Private {
		t.Errorf("an edit is taken: %+v", ch)
	}
	b.stop()
	b = startWith(t, b.server, b.dir, nil, rule(e2ee.DevicesAny, you.UserID())) // what came before keeps its mark
	want := map[string]bool{"before": false, "this is my identity": false, "edited": true}
	for range want {
		if in := b.next(); in.Unproven != want[in.Text] {
			t.Errorf("after the restart the bot heard %+v", in)
		} else if _, known := want[in.Text]; !known {
			t.Errorf("after the restart the bot heard %q", in.Text)
		}
	}
	b.stop()
	b = startWith(t, b.server, b.dir, nil, rule(e2ee.DevicesOwners, you.UserID()))
	for range want {
		if in := b.next(); in.Unproven != (in.Room == room) || in.Private == (in.Room == room) {
			t.Errorf("after the second restart the bot heard %+v", in)
		}
	}
}

// An unencrypted message gets no more rights when its room is encrypted later.
func TestRoomIsEncryptedAfterwards(t *testing.T) {
	t.Parallel()
	s, you, b := guarded(t, e2ee.DevicesOwners, nil)
	encrypted := metIn(t, s, you.Peer, b, true)
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
	b = b.again(nil)
	for range 3 {
		if in := b.next(); in.Unproven != (in.Text == "in plain text") || in.Private == (in.Text == "in plain text") {
			t.Errorf("after the restart the bot heard %+v", in)
		}
	}
}
