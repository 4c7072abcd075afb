package matrix_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// essay is an answer that is too large for one event; word makes one of its own.
func essay(word string) string {
	return strings.Repeat("A paragraph of **"+word+"** and what there is to be said of it, which is much.\n\n", 2500)
}

// outgoing is what the bot has sent into a room.
func outgoing(s *matrixtest.Server, b *bot, room string) (n int) {
	for _, sent := range s.Sends() {
		if sent.User == b.UserID() && sent.Room == room {
			n++
		}
	}
	return n
}

// takenBack tells whether an event of the bot in a room was redacted.
func takenBack(s *matrixtest.Server, b *bot, room, id string) bool {
	return slices.ContainsFunc(eventsIn(s, room, b.UserID(), "m.room.message", "m.room.encrypted"), func(e roomEvent) bool {
		return e.ID == id && e.Unsigned.Because != nil
	})
}

// TestLongAnswerIsAFile: of an answer that is too large for one event the room gets the
// beginning and all of it as a file, once, also when we die over it: while it is uploaded
// and while it is sent.
// Holds F41, M47.
func TestLongAnswerIsAFile(t *testing.T) {
	t.Parallel()
	for _, encrypted := range []bool{false, true} {
		t.Run(map[bool]string{false: "plain", true: "encrypted"}[encrypted], func(t *testing.T) {
			t.Parallel()
			text := essay("words")
			answer := func(b *bot, in session.Inbound) {
				for range 2 { // saying it twice is saying it once
					b.tells(in.Room, session.Outgoing{ID: "re:" + in.ID, Text: text, ReplyTo: in.ID})
				}
			}
			s, you, b, room := chatting(t, encrypted, answer)
			upload := s.Fault(matrixtest.On("upload").By(b.UserID()), matrixtest.Hang())
			say(t, you, room, "tell me all")
			b.next()
			await(t, s, "it is not uploaded", func() bool { return upload.Hits() > 0 })
			b.stop()
			upload.Remove()
			uploads := s.Fault(matrixtest.On("upload").By(b.UserID()), func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) })
			send := s.Fault(matrixtest.On("send").By(b.UserID()), matrixtest.Hang())
			b = b.again(answer)
			b.next() // nothing said that it was handled
			await(t, s, "it is not sent", func() bool { return send.Hits() > 0 })
			b.stop()
			send.Remove()
			b = b.again(answer)
			first, e := arrives(t, you, room, b.UserID(), text)
			if len(first.Body) < 8_000 || first.Encrypted != encrypted {
				t.Errorf("first came %d bytes", len(first.Body))
			}
			if e.File.Name != "answer.md" || e.File.Caption != "" || e.File.Type != "text/markdown" || e.File.Sealed != encrypted || e.Encrypted != encrypted {
				t.Errorf("then came %+v %+v", e, e.File)
			}
			b.next()
			b.stop()
			if n := outgoing(s, b, room); n != 2 {
				t.Errorf("%d events; want 2", n)
			}
			if uploads.Hits() != 1 {
				t.Errorf("uploaded %d times after the one that was cut off", uploads.Hits())
			}
		})
	}
}

// TestLongAnswerNotUploaded: where a file cannot be uploaded, the room is told so once, and
// the next answer comes. Nothing is uploaded again when the same is said again.
// Holds F41, M47.
func TestLongAnswerNotUploaded(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, nil)
	uploads := s.Fault(matrixtest.On("upload").By(b.UserID()), matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE"))
	m := session.Outgoing{ID: "re:1", Text: essay("words")}
	for _, m := range []session.Outgoing{m, {ID: "re:2", Text: "The next answer."}} {
		b.says(room, m)
	}
	if first := peertest.Next(t, you, messageIn(room)); !strings.HasSuffix(first.Body, wholeNote) {
		t.Errorf("first came %q", first.Body)
	}
	come := map[string]int{}
	for range 2 {
		come[peertest.Next(t, you, spoken(room, b.UserID())).Body]++
	}
	if come["answer.md could not be sent: it is larger than the homeserver takes."] != 1 || come["The next answer."] != 1 {
		t.Errorf("then came %v", come)
	}
	for _, m := range []session.Outgoing{m, {ID: "re:3", Text: "The end."}} { // said again after a restart
		b.says(room, m)
	}
	if e := peertest.Next(t, you, spoken(room, b.UserID())); e.Body != "The end." || uploads.Hits() != 1 {
		t.Errorf("said again: %q, %d uploads", e.Body, uploads.Hits())
	}
}

// TestLongAnswerChanges: the file follows the answer: given anew it is another file, and
// the old one is taken back; short, there is none; and what was taken back may come again.
// Holds F41.
func TestLongAnswerChanges(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	sayIt := func(text string, draft bool) {
		t.Helper()
		b.says(room, session.Outgoing{ID: "re:1", Text: text, Draft: draft})
	}
	hear := func(kind peer.Kind) peer.Event {
		t.Helper()
		return peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && e.Sender == b.UserID() && e.Kind == kind })
	}
	gone := func(event string) {
		t.Helper()
		await(t, s, "it is not taken back", func() bool { return takenBack(s, b, room, event) })
	}
	sayIt("The beginning of the answer, long enough to be shown", true)
	first := peertest.Next(t, you, messageIn(room))
	old := ""
	for _, word := range []string{"cats", "dogs", "cats"} {
		sayIt(essay(word), false)
		if e := hear(peer.Edit); e.ID != first.ID || !strings.Contains(e.Body, word) {
			t.Errorf("%s: the first message was not edited: %+v", word, e)
		}
		e := hear(peer.Message)
		if e.File == nil {
			t.Fatalf("%s: got %+v", word, e)
		}
		if got, err := you.Download(t.Context(), e); err != nil || string(got) != essay(word) {
			t.Errorf("%s: the file has %d bytes, %v", word, len(got), err)
		}
		if old != "" {
			gone(old)
		}
		old = e.ID
	}
	sayIt("Never mind.", false)
	if e := hear(peer.Edit); e.Body != "Never mind." {
		t.Errorf("short: %q", e.Body)
	}
	gone(old)
	sayIt(essay("birds"), false)
	hear(peer.Edit)
	file := hear(peer.Message)
	ok(t, b.Remove(t.Context(), room, "re:1"))
	gone(first.ID)
	gone(file.ID)
}

// wholeNote stands at the end of the beginning of an answer that is a file.
const wholeNote = "\n\n*This is the beginning of a long answer: all of it is in the file answer.md below.*"

// arrives reads an answer that comes as its beginning and a file, and returns both messages.
func arrives(t *testing.T, you *peer.Peer, room, bot, want string) (first, file peer.Event) {
	t.Helper()
	first = peertest.Next(t, you, spoken(room, bot))
	if said, noted := strings.CutSuffix(first.Body, wholeNote); !strings.HasPrefix(want, said) || said == "" || !noted {
		t.Errorf("the first message is not the beginning of the answer: %.200q", said)
	}
	if file = peertest.Next(t, you, spoken(room, bot)); file.File == nil {
		t.Fatalf("no file follows, but %v %.60q", file.Kind, file.Body)
	}
	if got, err := you.Download(t.Context(), file); err != nil || string(got) != want {
		t.Errorf("the file has %d bytes, %v; want %d", len(got), err, len(want))
	}
	return first, file
}

// Homeservers and what stands in front of them may take less than the specification says.
// Then a message is a shorter beginning and a file.
// Holds F41, M21.
func TestServerTakesLess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		drafted bool
		words   int // paragraphs
		fault   matrixtest.Fault
	}{
		{"a message", false, 250, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"a beginning", false, 3000, matrixtest.Status(http.StatusBadRequest, "M_TOO_LARGE")},
		{"the end of a draft, and a proxy's page", true, 250, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "<html>413 Request Entity Too Large</html>", http.StatusRequestEntityTooLarge)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, true, nil)
			hook := s.Fault(func(r *matrixtest.Request) bool { return r.Endpoint == "send" && len(r.Body) > 20_000 }, c.fault)
			want := strings.Repeat("A paragraph with some words in it, and a few more.\n\n", c.words)
			if c.drafted {
				b.says(room, session.Outgoing{ID: "large", Text: want[:60], Draft: true})
				peertest.Next(t, you, messageIn(room))
			}
			b.says(room, session.Outgoing{ID: "large", Text: want})
			if first, _ := arrives(t, you, room, b.UserID(), want); c.drafted != (first.Kind == peer.Edit) {
				t.Errorf("the first message is a %v", first.Kind)
			}
			if st := b.Status(t.Context()); st.Dead != 0 || hook.Hits() != 1 {
				t.Errorf("refused %d times, status %+v", hook.Hits(), st)
			}
		})
	}
}

// A server that finds everything too large does not hold up what comes then, nor is it
// asked for ever: the beginning, the file and the sentence about it are tried once.
// Holds F41.
func TestAlwaysTooLarge(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	hook := s.Fault(func(r *matrixtest.Request) bool {
		return (r.Endpoint == "send" || r.Endpoint == "upload") && r.User == b.UserID() && !strings.Contains(string(r.Body), `"then"`)
	}, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE"))
	for _, m := range []session.Outgoing{{ID: "1", Text: strings.Repeat("unloved words ", 2000)}, {ID: "2", Text: "then"}} {
		b.says(room, m)
	}
	hears(t, you, room, "then")
	await(t, s, "not given up", func() bool { return b.Status(t.Context()).Dead == 3 && b.Status(t.Context()).Outbox == 0 })
	if n := hook.Hits(); n > 6 {
		t.Errorf("%d tries", n)
	}
}
