package matrix_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// A sync that leaves events out: they are fetched, and answered in order.
// Holds F14.
func TestGapIsFilled(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	say(t, you, room, "before")
	b.next()
	peertest.Next(t, you, messageIn(room))
	b.stop()
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Cut(2))
	flaky := s.Fault(matrixtest.On("messages").By(b.UserID()).Times(1), matrixtest.Status(http.StatusBadGateway, ""))
	var want []string
	for i := range 250 { // more than a page
		say(t, you, room, fmt.Sprint("number ", i))
		want = append(want, fmt.Sprint("number ", i))
	}
	b = startWith(t, server, dir, func(b *bot, in session.Inbound) {
		if err := b.Handled(context.Background(), in.ID); err != nil {
			t.Error(err)
		}
	}, hurry, you.UserID())
	var got []string
	for range want {
		got = append(got, b.next().Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("heard %q", got)
	}
	if flaky.Hits() != 1 {
		t.Error("the fault was not met")
	}
}

// The same with a real homeserver, whose tokens are its own.
// Holds F14.
func TestGapIsFilledFromARealServer(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	dir := t.TempDir()
	b := start(t, server, dir, echo, you.UserID())
	room := directChat(t, you, b)
	say(t, you, room, "before")
	b.next()
	peertest.Next(t, you, messageIn(room))
	b.stop()
	var want []string
	for i := range 130 { // a sync brings a hundred
		want = append(want, fmt.Sprint("number ", i))
		say(t, you, room, want[i])
	}
	b = start(t, server, dir, func(b *bot, in session.Inbound) {
		if err := b.Handled(context.Background(), in.ID); err != nil {
			t.Error(err)
		}
	}, you.UserID())
	var got []string
	for range want {
		got = append(got, b.next().Text)
	}
	if !slices.Equal(got, want) {
		t.Errorf("heard %q", got)
	}
	if !strings.Contains(b.log.String(), "a gap was filled") {
		t.Error("there was no gap")
	}
}

// A new store takes nothing that is old, and does not look for more of it.
// Holds F16.
func TestFreshStoreAnswersNothingOld(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	room := chat(t, s, you, b, false)
	for i := range 5 {
		say(t, you, room, fmt.Sprint("old ", i))
		peertest.Next(t, you, messageIn(room))
	}
	b.stop()
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Cut(2))
	before := s.Count("messages")
	b = startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	await(t, s, "no sync", func() bool { return !b.Status(t.Context()).LastSync.IsZero() })
	say(t, you, room, "new")
	if in := b.next(); in.Text != "new" {
		t.Errorf("heard %+v", in)
	}
	if n := s.Count("messages") - before; n != 0 {
		t.Errorf("%d pages of old messages were fetched", n)
	}
}

// After a long absence what is recent is answered, and the rest is mentioned.
// Holds F14.
func TestLongAbsence(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	say(t, you, room, "hello")
	peertest.Next(t, you, messageIn(room))
	b.stop()
	db := openDB(t, dir)
	if _, err := db.ExecContext(t.Context(), `UPDATE matrix_sync SET at = at - 3*3600*1000`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Cut(2))
	s.SetClock(-2 * time.Hour)
	for i := range 3 {
		say(t, you, room, fmt.Sprint("old ", i))
	}
	s.SetClock(0)
	say(t, you, room, "recent")
	b = startWith(t, server, dir, echo, func(cfg *matrix.Config) { cfg.Hurry(); cfg.Location = time.UTC }, you.UserID())
	var got []string
	for range 2 {
		e := peertest.Next(t, you, messageIn(room))
		got = append(got, e.Body)
		if e.Notice != strings.HasPrefix(e.Body, "I was away") {
			t.Errorf("kind of %+v", e)
		}
	}
	slices.Sort(got)
	if !strings.HasPrefix(got[0], "I was away from ") || !strings.HasSuffix(got[0], "; I have not answered 3 older messages. Ask again if it still matters.") || got[1] != "echo: **recent**" {
		t.Errorf("got %q", got)
	}
	if in := b.next(); in.Text != "recent" {
		t.Errorf("heard %+v", in)
	}
	b.stop()
	startWith(t, server, dir, echo, hurry, you.UserID())
	say(t, you, room, "again")
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **again**" {
		t.Errorf("told again? %+v", e)
	}
}

// Nobody's clock decides whether a message is answered while the bot is there.
// Holds F17.
func TestWrongClocks(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{2 * time.Hour, -2 * time.Hour} {
		t.Run(skew.String(), func(t *testing.T) {
			s, server := pretend(t)
			s.SetClock(skew)
			you := person(t, s, "you")
			b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
			room := chat(t, s, you, b, false)
			say(t, you, room, "now")
			for _, ts := range []string{"1", "-5", "99999999999999"} {
				if _, err := s.Inject(room, fmt.Sprintf(`{"sender":%q,"origin_server_ts":%s,"content":{"msgtype":"m.text","body":%q}}`, you.UserID(), ts, ts)); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range []string{"now", "1", "-5", "99999999999999"} {
				if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **"+text+"**" {
					t.Errorf("got %+v, want the answer to %s", e, text)
				}
			}
		})
	}
}
