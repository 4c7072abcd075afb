package matrix_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// stubborn answers like echo, and retries an answer that cannot be stored.
func stubborn(b *bot, in chat.Message) {
	ctx := context.Background()
	for _, f := range []func() error{
		func() error {
			return b.Send(ctx, in.Room, chat.Outgoing{ID: "re-" + in.ID, Text: "echo: **" + in.Text + "**", ReplyTo: in.ID})
		},
		func() error { return b.Ack(ctx, in.ID) },
	} {
		for f() != nil {
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// writable is a bot whose database a test can make unwritable.
type writable struct {
	*bot
	you  *peer.Peer
	s    *matrixtest.Server
	db   *store.DB // the bot's own connections
	room string
}

// newWritable starts a bot in dir with a chat. If encrypted, each message has its own key.
func newWritable(t *testing.T, dir string, encrypted bool) *writable {
	t.Helper()
	s, server := fakeHomeserver(t)
	w := &writable{s: s, you: person(t, s, "you")}
	w.bot = startWith(t, server, dir, stubborn, func(cfg *matrix.Config) { cfg.Hurry(); w.db = cfg.DB }, w.you.UserID())
	w.room = metIn(t, s, w.you, w.bot, encrypted)
	if encrypted {
		rotate(t, s, w.you, w.room)
	}
	w.exchange("hello")
	await(t, s, "not handled", func() bool { return w.Status(t.Context()).Inbox+w.Status(t.Context()).Outbox == 0 })
	return w
}

// exchange sends texts and expects an answer to each, and nothing else.
func (w *writable) exchange(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		say(w.t, w.you, w.room, text)
	}
	w.answers(texts...)
}

func (w *writable) answers(texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		comes(w.t, w.you, spoken(w.room, w.UserID()), "echo: **"+text+"**")
	}
}

func (w *writable) token() (token string) {
	w.t.Helper()
	expect.OK(w.t, w.db.QueryRowContext(w.t.Context(), `SELECT next_batch FROM matrix_sync`).Scan(&token))
	return token
}

// failures waits until at least n writes have failed since before.
func (w *writable) failures(before, n int) {
	w.t.Helper()
	w.becomes("no write has failed: the test tests nothing", func(doctor.Status) bool { return w.failed()-before >= n })
}

func (w *writable) failed() int {
	log := w.log.String()
	return strings.Count(log, "the database cannot be written") + strings.Count(log, "sync failed")
}

// whole checks that nothing was lost and that the database is valid.
func (w *writable) whole() {
	w.t.Helper()
	expect.Must(w.db.Exec(`PRAGMA busy_timeout = 5000`))(w.t)
	w.exchange("the last one")
	await(w.t, w.s, "still a problem", func() bool { return w.Status(w.t.Context()).Problem == "" })
	st := w.Status(w.t.Context())
	if st.Undecryptable != 0 || st.Lost != 0 || st.Dead != 0 {
		w.t.Errorf("status %+v", st)
	}
	var verdict string
	if err := w.db.QueryRowContext(w.t.Context(), `PRAGMA integrity_check`).Scan(&verdict); err != nil || verdict != "ok" {
		w.t.Errorf("integrity: %s, %v", verdict, err)
	}
}

// Another program locks the database for much longer than a statement waits: meanwhile nothing is
// acknowledged, and afterwards nothing is lost or answered twice.
// Holds F45.
func TestDatabaseLocked(t *testing.T) {
	for _, encrypted := range []bool{false, true} {
		t.Run(fmt.Sprintf("encrypted %v", encrypted), func(t *testing.T) {
			dir := t.TempDir()
			w := newWritable(t, dir, encrypted)
			expect.Must(w.db.Exec(`PRAGMA busy_timeout = 10`))(t) // instead of holding it for half a minute
			other := openDB(t, dir)
			tx, err := other.BeginTx(t.Context(), nil) // takes the write lock
			expect.OK(t, err)
			before, token := w.failed(), w.token()
			texts := []string{"one", "two", "three"}
			for _, text := range texts {
				say(t, w.you, w.room, text)
			}
			w.failures(before, 2)
			expect.Equal(t, w.token(), token, "the token while nothing could be stored")
			if st := w.Status(t.Context()); !strings.Contains(st.Problem, "locked") {
				t.Errorf("status says %q", st.Problem)
			}
			expect.OK(t, tx.Rollback())
			w.answers(texts...)
			w.whole()
		})
	}
}

// A message is sent while the database is locked: its result can be stored only later. It is there once
// and is not sent again meanwhile.
// Holds F45.
func TestSentButNotStored(t *testing.T) {
	dir := t.TempDir()
	w := newWritable(t, dir, false) // where sending needs no keys, and so nothing else waits
	expect.Must(w.db.Exec(`PRAGMA busy_timeout = 10`))(t)
	other := openDB(t, dir)
	held := make(chan *sql.Tx, 1)
	w.s.Fault(matrixtest.On("send").By(w.UserID()).Times(1), func(rw http.ResponseWriter, r *http.Request, next http.Handler) {
		tx, err := other.BeginTx(context.Background(), nil)
		if err != nil {
			t.Error(err)
		}
		held <- tx
		next.ServeHTTP(rw, r)
	})
	before := w.s.Count("send")
	w.says(w.room, chat.Outgoing{ID: "once", Text: "once"})
	tx := <-held
	comes(t, w.you, spoken(w.room, w.UserID()), "once")
	time.Sleep(time.Second) // enough for hundreds of tries, were there no pause between them
	if n := w.s.Count("send") - before; n > 5 {
		t.Errorf("sent %d times within a second", n)
	}
	expect.OK(t, tx.Rollback())
	await(t, w.s, "not noted", func() bool { return w.Status(t.Context()).Outbox == 0 })
	w.whole() // nothing else comes before its answer
}

// taken lets a send take effect, and then restarts the homeserver before the response.
func taken(s *matrixtest.Server) matrixtest.Fault {
	return func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(httptest.NewRecorder(), r)
		s.ForgetTransactions()
		hangUp(w)
	}
}

// A homeserver that was restarted together with the bot shows an accepted message only after a while.
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
	b.says(room, chat.Outgoing{ID: "once", Text: "once"})
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
	b.says(room, chat.Outgoing{ID: "then", Text: "then"})
	comes(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind == peer.Message && e.ID != once.ID }, "then")
}

// A homeserver that ends during a send shows the message only a moment after its restart: the first successful sync proves nothing.
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
	b.says(room, chat.Outgoing{ID: "once", Text: "once"}, chat.Outgoing{ID: "then", Text: "then"})
	first := peertest.Next(t, you, messageIn(room))
	once.Store(first.ID)
	comes(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind == peer.Message && e.ID != first.ID }, "then")
}

// A homeserver that is stopped during a send responds with an error, keeps the message, and shows it
// after it was sent again: one of the two is redacted. The same for a draft, and if the first one appears
// at the very moment when the second is sent.
// Holds F12.
func TestLateEchoIsRedacted(t *testing.T) {
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
				b.says(room, chat.Outgoing{ID: "answer", Text: text, Draft: draft})
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
			expect.Equal(t, stand[0], first.ID, "the message that stands")
		})
	}
}

// messagesOf lists the messages of a sender, without edits, and the redacted ones.
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
