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

// collect puts the bot's messages together until they say all of want.
func collect(t *testing.T, you *peer.Peer, room, bot, want string) (parts []peer.Event) {
	t.Helper()
	got, at := "", map[string]int{}
	for letters(got) != letters(want) {
		if len(got) > 2*len(want) {
			t.Fatalf("%d messages do not say what they should", len(parts))
		}
		e := peertest.Next(t, you, spoken(room, bot))
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

// A large answer arrives whole, in as many events as it needs, and no event is
// ever refused for its size: as one message, and at the end of a draft.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), nil, hurry, you.UserID())
	room := chat(t, s, you, b, true)
	refused := s.Fault(func(r *matrixtest.Request) bool { return r.Endpoint == "send" && len(r.Body) > 65_536-900 }, func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		next.ServeHTTP(w, r)
	})
	for name, text := range largeTexts {
		t.Run(name, func(t *testing.T) {
			if err := b.Say(t.Context(), room, session.Outgoing{ID: name, Text: text}); err != nil {
				t.Fatal(err)
			}
			if n := len(collect(t, you, room, b.UserID(), text)); n < 2 || n > 12 {
				t.Errorf("%d messages", n)
			}
			id := name + ", drafted"
			if err := b.Say(t.Context(), room, session.Outgoing{ID: id, Text: "The beginning of the answer, long enough to be shown", Draft: true}); err != nil {
				t.Fatal(err)
			}
			first := peertest.Next(t, you, messageIn(room))
			if err := b.Say(t.Context(), room, session.Outgoing{ID: id, Text: text}); err != nil {
				t.Fatal(err)
			}
			edit := peertest.Next(t, you, spoken(room, b.UserID()))
			if edit.Kind != peer.Edit || edit.ID != first.ID || edit.Live {
				t.Errorf("after the draft came %+v", edit.Kind)
			}
			rest, ok := strings.CutPrefix(letters(text), letters(edit.Body))
			if !ok {
				t.Fatal("the edit is not the beginning of the answer")
			}
			collect(t, you, room, b.UserID(), rest)
		})
	}
	if n := refused.Hits(); n != 0 {
		t.Errorf("%d events were too large", n)
	}
}

// Homeservers and what stands in front of them may take less than the
// specification says. Then a message is sent in smaller parts, in its place.
func TestServerTakesLess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		encrypted bool
		drafted   bool
		limit     int
		fault     matrixtest.Fault
	}{
		{"plain", false, false, 20_000, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"encrypted", true, false, 20_000, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"much less", true, false, 8_000, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
		{"the code with another status", false, false, 20_000, matrixtest.Status(http.StatusBadRequest, "M_TOO_LARGE")},
		{"a proxy's page", true, false, 20_000, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			http.Error(w, "<html>413 Request Entity Too Large</html>", http.StatusRequestEntityTooLarge)
		}},
		{"the end of a draft", true, true, 20_000, matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE")},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, server := pretend(t)
			you := person(t, s, "you")
			b := startWith(t, server, t.TempDir(), nil, hurry, you.UserID())
			room := chat(t, s, you, b, c.encrypted)
			hook := s.Fault(func(r *matrixtest.Request) bool { return r.Endpoint == "send" && len(r.Body) > c.limit }, c.fault)
			want := ""
			for i := range 600 {
				want += fmt.Sprintf("Paragraph %d, with some words in it, and a few more.\n\n", i)
			}
			if c.drafted {
				if err := b.Say(t.Context(), room, session.Outgoing{ID: "large", Text: want[:60], Draft: true}); err != nil {
					t.Fatal(err)
				}
				peertest.Next(t, you, messageIn(room))
			}
			for _, m := range []session.Outgoing{{ID: "large", Text: want}, {ID: "then", Text: "then"}} {
				if err := b.Say(t.Context(), room, m); err != nil {
					t.Fatal(err)
				}
			}
			parts := collect(t, you, room, b.UserID(), want+"then")
			if last := parts[len(parts)-1].Body; last != "then" {
				t.Errorf("the next message is not the last one, but %q", last)
			}
			if hook.Hits() == 0 {
				t.Error("nothing was too large: the test tests nothing")
			}
			if err := b.Say(t.Context(), room, session.Outgoing{ID: "large", Text: want}); err != nil { // as after a restart
				t.Fatal(err)
			}
			if err := b.Say(t.Context(), room, session.Outgoing{ID: "end", Text: "the end"}); err != nil {
				t.Fatal(err)
			}
			for {
				e := peertest.Next(t, you, spoken(room, b.UserID()))
				if e.Body == "the end" {
					break
				}
				if e.Kind == peer.Message {
					t.Errorf("a part was said twice: %.60q", e.Body)
				}
			}
			if st := b.Status(t.Context()); st.Dead != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

// A server that finds everything too large does not hold up what comes then.
func TestAlwaysTooLarge(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	b := startWith(t, server, t.TempDir(), nil, hurry, you.UserID())
	room := chat(t, s, you, b, false)
	hook := s.Fault(matrixtest.On("send").Saying("unloved"), matrixtest.Status(http.StatusRequestEntityTooLarge, "M_TOO_LARGE"))
	for _, m := range []session.Outgoing{{ID: "1", Text: strings.Repeat("unloved words ", 2000)}, {ID: "2", Text: "then"}} {
		if err := b.Say(t.Context(), room, m); err != nil {
			t.Fatal(err)
		}
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "then" {
		t.Errorf("got %.60q", e.Body)
	}
	await(t, s, "not given up", func() bool { return b.Status(t.Context()).Dead > 1 })
	if n := hook.Hits(); n > 100 {
		t.Errorf("%d tries", n)
	}
}
