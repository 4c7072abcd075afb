package matrix_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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

// A homeserver that was restarted together with the bot shows what it had taken
// only after a while.
// Holds F11.
func TestEchoComesLate(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, nil)
	own := func(raw json.RawMessage) bool { return strings.Contains(string(raw), b.UserID()) }
	hide := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		return slices.DeleteFunc(slices.Clone(events), own)
	}))
	s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), taken(s))
	again := s.Fault(matrixtest.On("send").By(b.UserID()).After(1), matrixtest.Hang()) // the end comes before the next try
	b.says(room, session.Outgoing{ID: "once", Text: "once"})
	once := peertest.Next(t, you, messageIn(room))
	b.stop()
	hide.Remove()
	again.Remove()

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
	b = b.again(nil)
	b.says(room, session.Outgoing{ID: "then", Text: "then"})
	if e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind == peer.Message && e.ID != once.ID }); e.Body != "then" {
		t.Errorf("after the restart came %+v: said twice", e)
	}
}

// A homeserver that ends while it takes a message shows it only a moment after it
// is back: the first sync that succeeds proves nothing.
// Holds F12.
func TestEndedWhileSending(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, nil)
	own := func(raw json.RawMessage) bool { return strings.Contains(string(raw), b.UserID()) }
	s.Fault(matrixtest.On("messages").By(b.UserID()), matrixtest.Status(http.StatusNotFound, "")) // nor can it be asked for
	var once atomic.Value                                                                         // the id of the event
	var down, ended atomic.Bool
	var good atomic.Int64
	hidden := matrixtest.Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		return slices.DeleteFunc(slices.Clone(events), own)
	})
	inPlace(t, s, matrixtest.On("sync").By(b.UserID()), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		rec := httptest.NewRecorder()
		if ended.Load() && !down.Load() {
			switch good.Add(1) {
			case 1:
				hidden(w, r, next)
				return
			case 2:
				if err := s.Redeliver(room, once.Load().(string)); err != nil {
					t.Error(err)
				}
			}
		}
		next.ServeHTTP(rec, r)
		if down.Load() {
			hangUp(w)
			return
		}
		copyResponse(w, rec)
	})
	s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		down.Store(true)
		ended.Store(true)
		time.AfterFunc(time.Second, func() { down.Store(false) })
		taken(s)(w, r, next)
	})
	for _, text := range []string{"once", "then"} {
		b.says(room, session.Outgoing{ID: text, Text: text})
	}
	first := peertest.Next(t, you, messageIn(room))
	once.Store(first.ID)
	if e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind == peer.Message && e.ID != first.ID }); e.Body != "then" {
		t.Errorf("then came %+v: said twice", e)
	}
}

// A homeserver that is stopped while it takes a message answers with an error,
// keeps the message, and shows it when it has been sent again: nobody is left
// with two. The same while the message is still being written, and when the first
// one shows up in the very moment in which the second is sent.
// Holds F12.
func TestShownTooLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		draft, during bool
	}{{name: "answer"}, {name: "draft", draft: true}, {name: "while it is sent again", during: true}} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b, room := chatting(t, true, nil)
			late := make(chan func(), 1)
			s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				body, _ := io.ReadAll(r.Body)
				kept := r.Clone(context.Background())
				late <- func() {
					s.ForgetTransactions()
					kept.Body = io.NopCloser(bytes.NewReader(body))
					next.ServeHTTP(httptest.NewRecorder(), kept)
					s.ForgetTransactions()
				}
				matrixtest.Status(http.StatusInternalServerError, "")(w, r, next)
			})
			show := func() { (<-late)() }
			if c.during {
				s.Fault(matrixtest.On("send").By(b.UserID()).After(1).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
					show()
					time.Sleep(300 * time.Millisecond) // for a sync with it to be stored
					next.ServeHTTP(w, r)
				})
			}
			say := func(text string, draft bool) {
				t.Helper()
				b.says(room, session.Outgoing{ID: "answer", Text: text, Draft: draft})
			}
			const beginning = "the beginning of a long answer, which is shown"
			if c.draft {
				say(beginning, true)
			} else {
				say("the answer", false)
			}
			first := peertest.Next(t, you, messageIn(room))
			if c.draft {
				say("the answer", false)
				peertest.Next(t, you, func(e peer.Event) bool { return e.Kind == peer.Edit && e.ID == first.ID && e.Body == "the answer" })
			}
			if !c.during {
				show()
			}
			var stand, gone []string
			for limit := time.Now().Add(20 * time.Second); len(gone) == 0 && time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
				stand, gone = messagesOf(s, room, b.UserID())
			}
			if len(stand) != 1 || len(gone) != 1 {
				t.Fatalf("%d messages stand, %d are taken back, want one and one", len(stand), len(gone))
			}
			if stand[0] != first.ID {
				t.Errorf("%s stands; the first one that was shown is %s", stand[0], first.ID)
			}
		})
	}
}

// messagesOf lists the messages of a sender that stand, and those that are taken
// back; edits are neither.
func messagesOf(s *matrixtest.Server, room, sender string) (stand, gone []string) {
	for _, e := range eventsIn(s, room, sender, "m.room.encrypted") {
		switch {
		case e.Content.Relates.Type == "m.replace":
		case e.Unsigned.Because != nil:
			gone = append(gone, e.ID)
		default:
			stand = append(stand, e.ID)
		}
	}
	return stand, gone
}
