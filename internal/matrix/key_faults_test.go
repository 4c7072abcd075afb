package matrix_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// clocks are the bot's and the homeserver's, which go together.
type clocks struct {
	s   *matrixtest.Server
	bot string
	off atomic.Int64
}

func (c *clocks) set(cfg *matrix.Config) {
	cfg.PollQuickly()
	cfg.Clock(func() time.Time { return time.Now().Add(time.Duration(c.off.Load())) })
}

// forward moves both on, and returns when the bot has noticed.
func (c *clocks) forward(t *testing.T, b *bot, d time.Duration) {
	t.Helper()
	c.s.SetClock(time.Duration(c.off.Add(int64(d))))
	for range 2 { // the answer to the first was given before
		inPlace(t, c.s, matrixtest.On("sync").By(c.bot), matrixtest.Delay(0)).Remove()
	}
	b.Look()
}

// keyRequests counts the requests for room keys that a user sends.
func keyRequests(s *matrixtest.Server, user string) *matrixtest.Hook {
	return s.Fault(func(r *matrixtest.Request) bool {
		return r.Endpoint == "sendToDevice" && r.User == user && strings.Contains(r.Path, "/m.room_key_request/") && strings.Contains(string(r.Body), `"action":"request"`)
	}, matrixtest.Delay(0))
}

// The key comes after the message, sooner or later. By the clock of both: within
// half a minute nobody is told, afterwards there is one notice; within an hour the
// message is answered, afterwards it is not, and its sender hears that.
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
				s, server := pretend(t)
				you := person(t, s, "you")
				dir := t.TempDir()
				k := &clocks{s: s, bot: "@reverie:" + s.Name}
				b := startWith(t, server, dir, echo, k.set, you.UserID())
				room := chat(t, s, you, b, true)
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
				say(t, you, room, "three")
				hears(t, you, room, "echo: **three**")
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

// withhold tells the bot that it does not get the key of the message.
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

// The key of a session never comes, or is withheld: the key is asked for, and each
// room is told once, however many messages there are and however long it takes.
// Holds F20.
func TestKeyNeverComes(t *testing.T) {
	t.Parallel()
	for _, withheld := range []bool{false, true} {
		name := "never"
		if withheld {
			name = "withheld"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, server := pretend(t)
			you, stranger := person(t, s, "you"), person(t, s, "stranger")
			dir := t.TempDir()
			k := &clocks{s: s, bot: "@reverie:" + s.Name}
			b := startWith(t, server, dir, echo, k.set, you.UserID())
			rooms := []string{chat(t, s, you, b, true), chat(t, s, you, b, true)}
			shared := s.Room(you.UserID(), matrixtest.NewRoom{Encrypted: true, Invite: []string{b.UserID()}, Join: []string{stranger.UserID()}})
			joined(t, stranger, shared, b.UserID())
			joined(t, you, shared, b.UserID())
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
			waiting := 6
			if withheld {
				waiting = 7
			}
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
			if n := asked.Hits(); n != 2 {
				t.Errorf("%d requests for the keys of two sessions", n)
			}
			b.stop()
			b = startWith(t, server, dir, echo, k.set, you.UserID())
			k.forward(t, b, time.Hour)
			// What the bot says last comes after all that it had to say.
			for _, room := range append(rooms, shared) {
				last(t, b, you, room)
				n := 2
				if room == shared {
					n = 1
				}
				if messages, _ := said(t, s, room, b.UserID()); len(messages) != n {
					t.Errorf("%d messages in %s, want %d", len(messages), room, n)
				}
			}
		})
	}
}

// last says something in a room and waits until it is there.
func last(t *testing.T, b *bot, you *peer.Peer, room string) {
	t.Helper()
	b.says(room, session.Outgoing{ID: "last-" + room, Text: "that is all"})
	peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Body == "that is all" })
}

// The database fails in the moment in which a key arrives: the message that
// waits for it is not forgotten.
// Holds F19.
func TestKeyArrivesAtABadMoment(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID(), friend.UserID())
	room, other := chat(t, s, you, b, true), chat(t, s, friend, b, true)
	s.Fault(func(r *matrixtest.Request) bool { // it comes once, and cannot be asked for
		return r.Endpoint == "sendToDevice" && strings.Contains(r.Path, "room_key_request")
	}, matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
	th := steal(t, s, b.UserID())
	say(t, you, room, "one")
	b.utd(1)
	peertest.Next(t, you, messageIn(room)) // the notice: from now on the event waits for its key only
	db := openDB(t, dir)
	defer db.Close()
	exec := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		ok(t, err)
	}
	exec(`CREATE TRIGGER full BEFORE UPDATE ON inbox WHEN new.next_at = 1 BEGIN SELECT raise(ABORT, 'the disk is full'); END`)
	th.giveBack(t, true)
	b.logs("the disk is full")
	exec(`DROP TRIGGER full`)
	say(t, friend, other, "two") // its key wakes whoever reads
	hears(t, you, room, "echo: **one**")
}

// logs waits until the log has the words.
func (b *bot) logs(words string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), peertest.Patience)
	defer cancel()
	for !strings.Contains(b.log.String(), words) {
		select {
		case <-ctx.Done():
			b.t.Fatalf("the log does not say %q", words)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// The key comes when the first of two messages has just been tried in vain, and the
// second is tried next: they are read in their order.
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
	defer db.Close()
	for _, statement := range []string{`CREATE TABLE tried (once INTEGER)`,
		`CREATE TRIGGER late AFTER UPDATE ON inbox WHEN new.next_at = 1 AND new.id = '` + first + `' AND NOT EXISTS (SELECT 1 FROM tried)
			BEGIN INSERT INTO tried VALUES (1); UPDATE inbox SET next_at = 0 WHERE id = new.id; END`} {
		_, err := db.ExecContext(t.Context(), statement)
		ok(t, err)
	}
	th.giveBack(t, true)
	hears(t, you, room, "echo: **one**", "echo: **two**")
	b.utd(0)
}
