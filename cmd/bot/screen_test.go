package main

import (
	"bytes"
	"strings"
	"testing"

	"reverie/internal/session"
)

// page is a display that keeps what is printed.
type page struct {
	text   strings.Builder
	status []string // each that stood there, in order
}

func (p *page) print(text, status string) {
	p.text.WriteString(text)
	if len(p.status) == 0 || p.status[len(p.status)-1] != status {
		p.status = append(p.status, status)
	}
}

func (p *page) width() int { return 80 }

// said shows messages at a terminal, and elsewhere.
func said(t *testing.T, messages ...session.Outgoing) (live *page, script string) {
	t.Helper()
	var out bytes.Buffer
	live = new(page)
	for _, s := range []*screen{{display: live, name: "R"}, {out: &out, name: "R"}} {
		chat := &terminal{screen: s}
		for _, m := range messages {
			must(t, chat.Say(t.Context(), "", m))
		}
	}
	return live, out.String()
}

// What an answer waits for stands in a place of a terminal that goes away, and nowhere in
// what a script reads.
func TestProgressOnTheScreen(t *testing.T) {
	live, script := said(t,
		session.Outgoing{ID: "1", Text: "still working: thinking", Draft: true, Notice: true},
		session.Outgoing{ID: "1", Text: "The answer.", Draft: true},
		session.Outgoing{ID: "1", Text: "still working: late", Draft: true, Notice: true},
		session.Outgoing{ID: "1", Text: "The answer."})
	if script != "The answer.\n" {
		t.Errorf("script: %q", script)
	}
	if got := live.text.String(); got != "\nR: The answer.\n\n" {
		t.Errorf("live: %q", got)
	}
	if got := strings.Join(live.status, "|"); got != "still working: thinking|still working: late|" {
		t.Errorf("status: %q", got)
	}
}

// A question stands on the screen with what may be chosen. Closing it says nothing: what came of
// it is a message of its own.
func TestOptionsOnTheScreen(t *testing.T) {
	live, script := said(t,
		session.Outgoing{ID: "1", Text: "May I? Write !approve K7.", Options: []session.Option{{ID: "once", Text: "Yes, once"}, {ID: "no", Text: "No"}}},
		session.Outgoing{ID: "2", Text: "Done."},
		session.Outgoing{ID: "1", Text: "It is closed.", Notice: true})
	if script != "May I? Write !approve K7.\n1. Yes, once\n2. No\nDone.\n" {
		t.Errorf("script: %q", script)
	}
	if got := live.text.String(); got != "\nR: May I? Write !approve K7.\n1. Yes, once\n2. No\n\n\nR: Done.\n\n" {
		t.Errorf("live: %q", got)
	}
}

// TestChangedAnswer: an answer that changes what was shown is shown again; what only grows is not.
func TestChangedAnswer(t *testing.T) {
	draft := func(text string) session.Outgoing { return session.Outgoing{ID: "1", Text: text, Draft: true} }
	for _, c := range []struct {
		name string
		said []session.Outgoing
		want string
	}{
		{"grows", []session.Outgoing{draft("One\nTw"), draft("One\nTwo\nThr"), {ID: "1", Text: "One\nTwo\nThree"}}, "\nR: One\nTwo\nThree\n\n"},
		{"the same again", []session.Outgoing{{ID: "1", Text: "One"}, {ID: "1", Text: "One"}}, "\nR: One\n\n"},
		{"shorter for a moment", []session.Outgoing{draft("One\nTwo\n"), draft("One\n"), {ID: "1", Text: "One\nTwo"}}, "\nR: One\nTwo\n\n"},
		{"other words", []session.Outgoing{draft("One\nTwo\n"), {ID: "1", Text: "Four"}}, "\nR: One\nTwo\n\nR: Four\n\n"},
		{"edited later", []session.Outgoing{{ID: "1", Text: "One"}, {ID: "1", Text: "Two"}}, "\nR: One\n\n\nR: Two\n\n"},
	} {
		if live, _ := said(t, c.said...); live.text.String() != c.want {
			t.Errorf("%s: %q, want %q", c.name, live.text.String(), c.want)
		}
	}
}
