package memory

import (
	"strings"
	"time"

	"reverie/internal/text"
)

// Characters of what is quoted from a conversation.
const (
	quotedTurn   = 600
	quotedAround = 160
)

// Line is what a model reads of h: when it was said and where it comes from before
// the text. A past message has the one before and the one after it in lines of
// their own, but for those that shown says it can see anyway; nil = none.
func (h Hit) Line(zone *time.Location, shown func(Turn) bool) string {
	if h.Turn == nil {
		return "- " + day(h.Entry.ObservedAt, zone) + ", " + h.Entry.Origin() + ": " + h.Entry.Text
	}
	lines := []string{"- " + h.Turn.quoted(zone, quotedTurn)}
	for _, t := range h.Around {
		if shown != nil && shown(t) {
			continue
		}
		where := "  after: "
		if t.Seq < h.Turn.Seq {
			where = "  before: "
		}
		lines = append(lines, where+t.quoted(zone, quotedAround))
	}
	return strings.Join(lines, "\n")
}

// said stands before the words of a message.
const said = " said: "

func (t Turn) quoted(zone *time.Location, most int) string {
	who := "you"
	if t.Sender != "" {
		who = t.Sender
	}
	return day(t.At, zone) + ", " + who + said + t.words(most)
}

func (t Turn) words(most int) string {
	return text.Cut(strings.Join(strings.Fields(t.Text), " "), most)
}

// Whole reports whether t is quoted to its end where it stands beside another one.
func (t Turn) Whole() bool { return t.words(quotedAround) == t.words(quotedTurn) }

// Quotes are the ways in which Line quotes t, the longest first.
func (t Turn) Quotes() []string {
	return []string{said + t.words(quotedTurn), said + t.words(quotedAround)}
}

func day(t time.Time, zone *time.Location) string {
	if t.Unix() <= 0 {
		return "undated"
	}
	return t.In(zone).Format(time.DateOnly)
}

// Origin says in a few words where e comes from.
func (e Entry) Origin() string {
	by := map[Source]string{
		UserExplicit: "remembered on request", Assistant: "noted by you", Harvest: "from a conversation",
		DreamingMerge: "put together", FromFile: "from a memory file", Imported: "imported",
	}[e.Source]
	if e.Subject != "" {
		by = e.Subject + ", " + by
	}
	return by
}
