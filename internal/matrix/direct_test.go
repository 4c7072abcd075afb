package matrix_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
)

// directList matches what the bot does to the account's list of direct chats.
func directList(bot string) matrixtest.Match {
	return matrixtest.Match(func(r *matrixtest.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/account_data/m.direct")
	}).By(bot)
}

// A chat that is direct is so for a later device, too, whatever happened while
// the bot came into it.
// Holds M36.
func TestDirectChatStaysDirect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		match func(bot string) matrixtest.Match
		fault func() matrixtest.Fault
		stop  bool // the bot is stopped in the middle
	}{
		{"stopped before it is in the list", directList, matrixtest.Hang, true},
		{"stopped when it was put into the list", directList, func() matrixtest.Fault { return matrixtest.Behind(matrixtest.Hang()) }, true},
		{"stopped before joining", func(bot string) matrixtest.Match { return matrixtest.On("join").By(bot) }, matrixtest.Hang, true},
		{"stopped when joined", func(bot string) matrixtest.Match { return matrixtest.On("join").By(bot) }, func() matrixtest.Fault { return matrixtest.Behind(matrixtest.Hang()) }, true},
		{"the list fails once", func(bot string) matrixtest.Match { return directList(bot).Times(1) }, func() matrixtest.Fault { return matrixtest.Status(http.StatusBadGateway, "") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b := meeting(t, echo)
			fault := s.Fault(c.match(b.UserID()), c.fault())
			room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Invite: []string{b.UserID()}})
			await(t, s, "the fault is not met", func() bool { return fault.Hits() > 0 })
			if c.stop {
				b.stop()
				fault.Remove()
				b = b.again(echo)
			}
			joined(t, you, room, b.UserID())
			b.stop()
			b = startWith(t, b.server, t.TempDir(), echo, hurry, you.UserID())
			await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
			say(t, you, room, "do you know me?")
			if in := b.next(); in.Text != "do you know me?" || !in.Private {
				t.Errorf("heard %+v", in)
			}
		})
	}
}

// A homeserver that does not let the bot keep a list does not keep it out.
func TestJoinsWithoutAList(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	refused := s.Fault(directList(b.UserID()), matrixtest.Status(http.StatusForbidden, "M_FORBIDDEN"))
	room := chat(t, s, you, b, false)
	say(t, you, room, "hello")
	if in := b.next(); in.Text != "hello" || !in.Private {
		t.Errorf("heard %+v", in)
	}
	if refused.Hits() == 0 {
		t.Error("the fault was not met")
	}
}

// The bot is put out of a room and invited again before it has the answer to its
// first joining: it comes back.
func TestInvitedAgainWhileJoining(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	release := make(chan struct{})
	free := sync.OnceFunc(func() { close(release) })
	t.Cleanup(free)
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	joining := s.Fault(matrixtest.On("join").By(b.UserID()).Times(1), matrixtest.Changed(func(*httptest.ResponseRecorder, *http.Request) { <-release }))
	room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Invite: []string{b.UserID()}})
	await(t, s, "the bot does not join", func() bool { return joining.Hits() == 1 && s.Membership(room, b.UserID()) == "join" })
	b.knows(room)
	s.SetState(you.UserID(), room, "m.room.member", b.UserID(), content{"membership": "leave"})
	await(t, s, "the bot has not noticed", func() bool { return b.Status(t.Context()).Rooms == 0 })
	s.SetState(you.UserID(), room, "m.room.member", b.UserID(), content{"membership": "invite", "is_direct": true})
	for deadline := time.Now().Add(peertest.Patience); strings.Count(b.log.String(), "matrix: invitation") < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second invitation has not come")
		}
	}
	free()
	await(t, s, "the bot does not come back", func() bool { return s.Membership(room, b.UserID()) == "join" })
	say(t, you, room, "hello")
	if e := peertest.Next(t, you, spoken(room, b.UserID())); e.Body != "echo: **hello**" {
		t.Errorf("answered %+v", e)
	}
}

// TestDirectChatsAreAskedFor: a room of which only the account's list says that it is a direct
// chat is one after a restart, although no sync shows the list again.
func TestDirectChatsAreAskedFor(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, echo)
	say(t, you, room, "hello")
	b.next()
	b.stop()
	db := openDB(t, b.dir)
	_, err := db.Exec(`UPDATE matrix_room SET direct_with = ''`)
	ok(t, err)
	ok(t, db.Close())
	lost := s.Fault(matrixtest.Match(func(r *matrixtest.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/account_data/m.direct")
	}).By(b.UserID()).Times(1), matrixtest.Status(http.StatusBadGateway, ""))
	b = b.again(echo)
	await(t, s, "the fault is not met", func() bool { return lost.Hits() > 0 })
	await(t, s, "the list is not asked for again", func() bool {
		with, err := b.DirectWith(t.Context(), room)
		return err == nil && with == you.UserID()
	})
	say(t, you, room, "do you know me?")
	if in := b.next(); in.Text != "do you know me?" || !in.Private {
		t.Errorf("heard %+v", in)
	}
}

// TestNotPrivateWhenDelivered: a message that waits is not private any more when somebody else
// has come in by the time it is delivered.
// Holds M37.
func TestNotPrivateWhenDelivered(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	s.Account("friend", "a long enough password")
	dir := t.TempDir()
	b := startWith(t, server, dir, nil, hurry, you.UserID())
	room := chat(t, s, you, b, false)
	waits := say(t, you, room, "a secret")
	if in := b.next(); in.ID != waits || !in.Private {
		t.Fatalf("heard %+v", in)
	}
	s.SetState("@friend:matrix.test", room, "m.room.member", "@friend:matrix.test", content{"membership": "join"})
	s.Post(you.UserID(), room, "m.room.message", text("and now?", content{"m.mentions": content{"user_ids": []string{b.UserID()}}}))
	b.next()
	b = b.again(nil)
	if in := b.next(); in.ID != waits || in.Private {
		t.Errorf("heard %+v", in)
	}
}
