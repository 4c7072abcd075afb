package prompt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
)

// recallLimits are what the search for one message may bring, by tier.
var recallLimits = []struct{ tokens, hits int }{
	{1_500, 12}, // the tier is not known
	{300, 3},
	{600, 6},
	{1_500, 12}, {1_500, 12}, {1_500, 12},
}

// mostVisible is how many of the messages that the history shows may be found
// before what it does not show.
const mostVisible = 40

// fact is what a line of recalled memory says.
type fact struct {
	key  string // the same for as long as it is the same memory or message
	text string // as the section of all memories shows it; "" = it never does
}

// gatherRecalled searches the scopes of the turn for what the newest message of a
// person needs: entries first, then past messages, the oldest first in both.
func gatherRecalled(ctx context.Context, q *question) (*content, error) {
	store, past := q.a.cfg.Memory, q.turn.History
	at := lastBy(past, len(past), llm.User)
	if !store.Recalls() || at < 0 {
		return nil, nil
	}
	limit := recallLimits[max(0, min(q.turn.Tier, len(recallLimits)-1))]
	query := memory.Query{Text: past[at].Text, Scopes: q.turn.Scopes, Now: q.turn.Now, Turns: true,
		Floor: memory.DefaultFloor, K: limit.hits + min(len(past), mostVisible)}
	if before := lastBy(past, at, llm.Assistant); before >= 0 {
		query.Context = past[before].Text
	}
	hits, err := store.Search(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	v := recalled{q: q, zone: q.a.cfg.Location, visible: map[string]int64{}}
	for _, m := range past {
		if m.EventID != "" && m.Text != "" && m.ID >= q.first {
			v.visible[m.EventID] = m.ID
		}
	}
	return v.content(hits, limit.tokens, limit.hits), nil
}

// lastBy is the index of the last message with words of role before end, -1 = none.
func lastBy(past []history.Message, end int, role llm.Role) int {
	for i := end - 1; i >= 0; i-- {
		if past[i].Role == role && strings.TrimSpace(past[i].Text) != "" && len(past[i].Calls) == 0 {
			return i
		}
	}
	return -1
}

// recalled makes lines of hits.
type recalled struct {
	q       *question
	zone    *time.Location
	visible map[string]int64 // messages that the history holds, by event
}

// content takes the best hits that the room there is allows. What the history
// shows anyway takes none of it; whether it does is known for good only when the
// history is cut, so such hits are kept, with the message that says them.
func (v *recalled) content(hits []memory.Hit, tokens, most int) *content {
	var taken []memory.Hit
	var best float64
	room, left := [2]int{tokens, tokens}, [2]int{most, most}
	for _, h := range hits {
		if h.Covered < memory.DefaultFloor/2 { // hardly more than a common word
			continue
		}
		kind, cost := 0, llm.EstimateTokens(v.line(h))
		if v.in(h) != 0 {
			kind = 1
		}
		if left[kind] == 0 || cost > room[kind] {
			continue
		}
		room[kind], left[kind] = room[kind]-cost, left[kind]-1
		if kind == 0 {
			best = max(best, h.Covered)
		}
		taken = append(taken, h)
	}
	if len(taken) == 0 || best < memory.DefaultFloor { // what the history shows is above the floor, but nothing else is
		return nil
	}
	c := content{source: "recalled", lead: "It may be old or beside the point; what the person says now counts."}
	for rank, h := range taken {
		c.lines = append(c.lines, v.line(h))
		c.facts = append(c.facts, factOf(h))
		c.in = append(c.in, v.in(h))
		c.ranks = append(c.ranks, rank)
	}
	order := make([]int, len(taken))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := taken[i], taken[j]
		if (a.Turn == nil) != (b.Turn == nil) {
			return cmp.Compare(kindRank(a), kindRank(b))
		}
		return said(a).Compare(said(b))
	})
	sorted := content{source: c.source, lead: c.lead}
	for _, i := range order {
		sorted.lines, sorted.facts = append(sorted.lines, c.lines[i]), append(sorted.facts, c.facts[i])
		sorted.in, sorted.ranks = append(sorted.in, c.in[i]), append(sorted.ranks, c.ranks[i])
	}
	return newContent(sorted)
}

func kindRank(h memory.Hit) int {
	if h.Turn != nil {
		return 1
	}
	return 0
}

func said(h memory.Hit) time.Time {
	if h.Turn != nil {
		return h.Turn.At
	}
	return h.Entry.ObservedAt
}

// in is the message of the history that h is; 0 = none.
func (v *recalled) in(h memory.Hit) int64 {
	if h.Turn == nil {
		return 0
	}
	return v.visible[h.Turn.Event]
}

func factOf(h memory.Hit) fact {
	if h.Turn != nil {
		return fact{key: "turn " + string(h.Turn.Scope) + " " + h.Turn.Event + " " + fmt.Sprint(h.Turn.Seq)}
	}
	return fact{key: "entry " + h.Entry.ID, text: oneLine(h.Entry.Text, longest)}
}

// line is what the model reads of h: a message with those before and after it,
// unless the history shows them.
func (v *recalled) line(h memory.Hit) string {
	return h.Line(v.zone, func(t memory.Turn) bool { return t.Event != "" && v.visible[t.Event] != 0 })
}

// knows reports whether the model still gets f: from the section of all memories, or
// from a message in which it was said to be new.
func (e *epoch) knows(f fact, prefix string, past []history.Message) bool {
	if f.text == "" {
		return false
	}
	if strings.Contains(prefix, "\n"+f.text+"\n") {
		return true
	}
	id := lineID(f.text)
	return slices.ContainsFunc(e.shown, func(s shown) bool {
		return s.Source == "memories" && s.Message != 0 && slices.Contains(s.Lines, id) && e.stands(s, past)
	})
}

// unsaid is c without the facts that stand above it in a prefix, or in the
// history; nil = nothing is left. Anything but recalled memory is as it was.
func (r *request) unsaid(e *epoch, c *content, above []string) *content {
	if c.facts == nil {
		return c
	}
	prefix := strings.Join(above, divider)
	var keep []int
	for i, f := range c.facts {
		if c.in[i] != 0 && c.in[i] >= e.first || e.knows(f, prefix, nil) {
			continue
		}
		keep = append(keep, i)
	}
	if len(keep) == 0 {
		return nil
	}
	return c.only(keep)
}
