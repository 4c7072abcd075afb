package search

import (
	"strings"
	"time"

	"reverie/internal/text"
	"reverie/internal/trust"
)

// Characters of what is quoted from a conversation.
const (
	maxTurnQuote   = 600
	maxAroundQuote = 160
)

// Line is what a model reads of a past message: when it was said and by whom before the text. The one
// before and the one after it have lines of their own, but for those that shown says it can see
// anyway; nil = none.
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

// said stands before the words of a message.
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

// Whole reports whether t is quoted to its end where it stands beside another one.
func (t Turn) Whole() bool { return t.excerpt(maxAroundQuote) == t.excerpt(maxTurnQuote) }

// Quotes are the ways in which Line quotes t, the longest first.
func (t Turn) Quotes() []string {
	return []string{saidMarker + t.excerpt(maxTurnQuote), saidMarker + t.excerpt(maxAroundQuote)}
}

// Integrity is the least trusted hand among those of what Line shows.
func (h Hit) Integrity() trust.Integrity {
	least := h.Turn.Integrity
	for _, t := range h.Around {
		least = min(least, t.Integrity)
	}
	return least
}

// Day is the day of t as Line writes it.
func Day(t time.Time, zone *time.Location) string {
	if t.Unix() <= 0 {
		return "undated"
	}
	return t.In(zone).Format(time.DateOnly)
}
