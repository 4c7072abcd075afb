package main

import (
	"bytes"
	"testing"

	"reverie/internal/session"
)

// What an answer waits for stands in a line of a terminal that goes away, and nowhere in
// what a script reads.
func TestProgressOnTheScreen(t *testing.T) {
	for _, live := range []bool{true, false} {
		var out bytes.Buffer
		chat := &terminal{screen: &screen{out: &out, name: "R", live: live}}
		for _, m := range []session.Outgoing{
			{ID: "1", Text: "still working: thinking", Draft: true, Notice: true},
			{ID: "1", Text: "The answer.", Draft: true},
			{ID: "1", Text: "still working: late", Draft: true, Notice: true},
			{ID: "1", Text: "The answer."},
		} {
			if err := chat.Say(t.Context(), "", m); err != nil {
				t.Fatal(err)
			}
		}
		want := "The answer.\n"
		if live {
			want = "still working: thinking" + clearLine + "\nR: The answer.\n"
		}
		if got := out.String(); got != want {
			t.Errorf("live %v: %q, want %q", live, got, want)
		}
	}
}

// A question stands on the screen with what may be chosen. Closing it says nothing: what came of
// it is a message of its own.
func TestOptionsOnTheScreen(t *testing.T) {
	for _, live := range []bool{true, false} {
		var out bytes.Buffer
		chat := &terminal{screen: &screen{out: &out, name: "R", live: live}}
		for _, m := range []session.Outgoing{
			{ID: "1", Text: "May I? Write !approve K7.", Options: []session.Option{{ID: "once", Text: "Yes, once"}, {ID: "no", Text: "No"}}},
			{ID: "2", Text: "Done."},
			{ID: "1", Text: "It is closed.", Notice: true},
		} {
			if err := chat.Say(t.Context(), "", m); err != nil {
				t.Fatal(err)
			}
		}
		want := "May I? Write !approve K7.\n1. Yes, once\n2. No\nDone.\n"
		if live {
			want = "\nR: May I? Write !approve K7.\n1. Yes, once\n2. No\n\nR: Done.\n"
		}
		if got := out.String(); got != want {
			t.Errorf("live %v: %q, want %q", live, got, want)
		}
	}
}
