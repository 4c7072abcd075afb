package memory

import (
	"slices"
	"strings"
	"testing"
)

// TestCorrectedTalkStaysAway: a message that repeats what was corrected or put away is
// not found by itself, neither beside another one; it is for whoever asks for the past,
// and once the change is taken back.
// Holds W13.
func TestCorrectedTalkStaysAway(t *testing.T) {
	ctx, s := t.Context(), openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: FTS5})
	me := Private(owner)
	e := noted(t, s, me, "My sister's name is Jana.", owner)
	tea := noted(t, s, me, "green tea", owner)
	for i, text := range []string{"Remember: my sister’s name is Jana, please!", "My sister paints green tea cups.", "I was told that my sister's name is Jana"} {
		turn := Turn{Scope: me, Event: "$" + text[:4], Sender: owner, Text: text, At: today, Conversation: "!r", Seq: i + 1}
		if i == 2 {
			turn.Sender = ""
		}
		noError(t, s.Hear(ctx, turn))
	}
	found := func(past bool) (said []string) {
		for _, h := range must(s.Search(ctx, Query{Text: "sister Jana paints green cups", Scopes: []Scope{me}, Now: today, K: 20, Turns: true, Past: past}))(t) {
			if h.Turn == nil {
				continue
			}
			said = append(said, h.Turn.Text)
			for _, a := range h.Around {
				said = append(said, a.Text)
			}
		}
		slices.Sort(said)
		return slices.Compact(said)
	}
	check := func(when string, past, jana bool) {
		t.Helper()
		got := strings.Join(found(past), " | ")
		if !strings.Contains(got, "paints") || strings.Contains(got, "Jana") != jana {
			t.Errorf("%s: found %q", when, got)
		}
	}
	check("at first", false, true)
	next := must(s.Supersede(ctx, as(owner), e.ID, "My sister's name is Mira."))(t)
	if err := s.Retire(ctx, as(owner), tea.ID); err != nil { // too short to silence what holds it
		t.Fatal(err)
	}
	check("corrected", false, false)
	check("the past", true, true)
	noError(t, s.Retire(ctx, as(owner), next.ID))
	check("put away", false, false)
	noted(t, s, me, "my sister's name is Jana", owner)
	check("true after all", false, true)
}
