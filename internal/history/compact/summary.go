package compact

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// Transcript formats messages for the model that summarises them, in about limit tokens. The
// longest messages lose their middle.
func Transcript(all []history.Message, limit int) string {
	type entry struct{ lead, text string }
	var entries []entry
	var sizes []int
	add := func(lead, text string) {
		entries = append(entries, entry{lead, text})
		sizes = append(sizes, llm.EstimateTokens(text))
		limit -= llm.EstimateTokens(lead) + 1
	}
	for i := range all {
		m := &all[i]
		lead := speaker(m)
		if m.Header != "" {
			lead += " " + m.Header
		}
		if m.Text != "" {
			add(lead, m.Text)
		}
		for _, c := range m.Calls {
			add(speaker(m)+" calls "+c.Name, c.Arguments)
		}
	}
	cap := uniformCap(sizes, limit)
	var b strings.Builder
	for i, e := range entries {
		if sizes[i] > cap {
			e.text = CutMiddle(e.text, cap)
		}
		fmt.Fprintf(&b, "%s: %s\n", e.lead, e.text)
	}
	return strings.TrimSpace(b.String())
}

const (
	leastSummary = 20  // characters
	tolerance    = 120 // accepted length in percent of the limit, because models count badly
)

// Check returns why a summary cannot replace a conversation; nil = it can. source is the summarised
// text, and limit the maximum in tokens.
func Check(summary, source string, limit int) error {
	summary = strings.TrimSpace(summary)
	fields := strings.Fields(summary)
	switch n := llm.EstimateTokens(summary); {
	case utf8.RuneCountInString(summary) < leastSummary:
		return errors.New("the summary is too short to be one")
	case n > limit*tolerance/100:
		return errors.New("the summary is longer than it may be")
	case garbled(summary):
		return errors.New("the summary is not made of words")
	case repetitive(fields):
		return errors.New("the summary says the same over and over")
	case strings.Contains(strings.Join(strings.Fields(source), " "), strings.Join(fields, " ")):
		return errors.New("the summary only repeats what it was made of")
	}
	return nil
}

// garbled reports whether less than half of s is letters, digits and blanks. It is also true if s
// looks like HTML or binary data.
func garbled(s string) bool {
	good, all := 0, 0
	for _, r := range s {
		all++
		if r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || r == ' ' || r == '\n') {
			good++
		}
	}
	return good*2 < all || strings.Contains(s, "\uFFFD\uFFFD") || strings.HasPrefix(s, "<!") ||
		strings.HasPrefix(strings.ToLower(s), "<html")
}

// repetitive reports whether a long text has few distinct words.
func repetitive(fields []string) bool {
	const few = 40
	if len(fields) < few {
		return false
	}
	seen := map[string]bool{}
	for _, f := range fields {
		seen[f] = true
	}
	return len(seen)*6 < len(fields)
}

const (
	headLine  = 200 // maximum runes of a message in an extract
	saidSince = "Said since, in short:\n"
	notListed = "- (earlier messages are not listed)"
)

// SummaryWithoutModel makes a summary without a model, in limit tokens: the previous one, in at most half of
// them, and the first line of each message of a person. If they do not fit, the newest are kept.
func SummaryWithoutModel(before string, removed []history.Message, limit int) string {
	var heads []string
	for i := range removed {
		if m := &removed[i]; m.Role == llm.User && strings.TrimSpace(m.Text) != "" {
			first, _, _ := strings.Cut(strings.TrimSpace(m.Text), "\n")
			heads = append(heads, "- "+speaker(m)+": "+history.OneLine(first, headLine))
		}
	}
	heads = slices.Compact(heads)
	before = strings.NewReplacer(saidSince, "", notListed+"\n", "").Replace(before)
	switch {
	case len(heads) == 0 && before == "":
		return fmt.Sprintf("(%d messages without words of a person are left out here.)", len(removed))
	case len(heads) == 0:
		return CutMiddle(before, limit)
	case before != "":
		before = CutMiddle(before, limit/2) + "\n\n"
	}
	left := limit - llm.EstimateTokens(before+saidSince+notListed)
	from := len(heads)
	for from > 0 {
		left -= llm.EstimateTokens(heads[from-1]) + 1
		if left < 0 {
			break
		}
		from--
	}
	if from > 0 {
		heads = append([]string{notListed}, heads[from:]...)
	}
	return before + saidSince + strings.Join(heads, "\n")
}
