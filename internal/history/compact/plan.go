// Package compact plans how a conversation comes to fit: what is shortened, and what a summary stands for.
package compact

import (
	"slices"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// Limits is what a compaction works with, in tokens.
type Limits struct {
	Room    int  // for the history and the summary together
	Summary int  // the most that summary and details take
	Full    bool // summarise even if shortening tool results would do
}

// Plan is what a compaction would do. It changes nothing by itself.
type Plan struct {
	Removed   []history.Message // what the summary stands for, as it was said; oldest first
	Kept      []history.Message // what the model gets from now on, some of it shortened
	Shortened []history.Message // those of Kept that are in other words than before
	Before    int               // tokens of all of it
	After     int               // tokens of Kept and the longest summary there may be
}

// Empty reports whether the plan changes nothing.
func (p Plan) Empty() bool { return len(p.Removed)+len(p.Shortened) == 0 }

// Shares of the room.
const (
	targetShare = 60 // percent of the room that may be taken afterwards: the rest is for what comes
	maxShare    = 85 // and where that cannot be had
	minSavings  = 10 // percent of the room that micro must save to be worth it
)

// keeps is how many of the newest messages are tried to stay, besides the newest of
// the person's, which always do.
var keepCounts = []int{10, 3, 1, 0}

// NewPlan plans how the conversation past comes to fit. It first shortens old tool
// results, and if that is not enough leaves the older messages to a summary. The
// newest messages of the person stay, shortened if they alone are too large, and no
// tool call is separated from its result.
func NewPlan(past []history.Message, l Limits) Plan {
	shorter := clearToolResults(past, max(1, l.Room*minSavings/100))
	p := Plan{Kept: shorter, Before: history.Tokens(past)}
	if p.After = history.Tokens(shorter); l.Full || p.After > l.Room*targetShare/100 {
		for _, keep := range keepCounts {
			if p.split(shorter, keep, l) {
				break
			}
		}
	}
	said := make(map[int64]*history.Message, len(past))
	for i := range past {
		said[past[i].ID] = &past[i]
	}
	for i := range p.Removed {
		p.Removed[i] = *said[p.Removed[i].ID]
	}
	for _, m := range p.Kept {
		if m.Text != said[m.ID].Text {
			p.Shortened = append(p.Shortened, m)
		}
	}
	return p
}

// split keeps the newest messages of past, and cuts them if that is the last chance to
// keep so many. It reports whether they fit; the last attempt always stands.
func (p *Plan) split(past []history.Message, keep int, l Limits) bool {
	gone, kept := split(past, keep)
	summary := 0
	if len(gone) > 0 {
		summary = l.Summary
	}
	room := l.Room*targetShare/100 - summary
	fits := history.Tokens(kept) <= room
	if !fits && keep <= 1 {
		fits = cutLongest(kept, max(l.Room*maxShare/100-l.Summary, room))
	}
	p.Removed, p.Kept, p.After = gone, kept, history.Tokens(kept)+summary
	return fits
}

// split parts, into slices of their own, the messages that stay from the older ones. What stays begins with a
// message of a person, or goes on within the newest turn with a round of the model's.
func split(past []history.Message, keep int) (gone, kept []history.Message) {
	first, last := lastUserMessages(past) // the person's newest messages, that nothing was answered in between
	from := len(past) - keep
	for from < len(past) && !canBeginAt(past, max(from, 0), first, last) {
		from++
	}
	from = max(from, 0)
	if keep > 0 && from == len(past) { // in the midst of the newest round: all of it stays
		for from--; from > last && !canBeginAt(past, from, first, last); {
			from--
		}
	}
	for i, m := range past {
		if i >= from || i >= first && i <= last {
			kept = append(kept, m)
		} else {
			gone = append(gone, m)
		}
	}
	return gone, kept
}

// newestSaid is where the person's newest messages stand, from first to last; without
// any, last is before first.
func lastUserMessages(past []history.Message) (first, last int) {
	last = len(past) - 1
	for last >= 0 && past[last].Role != llm.User {
		last--
	}
	first = max(0, last)
	for first > 0 && past[first-1].Role == llm.User {
		first--
	}
	return first, last
}

// begins reports whether what is kept can begin at i.
func canBeginAt(past []history.Message, i, first, last int) bool {
	switch past[i].Role {
	case llm.User:
		return i == 0 || past[i-1].Role != llm.User || i == first
	case llm.Assistant:
		return i > last
	}
	return false
}

// cut shortens the longest messages of people and results of tools until all of them
// fit, and reports whether they do. An answer stays as long as it is.
func cutLongest(kept []history.Message, room int) bool {
	const least = 60 // tokens; less of a message helps nobody
	var sizes []int
	for i := range kept {
		room -= kept[i].Tokens()
		if kept[i].Role != llm.Assistant {
			words := llm.EstimateTokens(kept[i].Text)
			room += words
			sizes = append(sizes, words)
		}
	}
	most := uniformCap(sizes, room)
	if most < least {
		return false
	}
	for i := range kept {
		if kept[i].Role != llm.Assistant {
			kept[i].Text = Cut(kept[i].Text, most)
		}
	}
	return true
}

// level is the height at which sizes must be cut off so that their sum is at most room.
func uniformCap(sizes []int, room int) int {
	sizes = slices.Clone(sizes)
	slices.Sort(sizes)
	for i, n := range sizes {
		if n*(len(sizes)-i) > room {
			return max(0, room) / (len(sizes) - i)
		}
		room -= n
	}
	return max(0, room) + 1<<30 // none must
}
