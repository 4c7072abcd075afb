package section

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
	"reverie/internal/search"
)

// Recalled is the source of memories found for a message.
const Recalled = "recalled"

// recallLimits limit the search for one message, by tier.
var recallLimits = []struct{ tokens, hits int }{
	{1_500, 12}, // unknown tier
	{300, 3},
	{600, 6},
	{1_500, 12}, {1_500, 12}, {1_500, 12},
}

// maxVisibleHits is how many hits in the visible history the search may return in addition.
const maxVisibleHits = 40

// gatherRecalled searches the scopes of the turn for the newest message of a person: entries first,
// then past messages, the oldest first in both.
func gatherRecalled(ctx context.Context, q *Question) (*Content, error) {
	store, past := q.sources.Memory, q.turn.History
	at := lastBy(past, len(past), llm.User)
	if !store.UsesWorkingSet() || at < 0 {
		return nil, nil
	}
	limit := recallLimits[q.turn.tier()]
	query := memory.Query{Text: past[at].Text, Scopes: q.turn.Scopes, Now: q.turn.Now, Turns: true,
		Floor: search.DefaultFloor, K: limit.hits + min(len(past), maxVisibleHits)}
	before := lastBy(past, at, llm.Assistant)
	if before >= 0 {
		query.Context = past[before].Text
	}
	// Hand edits count from now on. The section of all memories reports unreadable files.
	_, _ = store.Entries(ctx, q.turn.Scopes...)
	hits, err := store.Search(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	v := recalled{zone: q.turn.Now.Location(), visible: map[string]int64{}}
	if before >= 0 {
		v.lastAnswer = past[before].EventID
	}
	for _, m := range past {
		if m.EventID != "" && m.Text != "" && m.ID >= q.first {
			v.visible[m.EventID] = m.ID
		}
	}
	return v.content(hits, limit.tokens, limit.hits), nil
}

// lastBy returns the index of the last message with words of role before end; -1 = none.
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
	zone       *time.Location
	visible    map[string]int64 // messages in the history, by event
	lastAnswer string           // the event of the last answer, which is part of the query
}

// content takes the best hits that fit. Hits that the history shows take no room. Whether it does
// is known only once the history is cut, so they are kept, with the message that says them.
func (v *recalled) content(hits []memory.Hit, tokens, most int) *Content {
	var taken []memory.Hit
	var best, shown float64 // share of the question covered by hits new to the model, and by those in the history
	room, left := [2]int{tokens, tokens}, [2]int{most, most}
	said := map[string]bool{} // by event
	for _, h := range hits {
		common := h.Covered < search.DefaultFloor/2 && !h.Near // hardly more than a common word
		if common || h.Turn != nil && h.Turn.Event != "" && said[h.Turn.Event] {
			continue
		}
		kind, cost := 0, llm.EstimateTokens(v.render(h, said))
		if v.historyMessage(h) != 0 {
			kind = 1
			if h.Turn.Event != v.lastAnswer {
				shown = max(shown, h.Covered)
			}
		}
		if left[kind] == 0 || cost > room[kind] {
			continue
		}
		room[kind], left[kind] = room[kind]-cost, left[kind]-1
		if kind == 0 {
			if best = max(best, h.Covered); h.Near {
				best = 1
			}
			markSaid(said, h)
		}
		taken = append(taken, h)
	}
	// Only the history's hits are above the floor.
	if len(taken) == 0 || best < max(search.DefaultFloor, shown/2) {
		return nil
	}
	return v.inOrder(taken)
}

// inOrder returns the lines of hits, which are sorted best first: entries, then messages, the
// oldest first. When room is short the best stay.
func (v *recalled) inOrder(hits []memory.Hit) *Content {
	order := make([]int, len(hits))
	said := map[string]bool{}
	for i, h := range hits {
		order[i] = i
		if h.Turn != nil {
			said[h.Turn.Event] = true
		}
	}
	when := func(i int) (kind int, at time.Time) {
		if h := hits[i]; h.Turn != nil {
			return 1, h.Turn.At
		}
		return 0, hits[i].Entry.ObservedAt
	}
	slices.SortStableFunc(order, func(i, j int) int {
		kind, at := when(i)
		other, then := when(j)
		return cmp.Or(cmp.Compare(kind, other), at.Compare(then))
	})
	c := Content{Source: Recalled, ranked: true, Lead: "It may be old or beside the point; what the person says now counts."}
	for _, i := range order {
		h := hits[i]
		l := Line{Text: v.render(h, said), SaidIn: v.historyMessage(h), rank: i, from: h.Integrity()}
		if h.Turn != nil {
			l.key = fmt.Sprint("turn ", h.Turn.Scope, " ", h.Turn.Event, " ", h.Turn.Seq)
		} else {
			l.key, l.AsMemory = "entry "+h.Entry.ID, MemoryLine(cmp.Or(h.Shown, h.Entry.Text))
		}
		c.Lines = append(c.Lines, l)
		markSaid(said, h)
	}
	return NewContent(c)
}

// markSaid records in said which messages the line of h quotes in full.
func markSaid(said map[string]bool, h memory.Hit) {
	if h.Turn == nil {
		return
	}
	said[h.Turn.Event] = true
	for _, t := range h.Around {
		if t.QuotedWhole() {
			said[t.Event] = true
		}
	}
}

// historyMessage returns the history's message that is h; 0 = none.
func (v *recalled) historyMessage(h memory.Hit) int64 {
	if h.Turn == nil {
		return 0
	}
	return v.visible[h.Turn.Event]
}

// render renders h for the model: a message with those before and after it, unless they are already
// said or in the history.
func (v *recalled) render(h memory.Hit, said map[string]bool) string {
	return h.Line(v.zone, func(t memory.Turn) bool { return t.Event != "" && (v.visible[t.Event] != 0 || said[t.Event]) })
}
