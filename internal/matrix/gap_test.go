package matrix_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// A sync that leaves events out: they are fetched, and answered in order.
// Holds F14.
func TestGapIsFilled(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
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
	b = startWith(t, b.server, b.dir, func(b *bot, in session.Inbound) {
		b.done(in)
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
		b.done(in)
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
