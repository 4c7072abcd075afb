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
	Gone   []history.Message // what the summary stands for, as it was said; oldest first
	Kept   []history.Message // what the model gets from now on, some of it shortened
	Before int               // tokens of all of it
	After  int               // tokens of Kept and the longest summary there may be
	Steps  []Step            // that did something
}

// Shares of the room.
const (
	goalShare  = 60 // percent of the room that may be taken afterwards: the rest is for what comes
	mostShare  = 85 // and where that cannot be had
	microSaves = 10 // percent of the room that micro must save to be worth it
)

// keeps is how many of the newest messages are tried to stay, besides the newest of
// the person's, which always do.
var keeps = []int{10, 3, 1, 0}

// NewPlan plans how the conversation past comes to fit. It first shortens old tool
// results, and if that is not enough leaves the older messages to a summary. The
// newest messages of the person stay, shortened if they alone are too large, and no
// tool call is separated from its result.
func NewPlan(past []history.Message, l Limits) Plan {
	p := Plan{Before: history.Tokens(past), Kept: past}
	p.shorten(l)
	if !l.Full && p.After <= l.Room*goalShare/100 {
		return p
	}
	shorter := p.Kept
	var gone []history.Message
	for _, keep := range keeps {
		var kept []history.Message
		gone, kept = split(shorter, keep)
		room, enough := l.Room*goalShare/100, false
		if len(gone) > 0 {
			room -= l.Summary
		}
		switch {
		case history.Tokens(kept) <= room:
			enough = true
		case keep <= 1: // the last chance of its kind
			enough = p.cut(kept, max(l.Room*mostShare/100-l.Summary, room))
		}
		if enough || keep == 0 {
			p.Kept = kept
			break
		}
	}
	p.After = history.Tokens(p.Kept)
	if len(gone) == 0 {
		return p
	}
	p.After += l.Summary
	out := map[int64]bool{}
	for _, m := range gone {
		out[m.ID] = true
	}
	for _, m := range past {
		if out[m.ID] {
			p.Gone = append(p.Gone, m)
		}
	}
	p.Steps = append(p.Steps, Step{Name: fullStep, Messages: len(gone), Before: history.Tokens(shorter), After: p.After})
	return p
}

// shorten goes through the steps that need no summary.
func (p *Plan) shorten(l Limits) {
	p.After = p.Before
	for _, do := range []func([]history.Message) ([]history.Message, Step){
		unquote,
		func(m []history.Message) ([]history.Message, Step) { return micro(m, max(1, l.Room*microSaves/100)) },
	} {
		if kept, step := do(p.Kept); step.Messages > 0 {
			p.Kept, p.After, p.Steps = kept, step.After, append(p.Steps, step)
		}
	}
}

// split parts, into slices of their own, the messages that stay from the older ones. What stays begins with a
// message of a person, or goes on within the newest turn with a round of the model's.
func split(past []history.Message, keep int) (gone, kept []history.Message) {
	first, last := newestSaid(past) // the person's newest messages, that nothing was answered in between
	from := len(past) - keep
	for from < len(past) && !begins(past, max(from, 0), first, last) {
		from++
	}
	from = max(from, 0)
	if keep > 0 && from == len(past) { // in the midst of the newest round: all of it stays
		for from--; from > last && !begins(past, from, first, last); {
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
func newestSaid(past []history.Message) (first, last int) {
	last = len(past) - 1
	for last >= 0 && past[last].Role != llm.User {
		last--
	}
	first = last
	for first > 0 && past[first-1].Role == llm.User {
		first--
	}
	if last < 0 {
		return 0, -1
	}
	return first, last
}

// begins reports whether what is kept can begin at i.
func begins(past []history.Message, i, first, last int) bool {
	switch past[i].Role {
	case llm.User:
		return i == 0 || past[i-1].Role != llm.User || i == first
	case llm.Assistant:
		return i > last
	}
	return false
}

// cut shortens the longest messages of people and results of tools until all of them
// fit, and says whether they do.
func (p *Plan) cut(kept []history.Message, room int) bool {
	const least = 60 // tokens; less of a message helps nobody
	fixed := 0
	var sizes []int
	for i := range kept {
		n := kept[i].Tokens()
		if kept[i].Role == llm.Assistant {
			fixed += n // as long as an answer can be, and no longer
			continue
		}
		words := llm.EstimateTokens(kept[i].Text)
		fixed += n - words
		sizes = append(sizes, words)
	}
	most := level(sizes, room-fixed)
	if most < least {
		return false
	}
	step := Step{Name: cutStep, Before: history.Tokens(kept)}
	for i := range kept {
		if kept[i].Role == llm.Assistant {
			continue
		}
		if short := Cut(kept[i].Text, most); short != kept[i].Text {
			kept[i].Text = short
			step.Messages++
		}
	}
	if step.After = history.Tokens(kept); step.After > room {
		return false
	}
	if step.Messages > 0 {
		p.Steps = append(p.Steps, step)
	}
	return true
}

// level is the height at which sizes must be cut off so that their sum is at most room.
func level(sizes []int, room int) int {
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

// Shortened lists the messages of the plan that are sent in other words than those in
// past, or without what they quote.
func (p Plan) Shortened(past []history.Message) []history.Message {
	said := make(map[int64]*history.Message, len(past))
	for i := range past {
		said[past[i].ID] = &past[i]
	}
	var out []history.Message
	for _, m := range p.Kept {
		if was := said[m.ID]; was == nil || m.Text != was.Text || len(m.Quoted) != len(was.Quoted) {
			out = append(out, m)
		}
	}
	return out
}
