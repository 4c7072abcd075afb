package matrix_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

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

// arrives reads an answer, in parts or as its beginning and a file, and returns its messages.
func arrives(t *testing.T, you *peer.Peer, room, bot, want string) []peer.Event {
	t.Helper()
	first := peertest.Next(t, you, spoken(room, bot))
	said, isFile := strings.CutSuffix(first.Body, wholeNote)
	if !isFile {
		return collect(t, you, room, bot, want, first)
	}
	if fences := strings.Count(said, "```"); fences%2 != 0 || !strings.HasPrefix(letters(want), letters(said)) || letters(said) == "" {
		t.Errorf("%d fences; the first message is not the beginning of the answer: %.200q", fences, said)
	}
	file := peertest.Next(t, you, spoken(room, bot))
	if file.File == nil {
		t.Fatalf("no file follows, but %v %.60q", file.Kind, file.Body)
	}
	if got, err := you.Download(t.Context(), file); err != nil || letters(string(got)) != letters(want) {
		t.Errorf("the file has %d bytes, %v; want %d", len(got), err, len(want))
	}
	return []peer.Event{first, file}
}

// collect puts the bot's messages together until they say all of want.
func collect(t *testing.T, you *peer.Peer, room, bot, want string, come ...peer.Event) (parts []peer.Event) {
	t.Helper()
	got, at := "", map[string]int{}
	for letters(got) != letters(want) {
		if len(got) > 2*len(want) {
			t.Fatalf("%d messages do not say what they should", len(parts))
		}
		var e peer.Event
		if len(come) > 0 {
			e, come = come[0], come[1:]
		} else {
			e = peertest.Next(t, you, spoken(room, bot))
		}
		if i, edit := at[e.ID]; edit {
			parts[i] = e
		} else {
			at[e.ID] = len(parts)
			parts = append(parts, e)
		}
		got = ""
		for _, p := range parts {
			got += p.Body + "\n"
		}
	}
	for i, p := range parts {
		if !utf8.ValidString(p.Body) || strings.Contains(p.Body, "\uFFFD") {
			t.Errorf("part %d is cut inside a character", i)
		}
		if strings.Count(p.Body, "```")%2 != 0 {
			t.Errorf("part %d leaves a fence open", i)
		}
		if strings.Contains(p.Body, "if a < b") && !strings.Contains(p.Body, "```go\n") {
			t.Errorf("part %d shows code as if it were words", i)
		}
	}
	return parts
}

var largeTexts = map[string]string{
	"70 kB of paragraphs":    strings.Repeat("A sentence with **strong** words & <signs>. Another one follows it.\n\n", 1000),
	"a line of 70 kB":        strings.Repeat("word ", 14_000),
	"a word of 70 kB":        strings.Repeat("x", 70_000),
	"60 kB of code":          "Look:\n\n```go\n" + strings.Repeat("if a < b && c > d { return \"x\" }\n", 1900) + "```\n\nThat is all.",
	"a line of code, 60 kB":  "```\n" + strings.Repeat("0123456789", 6000) + "\n```",
	"70 kB of emoji":         strings.Repeat("🙂", 17_500),
	"70 kB of Chinese words": strings.Repeat("日本語の文章。", 3400),
}

// A large answer arrives whole, in parts or as a file, and no event is ever refused for
// its size: as one message, and at the end of a draft.
// Holds F41, M21.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, nil)
	refused := s.Fault(func(r *matrixtest.Request) bool { return r.Endpoint == "send" && len(r.Body) > 65_536-900 }, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
	})
	for name, text := range largeTexts {
		t.Run(name, func(t *testing.T) {
			b.says(room, session.Outgoing{ID: name, Text: text})
			if n := len(arrives(t, you, room, b.UserID(), text)); n < 2 || n > 4 {
				t.Errorf("%d messages", n)
			}
			id := name + ", drafted"
			b.says(room, session.Outgoing{ID: id, Text: "The beginning of the answer, long enough to be shown", Draft: true})
			first := peertest.Next(t, you, messageIn(room))
			b.says(room, session.Outgoing{ID: id, Text: text})
			edit := arrives(t, you, room, b.UserID(), text)[0]
			if edit.Kind != peer.Edit || edit.ID != first.ID || edit.Live {
				t.Errorf("after the draft came %+v", edit.Kind)
			}
		})
	}
	if n := refused.Hits(); n != 0 {
		t.Errorf("%d events were too large", n)
	}
}

// Homeservers and what stands in front of them may take less than the specification says.
// Then a message is its beginning and one file, in its place.
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
		{"plain", false, false, 20_000, 600, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"encrypted", true, false, 20_000, 600, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"one message", true, false, 20_000, 250, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"the last part", false, false, 36_000, 1300, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"a beginning that was too large", true, false, 20_000, 3000, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"much less", true, false, 8_000, 600, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"the code with another status", false, false, 20_000, 600, matrixtest.Status(http.StatusBadRequest, "M_TOO_LARGE")},
		{"a proxy's page", true, false, 20_000, 600, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "<html>413 Request Entity Too Large</html>", http.StatusRequestEntityTooLarge)
		}},
		{"the end of a draft", true, true, 20_000, 600, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, you, b, room := chatting(t, c.encrypted, nil)
			hook := s.Fault(func(r *matrixtest.Request) bool { return r.Endpoint == "send" && len(r.Body) > c.limit }, c.fault)
			want := ""
			for i := range c.words {
				want += fmt.Sprintf("Paragraph %d, with some words in it, and a few more.\n\n", i)
			}
			if c.name == "the last part" {
				want = "Short.\n\n```\n" + strings.Repeat("x", 9_000) + "\n```\n\n" + strings.Repeat("\"<&>\" ", 2000)
			}
			if c.drafted {
				b.says(room, session.Outgoing{ID: "large", Text: want[:60], Draft: true})
				peertest.Next(t, you, messageIn(room))
			}
			for _, m := range []session.Outgoing{{ID: "large", Text: want}, {ID: "then", Text: "then"}} {
				b.says(room, m)
			}
			if got := arrives(t, you, room, b.UserID(), want); len(got) != 2 || got[1].File == nil || c.drafted != (got[0].Kind == peer.Edit) {
				t.Errorf("%d messages, the first a %v", len(got), got[0].Kind)
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

// A part may be refused when others are in the room already. Then they are taken out, and
// the first one becomes the beginning.
// Holds F41.
func TestLaterPartTooLarge(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, nil)
	words := strings.Repeat("Some words in a paragraph.\n\n", 1500)
	s.Fault(matrixtest.On("send").Saying("heavy"), matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE"))
	text := words + strings.Repeat("A heavy paragraph.\n\n", 400)
	for _, m := range []session.Outgoing{{ID: "large", Text: text}, {ID: "then", Text: "then"}} {
		b.says(room, m)
	}
	first := peertest.Next(t, you, messageIn(room))
	var sent []string
	e := peertest.Next(t, you, spoken(room, b.UserID()))
	for ; e.Kind == peer.Message; e = peertest.Next(t, you, spoken(room, b.UserID())) {
		sent = append(sent, e.ID)
	}
	if e.Kind != peer.Edit || e.ID != first.ID || !strings.HasSuffix(e.Body, wholeNote) || len(sent) == 0 {
		t.Errorf("after %d other parts came %v %.60q", len(sent), e.Kind, e.Body)
	}
	file := peertest.Next(t, you, messageIn(room))
	if file.File == nil {
		t.Fatalf("then came %.60q", file.Body)
	}
	if got, err := you.Download(t.Context(), file); err != nil || letters(string(got)) != letters(text) {
		t.Errorf("the file has %d bytes, %v; want %d", len(got), err, len(text))
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "then" {
		t.Errorf("then came %.60q", e.Body)
	}
	for _, id := range sent {
		await(t, s, "another part is still there", func() bool { return takenBack(s, b, room, id) })
	}
	if takenBack(s, b, room, first.ID) || takenBack(s, b, room, file.ID) {
		t.Error("the answer is redacted")
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
			if e := peertest.Next(t, you, messageIn(room)); e.Body != "then" {
				t.Errorf("got %.60q", e.Body)
			}
			await(t, s, "not given up", func() bool { return b.Status(t.Context()).Dead == 3 && b.Status(t.Context()).Outbox == 0 })
			if n := hook.Hits(); n > 6 {
				t.Errorf("%d tries", n)
			}
		})
	}
}
