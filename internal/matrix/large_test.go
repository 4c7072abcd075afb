package matrix_test

import (
	"net/http"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

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
