package search

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"reverie/internal/text"
	"reverie/internal/trust"
)

// Maximum lengths of quotes, in characters.
const (
	maxTurnQuote   = 600
	maxAroundQuote = 160
	maxOpening     = 80
	minOpening     = 12 // shorter messages do not say what a conversation is about
)

// Line formats a past message for a model: date, sender, text. The messages before and after it
// follow on lines of their own, except those that the model sees anyway according to shown; nil =
// none.
func (h Hit) Line(zone *time.Location, shown func(Turn) bool) string {
	lines := []string{"- " + h.Turn.quoted(zone, maxTurnQuote)}
	for _, t := range h.Around {
		if shown != nil && shown(t) {
			continue
		}
		where := "  after: "
		if t.Seq < h.Turn.Seq {
			where = "  before: "
		}
		lines = append(lines, where+t.quoted(zone, maxAroundQuote))
	}
	return strings.Join(lines, "\n")
}

// saidMarker precedes the words of a quoted message.
const saidMarker = " said: "

func (t Turn) quoted(zone *time.Location, most int) string {
	who := "you"
	if t.Sender != "" {
		who = t.Sender
	}
	return Day(t.At, zone) + ", " + who + saidMarker + t.excerpt(most)
}

func (t Turn) excerpt(most int) string {
	return text.Cut(strings.Join(strings.Fields(t.Text), " "), most)
}

// QuotedWhole reports whether t is quoted completely next to another message.
func (t Turn) QuotedWhole() bool {
	return len(t.Text) <= maxAroundQuote || utf8.RuneCountInString(t.excerpt(maxTurnQuote)) <= maxAroundQuote
}

// Opening is a short form of t: date, sender, first words.
func (t Turn) Opening(zone *time.Location) string { return t.quoted(zone, maxOpening) }

// Quotes are the forms in which Line and Opening quote t, the longest first.
func (t Turn) Quotes() []string {
	return slices.Compact([]string{saidMarker + t.excerpt(maxTurnQuote), saidMarker + t.excerpt(maxAroundQuote),
		saidMarker + t.excerpt(maxOpening)})
}

// Integrity is the lowest integrity of what Line shows.
func (h Hit) Integrity() trust.Integrity {
	least := h.Turn.Integrity
	for _, t := range h.Around {
		least = min(least, t.Integrity)
	}
	return least
}

// Day formats the date of t for Line.
func Day(t time.Time, zone *time.Location) string {
	if t.Unix() <= 0 {
		return "undated"
	}
	return t.In(zone).Format(time.DateOnly)
}
