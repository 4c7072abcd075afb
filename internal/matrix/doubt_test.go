package matrix_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// taken has the homeserver take what is sent, and then restart before the bot
// hears of it.
func taken(s *matrixtest.Server) matrixtest.Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		s.ForgetTransactions()
		hangUp(w)
	}
}

// The first event of a message that is still being written may be there,
// although its answer was lost: the message goes on in it.
func TestForgottenDraft(t *testing.T) {
	s, server := pretend(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), nil, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.DelayAnswer(2*time.Second)) // slower than the next try
	s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), taken(s))
	say := func(text string, draft bool) {
		t.Helper()
		if err := b.Say(t.Context(), room, session.Outgoing{ID: "answer", Text: text, Draft: draft}); err != nil {
			t.Fatal(err)
		}
	}
	say("the beginning of a long answer, which is shown", true)
	first := peertest.Next(t, you, messageIn(room))
	say("the whole answer", false)
	e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
	if e.Kind != peer.Edit || e.ID != first.ID || e.Live || e.Body != "the whole answer" {
		t.Errorf("got %+v, want an edit of %s", e, first.ID)
	}
}

// A homeserver that was restarted together with the bot shows what it had taken
// only after a while.
func TestEchoComesLate(t *testing.T) {
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	b := startWith(t, server, dir, nil, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	own := func(raw json.RawMessage) bool { return strings.Contains(string(raw), b.UserID()) }
	hide := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		return slices.DeleteFunc(slices.Clone(events), own)
	}))
	s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), taken(s))
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "once", Text: "once"}); err != nil {
		t.Fatal(err)
	}
	once := peertest.Next(t, you, messageIn(room))
	b.stop()
	hide.Remove()

	s.Fault(matrixtest.On("messages").By(b.UserID()), matrixtest.Status(http.StatusNotFound, "")) // nor can it be asked for

	var syncs atomic.Int64
	s.Fault(matrixtest.On("sync").By(b.UserID()), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		n := syncs.Add(1)
		if n == 1 {
			next.ServeHTTP(w, r)
			return
		}
		if n == 2 {
			if err := s.Redeliver(room, once.ID); err != nil {
				t.Error(err)
			}
		}
		matrixtest.DelayAnswer(2*time.Second)(w, r, next) // slower than the next try
	})
	b = startWith(t, server, dir, nil, hurry, you.UserID())
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "then", Text: "then"}); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind == peer.Message && e.ID != once.ID }); e.Body != "then" {
		t.Errorf("after the restart came %+v: said twice", e)
	}
}
