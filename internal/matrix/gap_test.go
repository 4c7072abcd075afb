package matrix_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix"
	"reverie/internal/matrix/peer"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// The same with a real homeserver, whose tokens are its own.
// Holds F14.
func TestGapIsFilledFromARealServer(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
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

// notices are what the bot has told a room by the way, in the clear.
func notices(t *testing.T, s *matrixtest.Server, b *bot, room string) (all []string) {
	t.Helper()
	for _, sent := range s.Sends() {
		var content struct {
			Type string `json:"msgtype"`
			Body string `json:"body"`
		}
		ok(t, json.Unmarshal(sent.Content, &content))
		if sent.User == b.UserID() && sent.Room == room && !sent.Repeat && content.Type == "m.notice" {
			all = append(all, content.Body)
		}
	}
	return all
}

// More was written than is fetched: what is near is answered.
// Holds F14.
func TestGapBeyondTheBounds(t *testing.T) {
	t.Parallel()
	quietly := func(b *bot, in session.Inbound) { b.done(in) }
	s, you, b, room := chatting(t, false, quietly)
	s.Say(you.UserID(), room, "before")
	b.next()
	b.stop()
	s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Cut(2))
	const n = matrix.GapEvents + 100
	var want, got []string
	for i := range n {
		if id := s.Say(you.UserID(), room, fmt.Sprint("number ", i)); i >= n-2-matrix.GapEvents {
			want = append(want, id)
		}
	}
	b = b.again(quietly)
	for range want {
		got = append(got, b.next().ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("heard %d messages, among them others than the %d that were near", len(got), len(want))
	}
}

// leftOut has the bot's syncs leave out all messages, as those of a homeserver
// that is being stopped may do, until some have surely come and been stored.
func leftOut(t *testing.T, s *matrixtest.Server, bot string, do func()) {
	t.Helper()
	empty := inPlace(t, s, matrixtest.On("sync").By(bot), matrixtest.Timelines(func(string, []json.RawMessage) []json.RawMessage { return nil }))
	do()
	before := empty.Hits()
	await(t, s, "no more syncs", func() bool { return empty.Hits() >= before+2 })
	empty.Remove()
}

// A homeserver that is being stopped answers a sync with a token that is past a
// message which it does not show. The bot finds the message when it is back.
// Holds F14.
func TestLeftOutByASync(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"the homeserver restarts", "the bot restarts"} {
		t.Run(c, func(t *testing.T) {
			s, you, b, room := chatting(t, true, echo)
			say(t, you, room, "before")
			b.next()
			leftOut(t, s, b.UserID(), func() { say(t, you, room, "left out") })
			if c == "the bot restarts" {
				b = b.again(echo)
			} else {
				s.Fault(matrixtest.On("sync").By(b.UserID()).Times(1), matrixtest.Status(http.StatusBadGateway, ""))
			}
			b.hears("left out")
			say(t, you, room, "after")
			b.hears("after")
		})
	}
}

// What is left out is the bot's own message, of which it does not know whether
// it was taken.
// Holds F14.
func TestEchoLeftOutByASync(t *testing.T) {
	t.Parallel()
	for c, poll := range map[string]matrixtest.Fault{
		"before the bot ends": func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) },
		"after it is back":    matrixtest.DelayAnswer(time.Minute),
	} {
		t.Run(c, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			say(t, you, room, "before")
			b.next()
			// Some homeservers show transaction ids in syncs only.
			txn := regexp.MustCompile(`"transaction_id":"[^"]*"`)
			s.Fault(matrixtest.On("messages").By(b.UserID()), matrixtest.Changed(func(a *httptest.ResponseRecorder, _ *http.Request) {
				bare := txn.ReplaceAll(a.Body.Bytes(), []byte(`"age":1`))
				a.Body.Reset()
				a.Body.Write(bare)
			}))
			var once peer.Event
			leftOut(t, s, b.UserID(), func() {
				s.Fault(matrixtest.On("send").By(b.UserID()).Times(1), taken(s))
				again := s.Fault(matrixtest.On("send").By(b.UserID()).After(1), func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { hangUp(w) }) // the end comes before the next try
				polls := inPlace(t, s, matrixtest.On("sync").By(b.UserID()), poll)
				b.says(room, session.Outgoing{ID: "once", Text: "once"})
				once = peertest.Next(t, you, messageIn(room))
				if c == "before the bot ends" {
					before := polls.Hits()
					await(t, s, "no more syncs", func() bool { return polls.Hits() >= before+2 })
				}
				b.stop()
				again.Remove()
				polls.Remove()
				b = startWith(t, b.server, b.dir, nil, hurry, you.UserID()) // its syncs leave it out as well
			})
			b.says(room, session.Outgoing{ID: "then", Text: "then"})
			if e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Kind == peer.Message && e.ID != once.ID }); e.Body != "then" {
				t.Errorf("after the restart came %+v: said twice", e)
			}
		})
	}
}
