package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt/section"
	"reverie/internal/search"
	"reverie/internal/trust"
)

// room is the size of the recalled block.
type room struct{ tokens, hits int }

// rooms are those that are measured: today's largest, and two larger with hits in proportion.
var rooms = []room{{1_800, 12}, {2_000, 16}, {4_000, 32}}

// wishes is the part of a block that standing wishes may take.
const wishes = 300

// result is what stands in the prompt for one question.
type result struct {
	*question
	present []bool // of each fact: it can be read in the block
	ranks   []int  // of the best hit that says it, from 1; 0 = none of all that search can return
	why     []string
	tokens  int
	block   string
	wishes  int  // lines of the block that are standing wishes
	silent  bool // nothing else stands in it
	took    time.Duration
}

// asked asks for q in the first message of a new conversation.
func asked(ctx context.Context, m *memory.Store, q *question, k int, floor float64) ([]memory.Hit, error) {
	return m.Search(ctx, memory.Query{Text: q.Query, Scopes: scopesOf(q), Now: q.Now, Turns: true, Floor: floor, K: k})
}

func scopesOf(q *question) []memory.Scope {
	return []memory.Scope{trust.Readers(q.Scope), memory.Shared}
}

// measure asks for q and looks for its evidence in the recalled block of each size. A smaller block
// is cut from the same hits, because fewer are only the first of them.
func measure(ctx context.Context, m *memory.Store, q *question, sizes []room, why bool) (all []*result, err error) {
	most := 0
	for _, size := range sizes {
		most = max(most, size.hits+1)
	}
	began := time.Now()
	_, err = asked(ctx, m, q, most, search.DefaultFloor)
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	var wide []memory.Hit
	if why && len(q.facts) > 0 {
		if wide, err = asked(ctx, m, q, 500, 0); err != nil {
			return nil, err
		}
	}
	for _, size := range sizes {
		r := &result{question: q, took: took}
		content, err := section.Recall(ctx, m, memory.Query{Text: q.Query, Scopes: scopesOf(q), Now: q.Now},
			section.RecallLimit{Tokens: size.tokens - wishes, Hits: size.hits, Wishes: wishes})
		if err != nil {
			return nil, err
		}
		if content != nil {
			r.block, r.tokens = content.Text(), llm.EstimateTokens(content.Text())
			r.wishes = strings.Count(r.block, section.WishMarker)
			r.silent = r.wishes == len(content.Lines)
		} else {
			r.silent = true
		}
		for _, f := range q.facts {
			r.present = append(r.present, says(r.block, f))
		}
		if why {
			r.explain(wide, size)
		}
		all = append(all, r)
	}
	return all, nil
}

// explain sets ranks and why of the facts. wide are all hits, also below the floor.
func (r *result) explain(wide []memory.Hit, size room) {
	for i, f := range r.facts {
		rank := 1 + slices.IndexFunc(wide, func(h memory.Hit) bool { return isOf(h, f) || says(line(h, nil), f) })
		r.ranks = append(r.ranks, rank)
		switch {
		case r.present[i]:
			r.why = append(r.why, "")
		case rank == 0:
			r.why = append(r.why, "no candidate")
		case r.silent:
			r.why = append(r.why, "floor: empty block")
		case isCommon(wide[rank-1]):
			r.why = append(r.why, "floor: a common word only")
		case rank > size.hits+1:
			r.why = append(r.why, "ranked low")
		case !says(line(wide[rank-1], nil), f):
			r.why = append(r.why, "quote cut")
		default:
			r.why = append(r.why, "no room")
		}
	}
}

func isOf(h memory.Hit, f *fact) bool {
	return h.Turn != nil && h.Turn.Event == event(f.Ref) || h.Entry.Event == event(f.Ref) || h.Turn == nil && h.Entry.Text == f.Memory
}

func isCommon(h memory.Hit) bool { return h.Covered < search.DefaultFloor/3 && !h.Near }

// says reports whether text has the sentence that says f, or the memory of it.
func says(text string, f *fact) bool {
	return strings.Contains(text, f.Text) || f.Memory != "" && strings.Contains(text, f.Memory)
}

func line(h memory.Hit, said map[string]bool) string {
	return h.Line(time.UTC, func(t memory.Turn) bool { return said[t.Event] })
}
