package section

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/search"
	words "reverie/internal/text"
	"reverie/internal/trust"
)

// Recalled is the source of memories found for a message.
const Recalled = "recalled"

// RecallLimit limits what is recalled for one message.
type RecallLimit struct {
	Tokens, Hits int // of what the message is about
	Wishes       int // tokens of standing wishes
}

// recallLimits are the limits by tier; 0 = unknown.
var recallLimits = []RecallLimit{
	{1_500, 12, 300}, {300, 3, 80}, {600, 6, 150}, {1_500, 12, 300}, {1_500, 12, 300}, {1_500, 12, 300},
}

// A question that collects ("in what order …?") gets more hits in short lines.
const (
	collectHits = 5   // times as many
	shortQuote  = 120 // characters of a message
	leastTokens = 10  // of a line
)

// gatherRecalled searches the scopes of the turn for the newest message of a person: standing wishes
// first, then entries, then past messages, the oldest first in each.
func gatherRecalled(ctx context.Context, q *Question) (*Content, error) {
	store, past := q.sources.Memory, q.turn.History
	at := lastBy(past, len(past), llm.User)
	if !store.UsesWorkingSet() || at < 0 {
		return nil, nil
	}
	v := recalled{least: q.leastTrust()}
	query := memory.Query{Text: past[at].Text, Scopes: q.turn.Scopes, Now: q.turn.Now,
		Seen: search.Seen{Conversation: string(past[at].Room), From: int(max(q.first, past[0].ID))}}
	if before := lastBy(past, at, llm.Assistant); before >= 0 {
		query.Context, v.lastAnswer = past[before].Text, past[before].EventID
	}
	// Hand edits count from now on. The section of all memories reports unreadable files.
	_, _ = q.memories()
	return v.recall(ctx, store, query, recallLimits[q.turn.tier()])
}

// Recall returns what is recalled for the first message of a conversation; nil = nothing. query needs its
// text, scopes and time.
func Recall(ctx context.Context, store *memory.Store, query memory.Query, limit RecallLimit) (*Content, error) {
	return (&recalled{least: trust.User}).recall(ctx, store, query, limit)
}

func (v *recalled) recall(ctx context.Context, store *memory.Store, query memory.Query, limit RecallLimit) (*Content, error) {
	v.zone, v.collects, v.answer = query.Now.Location(), words.CollectsAll(query.Text), words.AsksForAnswer(query.Text)
	if v.collects {
		limit.Hits *= collectHits
	}
	v.floor, v.seen = search.DefaultFloor, query.Seen
	if v.answer { // half of such a question is about who said it when
		v.floor /= 2
	}
	query.Turns, query.Floor = true, v.floor
	query.K, query.Docs = limit.Hits+1, limit.Hits/2
	hits, err := store.Search(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	query.Wishes, query.K, query.Docs, query.Floor, query.Context = true, limit.Wishes/leastTokens, 0, 0, ""
	wishes, err := store.Search(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	return v.content(v.takeWishes(wishes, limit.Wishes), hits, limit), nil
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
	seen       search.Seen     // the history
	lastAnswer string          // the event of the last answer, which is part of the query
	least      trust.Integrity // of standing wishes
	collects   bool            // the message asks for all that was said of something
	answer     bool            // the message asks for what the assistant said
	floor      float64         // share of the message that is covered at least
}

// takeWishes takes the best standing wishes that fit.
func (v *recalled) takeWishes(hits []memory.Hit, tokens int) (taken []memory.Hit) {
	said := map[string]bool{}
	for _, h := range hits {
		if h.Integrity() < v.least || said[identity(h)] {
			continue
		}
		if tokens -= llm.EstimateTokens(v.wish(h)); tokens < 0 {
			break
		}
		h.Around = nil
		taken = append(taken, h)
		markSaid(said, h)
	}
	return taken
}

// content takes the best hits that fit, after wishes. Entries come first in half of the room: messages are
// many and often better by their words, but what was learned of them is shorter. Hits that the history shows
// take no room. Whether it does is known only once the history is cut, so they are kept, with the message
// that says them.
func (v *recalled) content(wishes, hits []memory.Hit, limit RecallLimit) *Content {
	taken := wishes
	var best, shown float64                // share of the question covered by hits new to the model, and by those in the history
	var used [2]struct{ tokens, hits int } // of hits new to the model, and of those in the history
	said := map[string]bool{}              // by event
	for _, h := range wishes {
		markSaid(said, h)
	}
	take := func(h memory.Hit, tokens, most int) {
		if said[identity(h)] {
			return
		}
		kind := 0
		if h.Seen {
			kind = 1
			if h.Turn.Event != v.lastAnswer {
				shown = max(shown, h.Covered)
			}
		}
		if used[kind].hits == most {
			return
		}
		cost := llm.EstimateTokens(v.render(h, said))
		if used[kind].tokens+cost > tokens {
			return
		}
		used[kind].hits++
		used[kind].tokens += cost
		if kind == 0 {
			best = max(best, h.Covered)
			markSaid(said, h)
		}
		taken = append(taken, h)
	}
	for _, h := range hits {
		if h.Turn == nil && !v.answer {
			take(h, limit.Tokens/2, limit.Hits/2)
		}
	}
	for _, h := range hits {
		take(h, limit.Tokens, limit.Hits)
	}
	if best < max(v.floor, shown/2) { // only the history's hits are above the floor
		taken = wishes
	}
	if len(taken) == 0 {
		return nil
	}
	return v.inOrder(taken, len(wishes))
}

// inOrder returns the lines of hits, which are sorted best first: the first wishes of them, then entries,
// then messages, the oldest first. When room is short the best stay.
func (v *recalled) inOrder(hits []memory.Hit, wishes int) *Content {
	order := make([]int, len(hits))
	said := map[string]bool{}
	for i, h := range hits {
		order[i] = i
		if h.Turn != nil {
			said[h.Turn.Event] = true
		}
	}
	kind := func(i int) int {
		switch {
		case i < wishes:
			return 0
		case hits[i].Turn == nil && !v.collects: // else one chain by time
			return 1
		}
		return 2
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(cmp.Compare(kind(i), kind(j)), hits[i].At.Compare(hits[j].At))
	})
	c := Content{Source: Recalled, ranked: true, Lead: "It may be old or beside the point; what the person says now counts."}
	if wishes > 0 {
		c.Lead += " Follow a wish where it applies; of two that differ, the newer one."
	}
	for _, i := range order {
		h := hits[i]
		l := Line{Text: v.render(h, said), rank: i, from: h.Integrity()}
		if i < wishes {
			l.Text = v.wish(h)
		}
		if h.Seen {
			l.SaidIn = int64(h.Turn.Seq)
		}
		if h.Turn != nil {
			l.key = fmt.Sprint("turn ", h.Turn.Scope, " ", h.Turn.Event, " ", h.Turn.Seq)
		} else {
			l.key, l.AsMemory = "entry "+h.Entry.ID, MemoryLine(cmp.Or(h.Shown, h.Entry.Text))
			l.MemoryID = uint64(cmp.Or(h.Head, h.Entry.N))
		}
		c.Lines = append(c.Lines, l)
		markSaid(said, h)
	}
	return NewContent(c)
}

// WishMarker begins the line of a standing wish.
const WishMarker = "- wish: "

// identity is the message that h is or was learned from. Each is shown once.
func identity(h memory.Hit) string {
	if h.Turn != nil {
		return h.Turn.Event
	}
	return cmp.Or(h.Entry.Event, h.Entry.ID)
}

// markSaid records in said which messages the line of h quotes in full.
func markSaid(said map[string]bool, h memory.Hit) {
	if id := identity(h); id != "" {
		said[id] = true
	}
	for _, t := range h.Around {
		if t.QuotedWhole() {
			said[t.Event] = true
		}
	}
}

// render renders h for the model: a message with those before and after it, unless they are already
// said or in the history. In a collection each is one short line.
func (v *recalled) render(h memory.Hit, said map[string]bool) string {
	if v.collects {
		return "- " + v.short(h)
	}
	return h.Line(v.zone, func(t memory.Turn) bool { return t.Event != "" && (v.seen.Has(t) || said[t.Event]) })
}

func (v *recalled) wish(h memory.Hit) string { return WishMarker + v.short(h) }

// short is the beginning of what h says, its date, and who said it.
func (v *recalled) short(h memory.Hit) string {
	by := ""
	if h.Turn != nil {
		name := chat.ShortName(h.Turn.Sender)
		by = ", " + cmp.Or(name, "you")
	}
	return search.Day(h.At, v.zone) + by + ": " + words.Cut(strings.Join(strings.Fields(h.Text()), " "), shortQuote)
}
