package matrix_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// These tests stop the client between two steps, which leaves in the database
// what a kill would leave there. The crash storm kills the real program.

// The program dies when it has got a sync with a message and the key to it, and has taken in the
// key and not the message.
// Holds F8.
func TestDiedBetweenSyncAndInbox(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	db := openDB(t, b.dir)
	defer db.Close()
	// What is committed last, and with it the inbox, is refused.
	_, err := db.ExecContext(t.Context(), `CREATE TRIGGER died BEFORE UPDATE ON matrix_sync WHEN
		(SELECT count(*) FROM crypto_megolm_inbound_session WHERE room_id = '`+room+`') > 0 BEGIN SELECT raise(ABORT, 'died'); END`)
	ok(t, err)
	both := make(chan struct{})
	inPlace(t, s, matrixtest.On("sync").By(b.UserID()).Times(1), matrixtest.Hold(both))
	say(t, you, room, "one") // the first, so there is a key with it
	close(both)
	await(t, s, "the sync was not worked on", func() bool { return strings.Contains(b.log.String(), "died") })
	b.stop()
	if len(b.heard) > 0 {
		t.Fatalf("heard %+v too soon", <-b.heard)
	}
	_, err = db.ExecContext(t.Context(), `DROP TRIGGER died`)
	ok(t, err)
	b = b.again(echo)
	hears(t, you, room, "echo: **one**")
	say(t, you, room, "two") // the key is for this one, too
	hears(t, you, room, "echo: **two**")
	if messages, edits := said(t, s, room, b.UserID()); len(messages) != 2 || edits != 0 {
		t.Errorf("%d messages and %d edits for two questions", len(messages), edits)
	}
}

// The program dies while it writes; also at the worst moment: the homeserver has the
// beginning of the answer, and the program does not know. It has forgotten the
// transaction, too.
// Holds F10.
func TestDiedBehindTheBeginningOfAnAnswer(t *testing.T) {
	t.Parallel()
	const beginning = "the beginning of a long answer, which is never finished"
	for _, c := range []struct {
		name           string
		known, handled bool
		want           string
	}{
		{"unknown, the question waits", false, false, "echo: **go on**"},
		{"unknown, the question is done", false, true, "_(interrupted)_"},
		{"known, the question waits", true, false, "echo: **go on**"},
		{"known, the question is done", true, true, beginning + "\n\n_(interrupted)_"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			id := say(t, you, room, "go on")
			b.next()
			notice := func() {}
			if !c.known {
				deaf := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.Hang())
				sent := inHand(s, b.UserID())
				notice = func() { deaf.Remove(); sent.Remove(); s.ForgetTransactions() }
			}
			b.says(room, session.Outgoing{ID: "re-" + id, Text: beginning, ReplyTo: id, Draft: true})
			first := peertest.Next(t, you, messageIn(room))
			if c.handled {
				ok(t, b.Handled(t.Context(), id))
			}
			b.stop()
			notice()
			b = b.again(echo)
			e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
			if e.Kind != peer.Edit || e.ID != first.ID || !strings.HasSuffix(e.Body, c.want) || c.known && e.Body != c.want || e.Live {
				t.Errorf("after the restart came %+v, want an edit of %s", e, first.ID)
			}
			say(t, you, room, "then")
			hears(t, you, room, "echo: **then**")
			if messages, _ := said(t, s, room, b.UserID()); len(messages) != 2 {
				t.Errorf("%d messages for two questions", len(messages))
			}
		})
	}
}

// inHand lets what the bot sends take effect, and never answers.
func inHand(s *matrixtest.Server, bot string) *matrixtest.Hook {
	return s.Fault(matrixtest.On("send").By(bot), matrixtest.Behind(matrixtest.Hang()))
}

// The answer to the beginning of an answer is lost, the homeserver restarts, and
// the whole answer is there before a sync shows the beginning.
// Holds F12.
func TestForgottenBeginning(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{true, false} {
		name := "more follows"
		if final {
			name = "the end follows"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			text := "the beginning of an answer that is long enough to be shown"
			lost := make(chan struct{})
			s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(httptest.NewRecorder(), r)
				s.ForgetTransactions()
				close(lost)
				hangUp(w)
			})
			slow := s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Drop()) // until the next try would be due
			b.says(room, session.Outgoing{ID: "answer", Text: text, Draft: true})
			<-lost
			b.says(room, session.Outgoing{ID: "answer", Text: text + ", and its end", Draft: !final})
			time.Sleep(2500 * time.Millisecond) // longer than a draft waits after a failure
			slow.Remove()
			b.says(room, session.Outgoing{ID: "answer", Text: text + ", and its end"})
			first := peertest.Next(t, you, messageIn(room))
			for {
				e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
				if e.ID != first.ID || e.Kind != peer.Edit {
					t.Errorf("a second message: %+v", e)
				}
				if !e.Live {
					break
				}
			}
			if messages, _ := said(t, s, room, b.UserID()); len(messages) != 1 {
				t.Errorf("%d messages for one answer", len(messages))
			}
		})
	}
}

// The same message comes more than once.
// Holds F13.
func TestDeliveredTwice(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		kind := "plain"
		if encrypted {
			kind = "encrypted"
		}
		t.Run(kind, func(t *testing.T) {
			s, you, b, room := chatting(t, encrypted, echo)
			want := 0
			ask := func(text string) (id string) {
				t.Helper()
				want++
				id = say(t, you, room, text)
				hears(t, you, room, "echo: **"+text+"**")
				if in := b.next(); in.ID != id {
					t.Errorf("heard %+v, want %s", in, text)
				}
				return id
			}
			t.Run("twice in one sync", func(t *testing.T) {
				hook := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), matrixtest.Duplicate())
				ask("one")
				ask("two")
				hook.Remove()
			})
			t.Run("again in a later sync", func(t *testing.T) {
				id := ask("three")
				for range 3 {
					ok(t, s.Redeliver(room, id))
				}
				ask("four")
			})
			all := t // who is started below lives longer than its part
			t.Run("an old token", func(t *testing.T) {
				db := openDB(t, b.dir)
				defer db.Close()
				var old string
				ok(t, db.QueryRowContext(t.Context(), `SELECT next_batch FROM matrix_sync`).Scan(&old))
				ask("five")
				ask("six")
				b.stop()
				if _, err := db.ExecContext(t.Context(), `UPDATE matrix_sync SET next_batch = ?`, old); err != nil {
					t.Fatal(err)
				}
				b = startWith(all, b.server, b.dir, echo, hurry, you.UserID())
				ask("seven")
			})
			t.Run("the bot comes back into the room", func(t *testing.T) {
				s.SetState(you.UserID(), room, "m.room.member", b.UserID(), map[string]any{"membership": "leave"})
				peertest.Next(t, you, peertest.Kind(room, peer.Left))
				s.SetState(you.UserID(), room, "m.room.member", b.UserID(), map[string]any{"membership": "invite", "is_direct": true})
				peertest.Next(t, you, peertest.Kind(room, peer.Joined))
				ask("eight")
			})
			if messages, edits := said(t, s, room, b.UserID()); len(messages) != want || edits != 0 {
				t.Errorf("%d messages and %d edits for %d questions", len(messages), edits, want)
			}
		})
	}
}
