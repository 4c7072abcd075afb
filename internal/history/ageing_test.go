package history_test

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// part is what a summary has under a heading.
func part(summary, heading string) string {
	_, text, _ := strings.Cut("\n\n"+summary, "\n\n"+heading+":\n")
	for _, next := range []string{history.LongestAgo, history.Earlier, history.Lately} {
		text, _, _ = strings.Cut(text, "\n\n"+next+":\n")
	}
	return text
}

// long is n sentences about round.
func long(round, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "In round %d they spoke of plant %d at length. ", round, i)
	}
	return b.String()
}

// checkAges fails unless each part of a summary of most tokens keeps to its share.
func checkAges(t *testing.T, summary string, most int) {
	t.Helper()
	longest, earlier := llm.EstimateTokens(part(summary, history.LongestAgo)), llm.EstimateTokens(part(summary, history.Earlier))
	if longest > most*history.LongestShare/100 || earlier > most*history.EarlierShare/100 {
		t.Errorf("%d and %d tokens of %d have age: %s", longest, earlier, most, summary)
	}
	if n := llm.EstimateTokens(summary); n > most*120/100 {
		t.Errorf("%d tokens: %s", n, summary)
	}
}

// TestAges: however long each part is, after many compactions the parts keep to their
// shares, the newest is the longest, and what is locked stays.
func TestAges(t *testing.T) {
	const most = 400
	next := map[string]func(before string, round int) string{
		"extract": func(before string, round int) string {
			var said []string
			for i := range 30 {
				said = append(said, fmt.Sprintf("u In round %d I speak of plant %d at length", round, i))
			}
			return history.Extract(before, talk(said...), most)
		},
		"a model that keeps all": func(before string, round int) string {
			got, err := history.Aged(before, "**Longest ago:** "+part(before, history.LongestAgo)+"\n"+part(before, history.Earlier)+
				"\n## Earlier\n"+part(before, history.Lately)+"\nLately: "+long(round, 15), most)
			if err != nil {
				t.Fatal(err)
			}
			return got
		},
		"a model that forgets": func(before string, round int) string {
			got, err := history.Aged(before, "Lately:\n"+long(round, 30), most) // as long as all of it may be
			if err != nil {
				t.Fatal(err)
			}
			return got
		},
	}
	for name, next := range next {
		t.Run(name, func(t *testing.T) {
			got := "DECISION_LOCKED: the fence stays green\n" + long(0, 15)
			for round := 1; round <= 6; round++ {
				got = next(got, round)
				checkAges(t, got, most)
			}
			for heading, want := range map[string]string{history.LongestAgo: "round 4", history.Earlier: "round 5", history.Lately: "round 6"} {
				if text := part(got, heading); !strings.Contains(text, want) {
					t.Errorf("%s: %q lacks %s", heading, text, want)
				}
			}
			if len(part(got, history.Lately)) <= len(part(got, history.Earlier)) || len(part(got, history.Earlier)) <= len(part(got, history.LongestAgo)) {
				t.Errorf("the oldest is not the shortest: %s", got)
			}
			if !strings.Contains(part(got, history.LongestAgo), "DECISION_LOCKED: the fence stays green") {
				t.Errorf("what is locked is gone: %s", got)
			}
		})
	}
}

func TestAged(t *testing.T) {
	before := "Longest ago:\nThey met.\n\nEarlier:\nThey built a shed.\n\nLately:\nThey painted it."
	for _, tt := range []struct{ name, before, written, want string }{
		{"no headings", before, " They met and painted a shed. ", "They met and painted a shed."},
		{"the first one", "", "Lately: They met.", "They met."},
		{"all parts", before, "Longest ago: They met, built a shed.\nEarlier: They painted it.\nLately: It rained.",
			"Longest ago:\nThey met, built a shed.\n\nEarlier:\nThey painted it.\n\nLately:\nIt rained."},
		{"what was forgotten", before, "Lately:\nIt rained.", "Longest ago:\nThey met.\nThey built a shed.\n\nEarlier:\nThey painted it.\n\nLately:\nIt rained."},
		{"after one without headings", "They met.", "lately\nIt rained.", "Earlier:\nThey met.\n\nLately:\nIt rained."},
		{"a word is no heading", before, "Earlier they met. Lately: never.", "Earlier they met. Lately: never."},
	} {
		if got, err := history.Aged(tt.before, tt.written, 200); err != nil || got != tt.want {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	if got, err := history.Aged(before, "Earlier:\nThey painted it.", 200); err == nil {
		t.Errorf("without what is new: %q", got)
	}
}
