package matrix_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// letters is what of a text must survive: all but white space and the fences
// of code that was cut.
func letters(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if t := strings.TrimSpace(line); !strings.HasPrefix(t, "```") {
			b.WriteString(strings.Join(strings.Fields(t), ""))
		}
	}
	return b.String()
}

// wholeNote stands at the end of the beginning of an answer that is a file.
const wholeNote = "\n\n*This is the beginning of a long answer: all of it is in the file answer.md below.*"

// arrives reads an answer that comes as its beginning and a file, and returns both messages.
func arrives(t *testing.T, you *peer.Peer, room, bot, want string) (first, file peer.Event) {
	t.Helper()
	first = peertest.Next(t, you, spoken(room, bot))
	said, noted := strings.CutSuffix(first.Body, wholeNote)
	if fences := strings.Count(said, "```"); fences%2 != 0 || !strings.HasPrefix(letters(want), letters(said)) || letters(said) == "" || !noted {
		t.Errorf("%d fences; the first message is not the beginning of the answer: %.200q", fences, said)
	}
	if file = peertest.Next(t, you, spoken(room, bot)); file.File == nil {
		t.Fatalf("no file follows, but %v %.60q", file.Kind, file.Body)
	}
	if got, err := you.Download(t.Context(), file); err != nil || letters(string(got)) != letters(want) {
		t.Errorf("the file has %d bytes, %v; want %d", len(got), err, len(want))
	}
	return first, file
}

// Homeservers and what stands in front of them may take less than the specification says.
// Then a message, or each part of a long one, is its beginning and one file, in its place.
// Holds F41, M21.
func TestServerTakesLess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		encrypted bool
		drafted   bool
		limit     int
		words     int // paragraphs
		fault     matrixtest.Fault
	}{
		{"encrypted", true, false, 20_000, 250, nil},
		{"a beginning that was too large", true, false, 20_000, 3000, nil},
		{"much less", true, false, 8_000, 250, nil},
		{"the code with another status", false, false, 20_000, 250, matrixtest.Status(http.StatusBadRequest, "M_TOO_LARGE")},
		{"a proxy's page", true, false, 20_000, 250, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "<html>413 Request Entity Too Large</html>", http.StatusRequestEntityTooLarge)
		}},
		{"the end of a draft", true, true, 20_000, 250, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b, room := chatting(t, c.encrypted, nil)
			if c.fault == nil {
				c.fault = matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")
			}
			hook := s.Fault(func(r *matrixtest.Request) bool { return r.Endpoint == "send" && len(r.Body) > c.limit }, c.fault)
			want := ""
			for i := range c.words {
				want += fmt.Sprintf("Paragraph %d, with some words in it, and a few more.\n\n", i)
			}
			if c.drafted {
				b.says(room, session.Outgoing{ID: "large", Text: want[:60], Draft: true})
				peertest.Next(t, you, messageIn(room))
			}
			for _, m := range []session.Outgoing{{ID: "large", Text: want}, {ID: "then", Text: "then"}} {
				b.says(room, m)
			}
			if first, _ := arrives(t, you, room, b.UserID(), want); c.drafted != (first.Kind == peer.Edit) {
				t.Errorf("the first message is a %v", first.Kind)
			}
			if e := peertest.Next(t, you, spoken(room, b.UserID())); e.Body != "then" {
				t.Errorf("the next message is not the last one, but %.60q", e.Body)
			}
			if hook.Hits() == 0 {
				t.Error("nothing was too large: the test tests nothing")
			}
			refused := hook.Hits()
			for _, m := range []session.Outgoing{{ID: "large", Text: want}, {ID: "end", Text: "the end"}} { // as after a restart
				b.says(room, m)
			}
			if e := peertest.Next(t, you, spoken(room, b.UserID())); e.Body != "the end" || hook.Hits() != refused {
				t.Errorf("said again: %v %.60q, refused %d times", e.Kind, e.Body, hook.Hits()-refused)
			}
			if st := b.Status(t.Context()); st.Dead != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// A server that finds everything too large does not hold up what comes then, nor is it
// asked for ever: the beginning, the file and the sentence about it are tried once.
// Holds F41.
func TestAlwaysTooLarge(t *testing.T) {
	t.Parallel()
	for name, upload := range map[string]bool{"events": false, "files too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, false, nil)
			tooLarge := matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")
			hook := s.Fault(func(r *matrixtest.Request) bool {
				return r.Endpoint == "send" && r.User == b.UserID() && !strings.Contains(string(r.Body), `"then"`)
			}, tooLarge)
			if upload {
				s.Fault(matrixtest.On("upload").By(b.UserID()), tooLarge)
			}
			for _, m := range []session.Outgoing{{ID: "1", Text: strings.Repeat("unloved words ", 2000)}, {ID: "2", Text: "then"}} {
				b.says(room, m)
			}
			hears(t, you, room, "then")
			await(t, s, "not given up", func() bool { return b.Status(t.Context()).Dead == 3 && b.Status(t.Context()).Outbox == 0 })
			if n := hook.Hits(); n > 6 {
				t.Errorf("%d tries", n)
			}
		})
	}
}
