package matrix_test

import (
	"net/http"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
)

// directList matches what the bot does to the account's list of direct chats.
func directList(bot string) matrixtest.Match {
	return matrixtest.Match(func(r *matrixtest.Request) bool {
		return r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/account_data/m.direct")
	}).By(bot)
}

// A chat that is direct is so for a later device, too, whenever the bot was stopped while it came
// into it.
// Holds M36.
func TestDirectChatStaysDirect(t *testing.T) {
	t.Parallel()
	joining := func(bot string) matrixtest.Match { return matrixtest.On("join").By(bot) }
	for _, c := range []struct {
		name  string
		match func(bot string) matrixtest.Match
		fault matrixtest.Fault
	}{
		{"before it is in the list", directList, matrixtest.Hang()},
		{"when it was put into the list", directList, matrixtest.Behind(matrixtest.Hang())},
		{"before joining", joining, matrixtest.Hang()},
		{"when joined", joining, matrixtest.Behind(matrixtest.Hang())},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b := meeting(t, echo)
			fault := s.Fault(c.match(b.UserID()), c.fault)
			room := s.Room(you.UserID(), matrixtest.NewRoom{Direct: true, Invite: []string{b.UserID()}})
			await(t, s, "the fault is not met", func() bool { return fault.Hits() > 0 })
			b.stop()
			fault.Remove()
			b = b.again(echo)
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

// TestNotPrivateWhenDelivered: a message that waits is not private any more when somebody else
// has come in by the time it is delivered.
// Holds M37.
func TestNotPrivateWhenDelivered(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	s.Account("friend", "a long enough password")
	b := startWith(t, server, t.TempDir(), nil, hurry, you.UserID())
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
