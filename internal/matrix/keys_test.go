package matrix_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/test/expect"
)

// sessions lists the megolm sessions of a user's messages in a room, in order.
func sessions(t *testing.T, s *matrixtest.Server, room, user string) (list []string) {
	t.Helper()
	for _, e := range eventsIn(s, room, user, "m.room.encrypted") {
		if !slices.Contains(list, e.Content.Session) {
			list = append(list, e.Content.Session)
		}
	}
	return list
}

// reads fails unless all readers can decrypt the bot's next message.
func reads(t *testing.T, b *bot, room, text string, readers ...*peer.Peer) {
	t.Helper()
	b.says(room, chat.Outgoing{ID: text, Text: text})
	for _, p := range readers {
		e := peertest.Next(t, p, func(e peer.Event) bool {
			return e.Room == room && e.Sender == b.UserID() && (e.Kind == peer.Message || e.Kind == peer.Undecryptable)
		})
		if e.Kind != peer.Message || e.Body != text || !e.Encrypted {
			t.Errorf("%s sees %+v", p.UserID(), e)
		}
	}
}

// The megolm session rotates after 100 messages on both sides, without room settings. Later messages can
// be read both ways, also after a restart.
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
		expect.Equal(t, len(sessions(t, s, room, user)), 2, "%s has written 110 messages with keys", user)
	}
}

// Members come and go: members can read the next message, and those who left get no key.
// Holds F22.
func TestKeyFollowsTheMembers(t *testing.T) {
	t.Parallel()
	s, you, friend, b, room := groupWithStranger(t, true, nil)
	reads(t, b, room, "for three", you, friend)
	late := person(t, s, "late")
	s.SetState(you.UserID(), room, "m.room.member", late.UserID(), map[string]any{"membership": "invite"})
	peertest.Next(t, late, peertest.Kind(room, peer.Invited))
	expect.OK(t, late.Join(t.Context(), room))
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
		// They return and must not get that key.
		s.SetState(you.UserID(), room, "m.room.member", friend.UserID(), map[string]any{"membership": "invite"})
		s.SetState(friend.UserID(), room, "m.room.member", friend.UserID(), map[string]any{"membership": "join"})
		seen(t, you, b, room)
		reads(t, b, room, fmt.Sprint("with the friend again ", i), you, late)
		e := peertest.Next(t, friend, func(e peer.Event) bool {
			return e.Kind == peer.Message && strings.HasSuffix(e.Body, fmt.Sprint(" ", i))
		})
		expect.Equal(t, e.Body, fmt.Sprint("with the friend again ", i), "the friend reads")
	}
}

// seen waits until the bot has processed the room's events: it receives a later one.
func seen(t *testing.T, you *peer.Peer, b *bot, room string) {
	t.Helper()
	sayTo(t, you, room, "seen?", b.UserID())
	b.next()
}

// Encryption is enabled while the bot is in the room, at the worst moments: no later text is sent in
// plain, and all can read it.
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
			b.says(room, chat.Outgoing{ID: "early", Text: "a secret that was to leave before"})
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
			s, server := fakeHomeserver(t)
			you, friend := person(t, s, "you"), person(t, s, "friend")
			dir := t.TempDir()
			restart := func() *bot { return startWith(t, server, dir, nil, hurry, you.UserID()) }
			b := restart()
			room := roomWith(t, s, you, b, matrixtest.NewRoom{Join: []string{friend.UserID()}})
			b.says(room, chat.Outgoing{ID: "plain", Text: "plain"})
			for _, p := range []*peer.Peer{you, friend} {
				if e := peertest.Next(t, p, messageIn(room)); e.Body != "plain" || e.Encrypted {
					t.Errorf("%s sees %+v", p.UserID(), e)
				}
			}
			b = c.do(t, s, you, b, room, restart)
			b.says(room, chat.Outgoing{ID: "next", Text: "a secret"})
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

// An invitation and a question at once: the bot has not joined when the question is asked, and sees the
// room only later. The answer is encrypted if the room is, and readable by all.
// Holds F24.
func TestAskedBeforeTheFirstSyncOfTheRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                    string
		encrypted, direct, down bool
	}{
		{"an encrypted direct chat", true, true, false},
		{"a plain direct chat", false, true, false},
		{"an encrypted room", true, false, false},
		{"an encrypted direct chat, while the bot is down", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b := meeting(t, echo)
			friend := person(t, s, "friend")
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

// TestSyncWithoutKeyCount: a sync without a one-time key count says nothing about the keys. The keys that
// the homeserver hands out are the stored ones.
func TestSyncWithoutKeyCount(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you := person(t, s, "you")
	s.Fault(matrixtest.On("sync"), rewritten(t, func(body map[string]any) { delete(body, "device_one_time_keys_count") }))
	dir := t.TempDir()
	for i := range 3 {
		b := startWith(t, server, dir, echo, hurry, you.UserID())
		await(t, s, "first sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
		stored := expect.Must(b.OneTimeKeys(t.Context()))(t)
		if n := s.OneTimeKeys(b.UserID(), b.account().DeviceID); n < 40 || n > 60 || len(stored) != n {
			t.Errorf("start %d: the homeserver has %d one-time keys, and %d are stored", i+1, n, len(stored))
		}
		b.stop()
	}
}

// clocks are the bot's and the homeserver's clocks, which advance together.
type clocks struct {
	s   *matrixtest.Server
	bot string
	off atomic.Int64
}

func (c *clocks) set(cfg *matrix.Config) {
	cfg.PollQuickly()
	cfg.Clock(func() time.Time { return time.Now().Add(time.Duration(c.off.Load())) })
}

// forward advances both, and returns when the bot has noticed.
func (c *clocks) forward(t *testing.T, b *bot, d time.Duration) {
	t.Helper()
	c.s.SetClock(time.Duration(c.off.Add(int64(d))))
	for range 2 { // the answer to the first was given before
		inPlace(t, c.s, matrixtest.On("sync").By(c.bot), matrixtest.Delay(0)).Remove()
	}
	b.Look()
}

// keyRequests counts the room key requests of a user.
func keyRequests(s *matrixtest.Server, user string) *matrixtest.Hook {
	return s.Fault(func(r *matrixtest.Request) bool {
		return r.Endpoint == "sendToDevice" && r.User == user && strings.Contains(r.Path, "/m.room_key_request/") && strings.Contains(string(r.Body), `"action":"request"`)
	}, matrixtest.Delay(0))
}

// The key arrives after the message. Within half a minute there is no notice, later there is one. Within
// an hour the message is answered, later its sender is told that it is not.
// Holds F19.
func TestKeyComesLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late         time.Duration
		told, answer bool
	}{{5 * time.Second, false, true}, {time.Minute, true, true}, {24 * time.Hour, true, false}} {
		for _, restart := range []bool{false, true} {
			name := c.late.String()
			if restart {
				name += ", after a restart"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, server := fakeHomeserver(t)
				you := person(t, s, "you")
				dir := t.TempDir()
				k := &clocks{s: s, bot: "@reverie:" + s.Name}
				b := startWith(t, server, dir, echo, k.set, you.UserID())
				room := metIn(t, s, you, b, true)
				asked := keyRequests(s, b.UserID())
				th := steal(t, s, b.UserID())
				say(t, you, room, "one")
				say(t, you, room, "two")
				b.utd(2)
				k.forward(t, b, c.late)
				await(t, s, "the key was not asked for", func() bool { return asked.Hits() == 1 })
				if c.told {
					if e := peertest.Next(t, you, messageIn(room)); !e.Notice || !e.Encrypted || !strings.Contains(e.Body, "cannot read this message") {
						t.Errorf("before the key came %+v", e)
					}
				}
				if restart {
					b.stop()
				}
				th.giveBack(t, !restart)
				if restart {
					b = startWith(t, server, dir, echo, k.set, you.UserID())
				}
				if c.answer {
					hears(t, you, room, "echo: **one**", "echo: **two**")
				} else if e := peertest.Next(t, you, messageIn(room)); !e.Notice || !strings.Contains(e.Body, "only now") {
					t.Errorf("after the key came %+v", e)
				}
				b.utd(0)
				echoes(t, you, room, "three")
				if c.answer {
					return
				}
				if in := b.next(); in.Text != "three" || len(b.heard) > 0 {
					t.Errorf("handed over first %+v, want only the newest", in)
				}
			})
		}
	}
}

// withhold sends the bot an m.room_key.withheld for the message.
func withhold(t *testing.T, s *matrixtest.Server, room, user, bot string, th *thief) {
	t.Helper()
	e := eventsIn(s, room, user, "m.room.encrypted")[0]
	th.hook.Remove()
	inPlace(t, s, matrixtest.On("sync").By(bot), matrixtest.Delay(0))
	s.SendToDevice(user, bot, "m.room_key.withheld", map[string]any{
		"algorithm": "m.megolm.v1.aes-sha2", "room_id": room, "session_id": e.Content.Session, "sender_key": e.Content.Key,
		"code": "m.unverified", "reason": "this device is not verified",
	})
}

// The key of a session never arrives or is withheld: it is requested, and each room is told once, for
// any number of messages.
// Holds F20.
func TestKeyNeverComes(t *testing.T) {
	t.Parallel()
	for name, withheld := range map[string]bool{"never": false, "withheld": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := fakeHomeserver(t)
			you, stranger := person(t, s, "you"), person(t, s, "stranger")
			dir := t.TempDir()
			k := &clocks{s: s, bot: "@reverie:" + s.Name}
			b := startWith(t, server, dir, echo, k.set, you.UserID())
			rooms := []string{metIn(t, s, you, b, true), metIn(t, s, you, b, true)}
			shared := roomWith(t, s, you, b, matrixtest.NewRoom{Encrypted: true, Join: []string{stranger.UserID()}})
			joined(t, stranger, shared, b.UserID())
			asked := keyRequests(s, b.UserID())
			th := steal(t, s, b.UserID())
			if withheld { // it is known before the message comes
				say(t, you, rooms[0], "one")
				b.utd(1)
				withhold(t, s, rooms[0], you.UserID(), b.UserID(), th)
				steal(t, s, b.UserID())
			}
			for _, room := range rooms {
				for i := range 3 {
					say(t, you, room, fmt.Sprint("number ", i))
				}
			}
			sayTo(t, stranger, shared, "do something", b.UserID())
			waiting := either(withheld, 7, 6)
			b.utd(waiting)
			k.forward(t, b, 5*time.Second)
			await(t, s, "the keys were not asked for", func() bool { return asked.Hits() == 2 })
			for _, wait := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour} {
				k.forward(t, b, wait)
				say(t, you, rooms[0], "and this?")
				waiting++
				b.utd(waiting)
			}
			told := map[string]bool{}
			for range rooms {
				e := peertest.Next(t, you, func(e peer.Event) bool { return e.Kind == peer.Message && e.Sender == b.UserID() })
				if told[e.Room] = true; !e.Notice || !e.Encrypted || !strings.Contains(e.Body, "cannot read this message") {
					t.Errorf("got %+v", e)
				}
			}
			if !told[rooms[0]] || !told[rooms[1]] {
				t.Errorf("told were %v", told)
			}
			expect.Equal(t, asked.Hits(), 2, "requests for the keys of two sessions")
			b = b.again(echo)
			k.forward(t, b, time.Hour)
			// The bot's last message is sent after all others.
			for _, room := range append(rooms, shared) {
				last(t, b, you, room)
				n := either(room == shared, 1, 2)
				if messages, _ := said(t, s, room, b.UserID()); len(messages) != n {
					t.Errorf("%d messages in %s, want %d", len(messages), room, n)
				}
			}
		})
	}
}

// last sends a message to a room and waits for it.
func last(t *testing.T, b *bot, you *peer.Peer, room string) {
	t.Helper()
	b.says(room, chat.Outgoing{ID: "last-" + room, Text: "that is all"})
	peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Body == "that is all" })
}

// The database fails when a key arrives: the waiting message is not lost.
// Holds F19.
func TestKeyArrivesDuringDatabaseFailure(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID(), friend.UserID())
	room, other := metIn(t, s, you, b, true), metIn(t, s, friend, b, true)
	s.Fault(func(r *matrixtest.Request) bool { // it comes once, and cannot be asked for
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request")
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
	th := steal(t, s, b.UserID())
	say(t, you, room, "one")
	b.utd(1)
	peertest.Next(t, you, messageIn(room)) // the notice: from now on the event waits for its key only
	db := openDB(t, dir)
	execute(t, db, `CREATE TRIGGER full BEFORE UPDATE ON inbox WHEN new.next_at = 1 BEGIN SELECT raise(ABORT, 'the disk is full'); END`)
	th.giveBack(t, true)
	b.logs("the disk is full")
	execute(t, db, `DROP TRIGGER full`)
	say(t, friend, other, "two") // its key wakes whoever reads
	hears(t, you, room, "echo: **one**")
}

// logs waits until the log contains the words.
func (b *bot) logs(words string) {
	b.t.Helper()
	b.becomes("the log does not say "+words, func(doctor.Status) bool { return strings.Contains(b.log.String(), words) })
}

// The key arrives after the first of two messages was tried and before the second: they are read in order.
func TestKeyArrivesBetweenTwoTries(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	s.Fault(func(r *matrixtest.Request) bool { // it comes once, and cannot be asked for
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request")
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
	th := steal(t, s, b.UserID())
	first := say(t, you, room, "one")
	say(t, you, room, "two")
	b.utd(2)
	peertest.Next(t, you, messageIn(room)) // the notice
	db := openDB(t, b.dir)
	for _, statement := range []string{`CREATE TABLE tried (once INTEGER)`,
		`CREATE TRIGGER late AFTER UPDATE ON inbox WHEN new.next_at = 1 AND new.id = '` + first + `' AND NOT EXISTS (SELECT 1 FROM tried)
			BEGIN INSERT INTO tried VALUES (1); UPDATE inbox SET next_at = 0 WHERE id = new.id; END`} {
		execute(t, db, statement)
	}
	th.giveBack(t, true)
	hears(t, you, room, "echo: **one**", "echo: **two**")
	b.utd(0)
}
