package session

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// TestSummaryAges: after six compactions the summary has its levels, whoever wrote it;
// what is locked is there, !summary shows it, and the newest is taken back to the letter.
func TestSummaryAges(t *testing.T) {
	levels := map[string]func(text string, round int) string{
		"a model": func(text string, round int) string {
			said := fmt.Sprintf("In round %d they spoke of the weather, the garden and bed %d.", round, round)
			if round == 1 {
				return said
			}
			was := "In the beginning they met."
			if strings.Contains(text, "\nEarlier:\n") {
				was = fmt.Sprintf("Up to round %d it was the weather.", round-2)
			}
			return fmt.Sprintf("Longest ago: %s\nEarlier: In round %d it was bed %d.\nLately: %s", was, round-1, round-1, said)
		},
		"none": func(string, int) string { return "" },
	}
	for name, write := range levels {
		t.Run(name, func(t *testing.T) {
			w := newWindow(t, t.TempDir(), 6000)
			var n *int
			n = w.summarising(t, func(text string) string { return write(text, *n) })
			var before history.Compaction
			for round := 1; len(w.compactions(t)) < 6; round++ {
				w.say(t, fmt.Sprint("$d", round), fmt.Sprintf("DECISION_LOCKED: bed %d is for the peas | it is sunny", round))
				for have := len(w.compactions(t)); len(w.compactions(t)) == have; {
					before = w.compacted(t)
					w.chatter(t, fmt.Sprint("c", len(w.script.asked())), 1)
				}
			}
			c := w.compacted(t)
			got := w.say(t, "$s", "!summary").Text
			at := -1
			for _, heading := range []string{history.LongestAgo, history.Earlier, history.Lately} {
				next := strings.Index(got, "\n\n"+heading+":\n")
				if next <= at {
					t.Errorf("%s does not stand where it should: %s", heading, got)
				}
				at = next
			}
			if name == "a model" && (!strings.Contains(c.Summary, "Longest ago:\nUp to round 4") || !strings.Contains(c.Summary, "Lately:\nIn round 6")) {
				t.Errorf("summary: %s", c.Summary)
			}
			longest, rest, _ := strings.Cut(c.Summary, "\n\n"+history.Earlier+":\n")
			earlier, _, _ := strings.Cut(rest, "\n\n"+history.Lately+":\n")
			most := w.summaryRoom(t)
			t.Logf("of %d tokens %d are longest ago, %d earlier, %d all", most, llm.EstimateTokens(longest), llm.EstimateTokens(earlier), llm.EstimateTokens(c.Summary))
			if n := llm.EstimateTokens(longest); n > most*history.LongestShare/100+4 { // the heading
				t.Errorf("%d tokens of %d: %s", n, most, longest)
			}
			if n := llm.EstimateTokens(earlier); n > most*history.EarlierShare/100 {
				t.Errorf("%d tokens of %d: %s", n, most, earlier)
			}
			for round := 1; round <= 6; round++ {
				if want := fmt.Sprintf("bed %d is for the peas", round); !strings.Contains(w.lastPrompt(t), want) || !strings.Contains(got, want) {
					t.Errorf("%q is lost: %s", want, got)
				}
			}
			w.say(t, "$u", "!undo compact")
			if now := w.compacted(t); now.ID != before.ID || now.Text() != before.Text() {
				t.Errorf("it was\n%s\nand is\n%s", before.Text(), now.Text())
			}
			if got := w.say(t, "$s2", "!summary").Text; !strings.HasSuffix(got, before.Text()) {
				t.Errorf("after it was taken back: %s", got)
			}
		})
	}
}

// compacted is the compaction that counts in the room.
func (w *world) compacted(t testing.TB) history.Compaction {
	t.Helper()
	c := result(w.cfg.History.Compacted(t.Context(), "!dm"))(t)
	return c
}

// summaryRoom is how many tokens the words of a summary may have in the room.
func (w *world) summaryRoom(t testing.TB) int {
	t.Helper()
	s := newSession(w.Manager, "!dm")
	past := w.past(t)
	how := result(s.manner(t.Context(), inDM.Place, past, true))(t)
	l := result(s.limits(t.Context(), s.promptTurn(Inbound{Room: "!dm", Sender: owner, Private: true}, past, how), 100))(t)
	return l.Summary * summaryShare / 100
}
