package matrix_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
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

type mishap struct {
	name  string
	fault matrixtest.Fault
}

// trouble lists bad responses of a homeserver or of a proxy in front of it.
var trouble = []mishap{
	{"500", matrixtest.Status(http.StatusInternalServerError, "M_UNKNOWN")},
	{"502", matrixtest.Status(http.StatusBadGateway, "")},
	{"503", matrixtest.Status(http.StatusServiceUnavailable, "")},
	{"504", matrixtest.Status(http.StatusGatewayTimeout, "")},
	{"504 after it took effect", matrixtest.AfterEffect(matrixtest.Status(http.StatusGatewayTimeout, ""))},
	{"502 with a web page", page(http.StatusBadGateway)},
	{"200 with a web page", matrixtest.HTML()},
	{"200 with a web page after it took effect", matrixtest.AfterEffect(matrixtest.HTML())},
	{"truncated JSON", matrixtest.Truncate()},
	{"truncated JSON without effect", half},
	{"a body that breaks off", breakOff},
	{"the answer is lost", matrixtest.DropAnswer()},
	{"the connection breaks", matrixtest.Drop()},
}

// some returns the entries of trouble with these names.
func some(t *testing.T, names ...string) (chosen []mishap) {
	t.Helper()
	for _, m := range trouble {
		if slices.Contains(names, m.name) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) != len(names) {
		t.Fatalf("%d of %q", len(chosen), names)
	}
	return chosen
}

func page(status int) matrixtest.Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html><body><h1>nginx</h1></body></html>")
	}
}

func half(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"event_id":"$ev`)
}

// breakOff sends less than its Content-Length.
func breakOff(w http.ResponseWriter, r *http.Request, next http.Handler) {
	a := httptest.NewRecorder()
	next.ServeHTTP(a, r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(a.Body.Len()))
	_, _ = w.Write(a.Body.Bytes()[:a.Body.Len()/2])
	panic(http.ErrAbortHandler)
}

// each matches the first request of a user to each endpoint, including the login.
func each(user string) matrixtest.Match {
	seen := map[string]bool{}
	return func(r *matrixtest.Request) bool {
		if r.User != user && r.Endpoint != "login" {
			return false
		}
		first := !seen[r.Method+r.Endpoint]
		seen[r.Method+r.Endpoint] = true
		return first
	}
}

// onLog calls f for each log record with that message.
type onLog struct {
	slog.Handler
	message string
	f       func(slog.Record)
}

func (h onLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == h.message {
		h.f(r)
	}
	return h.Handler.Handle(ctx, r)
}

func (h onLog) WithAttrs(a []slog.Attr) slog.Handler {
	return onLog{h.Handler.WithAttrs(a), h.message, h.f}
}

// atMessage makes a client call f whenever it logs message.
func atMessage(message string, f func(slog.Record)) func(*matrix.Config) {
	return func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Log = slog.New(onLog{cfg.Log.Handler(), message, f})
	}
}

// attribute returns the value of a record's attribute.
func attribute(r slog.Record, key string) (value string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			value = a.Value.String()
		}
		return true
	})
	return value
}

// said lists the bot's messages in a room in the order of their events, and counts its edits.
func said(t *testing.T, s *matrixtest.Server, room, bot string) (messages []string, edits int) {
	t.Helper()
	for _, e := range eventsIn(s, room, bot, "m.room.message", "m.room.encrypted") {
		if e.Content.Relates.Type == "m.replace" {
			edits++
		} else {
			messages = append(messages, e.ID)
		}
	}
	return messages, edits
}

// hears expects these texts, in this order and without others.
func hears(t *testing.T, you *peer.Peer, room string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		comes(t, you, messageIn(room), text)
	}
}

// echoes sends texts and expects the bot's answers, in this order and without others.
func echoes(t *testing.T, you *peer.Peer, room string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		say(t, you, room, text)
	}
	for _, text := range texts {
		hears(t, you, room, "echo: **"+text+"**")
	}
}

// The homeserver is down or faulty when the bot starts.
// Holds F1.
func TestHomeserverIsNotThereAtStart(t *testing.T) {
	t.Parallel()
	const again = "matrix: the homeserver does not answer; trying again"
	for name, first := range map[string]bool{"a later start": false, "the first start": true} {
		t.Run(name+", connection refused", func(t *testing.T) {
			t.Parallel()
			s, server := fakeHomeserver(t)
			you := person(t, s, "you")
			await(t, s, "you are not there", func() bool { return s.Count("sync") > 0 }) // your client ends if the homeserver is gone before
			dir := t.TempDir()
			if !first {
				startWith(t, server, dir, echo, hurry, you.UserID()).stop()
			}
			s.Stop()
			tries := 0
			b := startWith(t, server, dir, echo, atMessage(again, func(slog.Record) {
				if tries++; tries == 2 {
					if err := s.Listen(); err != nil {
						t.Error(err)
					}
				}
			}), you.UserID())
			if tries < 2 {
				t.Errorf("it started after %d tries, without a homeserver", tries)
			}
			room := metIn(t, s, you, b, true)
			echoes(t, you, room, "there you are")
		})
	}
	for _, c := range some(t, "500", "200 with a web page", "the answer is lost") {
		t.Run("every first request, "+c.name, func(t *testing.T) {
			t.Parallel()
			s, server := fakeHomeserver(t)
			you := person(t, s, "you")
			hook := s.Fault(each("@reverie:"+s.Name), c.fault)
			b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
			room := metIn(t, s, you, b, true)
			echoes(t, you, room, "there you are")
			if st := b.Status(t.Context()); !st.CrossSigned {
				t.Errorf("the device stays unsigned: %+v", st)
			}
			if hook.Hits() < 8 {
				t.Errorf("only %d requests failed", hook.Hits())
			}
			if messages, _ := said(t, s, room, b.UserID()); len(messages) != 1 {
				t.Errorf("%d messages for one question", len(messages))
			}
		})
	}
}

// The homeserver restarts during a poll or a send.
// Holds F2.
func TestHomeserverRestarts(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	plain, secret := metIn(t, s, you, b, false), metIn(t, s, you, b, true)
	echoes(t, you, secret, "before")
	t.Run("in the middle of a poll", func(t *testing.T) {
		b.ShowTyping(t.Context(), plain, true)
		await(t, s, "not typing", func() bool { return s.Typing(plain, b.UserID()) })
		poll := make(chan struct{})
		var once sync.Once
		s.Fault(matrixtest.On("sync").By(b.UserID()).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			once.Do(func() { close(poll) })
			next.ServeHTTP(w, r)
		})
		<-poll
		s.Stop()
		s.Say(you.UserID(), plain, "asked while you were down")
		b.logs("sync failed; trying again")
		expect.OK(t, s.Listen())
		hears(t, you, plain, "echo: **asked while you were down**")
		echoes(t, you, secret, "after")
		typing := s.Count("typing")
		b.ShowTyping(t.Context(), plain, false)
		await(t, s, "still typing", func() bool { return s.Count("typing") > typing && !s.Typing(plain, b.UserID()) })
	})
	t.Run("in the middle of sending", func(t *testing.T) {
		s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			s.Stop() // it forgets the transaction
			if err := s.Listen(); err != nil {
				t.Error(err)
			}
			hangUp(w)
		})
		b.says(secret, chat.Outgoing{ID: "one", Text: "one"}, chat.Outgoing{ID: "two", Text: "two"})
		hears(t, you, secret, "one", "two")
	})
	for room, want := range map[string]int{plain: 1, secret: 4} {
		if messages, _ := said(t, s, room, b.UserID()); len(messages) != want {
			t.Errorf("%d messages in %s, want %d", len(messages), room, want)
		}
	}
}

// The connection stays open and delivers nothing.
// Holds F3.
func TestHungPoll(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]matrixtest.Fault{
		"before the answer": matrixtest.Hang(),
		"in the middle of the answer": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			a := httptest.NewRecorder()
			next.ServeHTTP(a, r)
			w.Header().Set("Content-Length", fmt.Sprint(a.Body.Len()))
			_, _ = w.Write(a.Body.Bytes()[:a.Body.Len()/2])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, echo)
			hook := inPlace(t, s, matrixtest.On("sync").By(b.UserID()).Times(1), fault)
			echoes(t, you, room, "hello?")
			expect.Equal(t, hook.Hits(), 1, "times that the fault was met")
		})
	}
}

// The homeserver asks for a delay in the header, the body or both: the longest counts.
// Holds F4.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	const want = 2300 * time.Millisecond
	var told atomic.Int64
	hook := s.Fault(matrixtest.On("send").By(b.UserID()).Times(2), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		told.Store(time.Now().UnixNano())
		matrixtest.Limit(time.Second, want)(w, r, next)
	})
	texts := []string{"one", "two", "three"}
	for _, text := range texts {
		b.says(room, chat.Outgoing{ID: text, Text: text})
	}
	hears(t, you, room, texts...)
	sends := s.Sends()
	var txns []string
	for _, x := range sends {
		txns = append(txns, x.Txn)
	}
	if !slices.Equal(txns, texts) {
		t.Errorf("sent %q, want each once", txns)
	}
	if waited := sends[0].At.Sub(time.Unix(0, told.Load())); waited < want {
		t.Errorf("tried again after %s, want %s at least", waited, want)
	}
	expect.Equal(t, hook.Hits(), 2, "times that the fault was met")
}

// The homeserver limits the rate while an answer is written: the edits between its beginning and its end
// are skipped, and the end arrives.
// Holds F5, M18.
func TestTooManyRequestsWhileWriting(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	var mu sync.Mutex
	var refused []time.Time
	storm := s.Fault(matrixtest.On("send").By(b.UserID()).After(1).Times(3), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		mu.Lock()
		refused = append(refused, time.Now())
		mu.Unlock()
		matrixtest.Limit(time.Second, 0)(w, r, next)
	})
	text, pieces := "", 0
	for storm.Hits() < 2 {
		pieces++
		text += fmt.Sprintf("This is piece number %d of what is a long answer. ", pieces)
		b.says(room, chat.Outgoing{ID: "answer", Text: text, Draft: true})
		time.Sleep(10 * time.Millisecond)
	}
	text += "That was all."
	b.says(room, chat.Outgoing{ID: "answer", Text: text})
	first := peertest.Next(t, you, messageIn(room))
	last := peertest.Next(t, you, peertest.Kind(room, peer.Edit))
	if last.ID != first.ID || last.Body != text || last.Live {
		t.Errorf("the end arrived as %+v", last)
	}
	messages, edits := said(t, s, room, b.UserID())
	if len(messages) != 1 || edits != 1 {
		t.Errorf("%d messages and %d edits for %d pieces, want one of each", len(messages), edits, pieces)
	}
	expect.Equal(t, s.Count("send"), 5, "requests: the beginning, two refused pieces, and the end twice")
	if pause := refused[1].Sub(refused[0]); pause < 3*time.Second {
		t.Errorf("after being refused the next piece came within %s, want twice the usual pause at least", pause)
	}
}

// Any bad response of a homeserver or proxy to a send: the message is sent again with the same transaction
// ID, arrives once and in order, and the response's text is shown to no one.
// Holds F6, F7.
func TestSendingThroughTrouble(t *testing.T) {
	t.Parallel()
	for _, c := range trouble {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			var mu sync.Mutex
			var txns []string
			s.Fault(matrixtest.On("send").By(b.UserID()), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				mu.Lock()
				txns = append(txns, filepath.Base(r.URL.Path))
				mu.Unlock()
				next.ServeHTTP(w, r)
			})
			hook := s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), c.fault)
			texts := []string{"one", "two", "three"}
			for _, text := range texts {
				b.says(room, chat.Outgoing{ID: text, Text: text})
			}
			hears(t, you, room, texts...)
			if messages, edits := said(t, s, room, b.UserID()); len(messages) != 3 || edits != 0 || hook.Hits() != 1 {
				t.Errorf("%d messages and %d edits through %d faults, want 3, 0, 1", len(messages), edits, hook.Hits())
			}
			mu.Lock()
			defer mu.Unlock()
			if got := slices.Compact(slices.Clone(txns)); !slices.Equal(got, texts) {
				t.Errorf("transactions %q", txns)
			}
		})
	}
}

// The same for the bot's syncs: no message is lost or answered twice.
// Holds F6.
func TestSyncingThroughTrouble(t *testing.T) {
	t.Parallel()
	for _, c := range trouble {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, echo)
			inPlace(t, s, matrixtest.On("sync").By(b.UserID()).Times(1), c.fault)
			echoes(t, you, room, "one", "two")
			echoes(t, you, room, "three")
			// On a busy machine a later poll may time out, too; the next one clears it.
			b.becomes("it is over, but there is a problem", func(s doctor.Status) bool { return s.Problem == "" })
		})
	}
}

// A step before an encrypted message fails: fetching the room state, claiming keys, or sharing the room
// key. The message is sent readable for everybody, or not yet.
// Holds F6.
func TestSharingKeysThroughTrouble(t *testing.T) {
	t.Parallel()
	faults := append(some(t, "500", "200 with a web page", "the answer is lost"), mishap{"429", matrixtest.Limit(time.Second, 0)})
	for _, endpoint := range []string{"state", "keys_query", "keys_claim", "sendToDevice"} {
		for _, c := range faults {
			t.Run(endpoint+", "+c.name, func(t *testing.T) {
				t.Parallel()
				s, you, friend, b, room := groupWithStranger(t, true, nil)
				hook := s.Fault(matrixtest.On(endpoint).By(b.UserID()).Times(1), c.fault)
				b.says(room, chat.Outgoing{ID: "x", Text: "for all"})
				for _, p := range []*peer.Peer{you, friend} {
					e := peertest.Next(t, p, func(e peer.Event) bool {
						return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Undecryptable)
					})
					if e.Body != "for all" || !e.Encrypted {
						t.Errorf("%s sees %+v", p.UserID(), e)
					}
				}
				expect.Equal(t, hook.Hits(), 1, "times that the fault was met")
			})
		}
	}
}

// A user gets a new device while device lists cannot be fetched. The new device can read later messages.
// Holds F6.
func TestNewDeviceWithoutDeviceLists(t *testing.T) {
	t.Parallel()
	for _, c := range some(t, "500", "200 with a web page", "the connection breaks") {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			tell := func(text string) {
				t.Helper()
				b.says(room, chat.Outgoing{ID: text, Text: text})
			}
			tell("one")
			hears(t, you, room, "one")
			hook := s.Fault(matrixtest.On("keys_query").By(b.UserID()).Times(1), c.fault)
			tablet := person(t, s, "you")
			await(t, s, "the list was not asked for", func() bool { return hook.Hits() == 1 })
			tell("two")
			hears(t, you, room, "two")
			e := peertest.Next(t, tablet, func(e peer.Event) bool {
				return e.Room == room && (e.Body == "two" || e.Kind == peer.Undecryptable && e.ID == lastOf(t, s, room, b.UserID()))
			})
			expect.Equal(t, e.Body, "two", "the new device sees")
		})
	}
}

func lastOf(t *testing.T, s *matrixtest.Server, room, bot string) string {
	t.Helper()
	messages, _ := said(t, s, room, bot)
	return messages[len(messages)-1]
}
