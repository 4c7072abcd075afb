// Package compact plans the compaction of a conversation: which messages are shortened, and which a
// summary replaces.
package compact

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// Limits are the limits of a compaction, in tokens.
type Limits struct {
	Room    int  // for history and summary together
	Summary int  // maximum for summary and details
	Full    bool // summarise even if shortening tool results is enough
}

// Plan is a planned compaction. It changes nothing by itself.
type Plan struct {
	Removed   []history.Message // messages that the summary replaces, unshortened; oldest first
	Kept      []history.Message // messages that the model still gets, some of them shortened
	Shortened []history.Message // the messages of Kept that were shortened
	Before    int               // tokens of the history before
	After     int               // tokens of Kept plus the longest possible summary
}

// Empty reports whether the plan changes nothing.
func (p Plan) Empty() bool { return len(p.Removed)+len(p.Shortened) == 0 }

// Shares of Limits.Room, in percent.
const (
	targetShare = 60 // target for the size afterwards; the rest is for new messages
	maxShare    = 85 // limit if the target cannot be reached
	minSavings  = 10 // minimum that clearing tool results must save
)

// keepCounts are the numbers of newest messages that NewPlan tries to keep. The person's newest
// messages are always kept.
var keepCounts = []int{10, 3, 1, 0}

// NewPlan plans the compaction of past. It first shortens old tool results; if that is not enough,
// the older messages are summarised. The person's newest messages stay, shortened if they alone are
// too large. A tool call is never separated from its result.
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

// split keeps the newest messages of past. It shortens them for the smallest values of keep. It
// reports whether they fit; the last attempt counts in any case.
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

// split divides past into new slices of older and kept messages. The kept ones begin with a person's
// message, or with a round of the model in the newest turn.
func split(past []history.Message, keep int) (removed, kept []history.Message) {
	first, last := lastUserMessages(past) // the person's newest messages
	from := len(past) - keep
	for from < len(past) && !canBeginAt(past, max(from, 0), first, last) {
		from++
	}
	from = max(from, 0)
	if keep > 0 && from == len(past) { // within the newest round: keep all of it
		for from--; from > last && !canBeginAt(past, from, first, last); {
			from--
		}
	}
	for i, m := range past {
		if i >= from || i >= first && i <= last {
			kept = append(kept, m)
		} else {
			removed = append(removed, m)
		}
	}
	return removed, kept
}

// lastUserMessages returns the range of the person's newest consecutive messages, from first to
// last; without one, last is before first.
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

func canBeginAt(past []history.Message, i, first, last int) bool {
	switch past[i].Role {
	case llm.User:
		return i == 0 || past[i-1].Role != llm.User || i == first
	case llm.Assistant:
		return i > last
	}
	return false
}

// cutLongest shortens the longest messages of people and tool results until all messages fit. It
// reports whether they do. Answers are never shortened.
func cutLongest(kept []history.Message, room int) bool {
	const least = 60 // tokens; a shorter message is useless
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
			kept[i].Text = CutMiddle(kept[i].Text, most)
		}
	}
	return true
}

// uniformCap is the size to which the larger sizes must be cut. Their sum is then at most room.
func uniformCap(sizes []int, room int) int {
	sizes = slices.Clone(sizes)
	slices.Sort(sizes)
	for i, n := range sizes {
		if n*(len(sizes)-i) > room {
			return max(0, room) / (len(sizes) - i)
		}
		room -= n
	}
	return max(0, room) + 1<<30 // nothing has to be cut
}

// headTail keeps the first and last runes of text. It inserts a note about the omitted ones. A text
// that would not become shorter stays.
func headTail(text string, head, tail int) string {
	runes := []rune(text)
	missing := len(runes) - head - tail
	if missing <= 0 {
		return text
	}
	short := string(runes[:head]) +
		fmt.Sprintf("\n… %d characters left out here; they are kept in the transcript …\n", missing) + string(runes[len(runes)-tail:])
	if len(short) >= len(text) {
		return text
	}
	return short
}

// CutMiddle truncates text to about limit tokens, with a note about the omission. Two thirds of
// them come from its beginning. Below about twenty tokens only the note is left.
func CutMiddle(text string, limit int) string {
	have := llm.EstimateTokens(text)
	if have <= limit {
		return text
	}
	left := utf8.RuneCountInString(text)
	for share := limit - remarkTokens; share > 0; share = share * 3 / 4 {
		n := int(int64(left) * int64(share) / int64(have)) // assumes evenly spread tokens; the loop corrects it
		if n < 8 {
			break
		}
		if short := headTail(text, n-n/3, n/3); llm.EstimateTokens(short) <= limit {
			return short
		}
	}
	return fmt.Sprintf("… %d characters left out …", left)
}

// remarkTokens is the number of tokens of Cut's note.
const remarkTokens = 20

const (
	newestResults = 3   // tool results that are never cleared
	shortResult   = 200 // characters up to which a result is never cleared
)

// clearToolResults replaces all but the newest tool results by one line each. It does so if that
// saves at least minSaved tokens.
func clearToolResults(past []history.Message, minSaved int) []history.Message {
	results := 0
	from := len(past)
	for from > 0 && results < newestResults {
		from--
		if past[from].Role == llm.Tool {
			results++
		}
	}
	out := slices.Clone(past)
	calls := map[string]llm.ToolCall{}
	for i := range out[:from] {
		m := &out[i]
		for _, c := range m.Calls {
			calls[c.ID] = c
		}
		if m.Role != llm.Tool || utf8.RuneCountInString(m.Text) <= shortResult {
			continue
		}
		if line := clearedResult(calls[m.CallID], m.Text); len(line) < len(m.Text) {
			m.Text = line
		}
	}
	if history.Tokens(past)-history.Tokens(out) < minSaved {
		return past
	}
	return out
}

// clearedResult summarises a tool result in one line: call, length and outcome.
func clearedResult(c llm.ToolCall, result string) string {
	how := fmt.Sprintf("%d lines, ok", strings.Count(strings.TrimRight(result, "\n"), "\n")+1)
	if strings.HasPrefix(result, "error") {
		how = history.OneLine(result, 80)
	}
	return fmt.Sprintf("[%s %s: %s. Cleared to save room; call it again if it is needed.]", c.Name, history.OneLine(c.Arguments, 80), how)
}
