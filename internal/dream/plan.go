package dream

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/text"
)

const (
	settled    = 10 * time.Minute     // what is newer is left alone: it may be part of a talk
	staleAfter = 180 * 24 * time.Hour // without having been of use
	maxGroup   = 20                   // entries that one is shown for, with itself
)

// everything is what the dreamer may see; scopes are kept apart by the plan.
var everything = memory.Access{Actor: "dreaming", All: true}

// planned is a step with what speaks for it.
type planned struct {
	memory.Step
	why string
}

// plan is what a night is to do.
type plan struct {
	memories *memories // as the steps leave them
	steps    []planned
	tasks    []plannedTask
}

// plan reads everything and decides what is to be done. It writes nothing. Each part has the
// memories as those before it leave them, and says what it would do.
func (r *run) plan(ctx context.Context) (*plan, error) {
	m, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{memories: m}
	add := func(steps []planned) { p.steps, p.memories = append(p.steps, steps...), p.memories.after(steps) }
	if r.has(Dedup) {
		add(merge(p.memories))
	}
	found, alike := corrections(p.memories, r.has(Dedup), r.has(Contradiction))
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pairs := append(slices.Concat(found...), r.near(ctx, p.memories, alike)...)
	r.ask(ctx, pairs)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	j := judge(found, pairs)
	superseded, questions, more := supersede(p.memories, j)
	add(superseded)
	r.report.Questions, r.more = questions, r.more || more
	if r.has(Dedup) && j.believed {
		grouped, more := group(p.memories, pairs, m.most()-len(superseded))
		add(grouped)
		r.more = r.more || more
	}
	if r.has(Stale) {
		add(stale(p.memories, r.now))
	}
	return p, nil
}

// load reads what counts.
func (r *run) load(ctx context.Context) (*memories, error) {
	known, err := r.d.remember(ctx)
	if err != nil {
		return nil, err
	}
	all, err := r.d.cfg.Store.List(ctx, everything, memory.Filter{Members: true})
	if err == nil {
		err = r.d.cfg.Store.LoadOriginalSources(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	fresh := r.now.Add(-settled)
	if r.o.Now {
		fresh = r.now.AddDate(1000, 0, 0)
	}
	m, young := arrange(all, known, fresh)
	if r.report.Active = m.active; young > 0 {
		r.note("%d memories of the last ten minutes were left alone", young)
	}
	return m, nil
}

// merge plans that what says the same in the same words is one entry, in each scope.
func merge(m *memories) (steps []planned) {
	for _, all := range m.scopes {
		steps = append(steps, mergeScope(all, m.refused)...)
	}
	return steps
}

// mergeScope merges what says the same in the same words, and what another one says too, beside more:
// sorted by their words, that one comes later, among those that begin the same.
func mergeScope(all []*signature, refused map[[2]string]bool) (steps []planned) {
	sorted := make([]*signature, len(all))
	for i, s := range all {
		own := *s // what is merged into it makes it newer
		sorted[i] = &own
	}
	slices.SortFunc(sorted, func(a, b *signature) int { return cmp.Or(strings.Compare(a.core, b.core), better(a, b)) })
	gone := map[string]bool{}
	try := func(a, b *signature, why string) {
		if gone[a.ID] || gone[b.ID] || refused[pairOf(a.ID, b.ID)] || rank(a.Entry) > rank(b.Entry) || a.Integrity > b.Integrity ||
			!together(a, b) || !covers(b, a) {
			return
		}
		steps = append(steps, planned{memory.Step{Kind: memory.MergeStep, ID: a.ID, Rev: a.Rev, By: b.ID, ByRev: b.Rev}, why})
		gone[a.ID] = true
		b.renew(a)
	}
	for i, a := range slices.Backward(sorted) {
		first, _ := slices.BinarySearchFunc(sorted, a.core, func(s *signature, core string) int {
			return strings.Compare(s.core, core)
		})
		for j, b := range sorted[first:] {
			if !strings.HasPrefix(b.core, a.core) || gone[a.ID] {
				break
			}
			switch {
			case first+j < i:
				try(a, b, "the same words")
			case first+j > i && b.core != a.core:
				try(a, b, "the other says it too")
			}
		}
	}
	return steps
}

// supersede plans that the newer of two holds from its date on, where a model and the structure
// say so. What only the model says is a question. more tells that there was too much for one night.
func supersede(m *memories, j judged) (steps []planned, questions []report.Question, more bool) {
	agreed := j.agreed(m)
	var sure []*pair
	for _, p := range slices.Concat(j.corrections...) {
		why := p.doubt()
		switch {
		case m.over(p):
		case p.claimed() && why == "" && agreed[p]:
			sure = append(sure, p)
		case !p.claimed() && (p.shared <= 0 || p.verdict != unsure && p.verdict != keepFirst):
		case m.asked[pairOf(p.a.ID, p.b.ID)] || j.repeated(m, p):
		case tooMany(questions, p.a.Scope):
			more = true
		default:
			why = cmp.Or(why, i18n.New("why.only_a_model"))
			questions = append(questions, report.Asked(p.a.Entry, p.b.Entry, why))
		}
	}
	slices.SortFunc(sure, func(p, q *pair) int {
		return cmp.Or(p.a.Since().Compare(q.a.Since()), cmp.Compare(p.a.ID, q.a.ID))
	})
	if len(sure) > m.most() {
		sure, more = sure[:m.most()], true
	}
	gone := map[string]bool{}
	for _, p := range sure {
		gone[p.a.ID] = true
		step := memory.Step{Kind: memory.SupersedeStep, ID: p.a.ID, Rev: p.a.Rev, By: p.b.ID, ByRev: p.b.Rev}
		steps = append(steps, planned{step, "another answer"})
	}
	questions = slices.DeleteFunc(questions, func(q report.Question) bool { return gone[q.First] || gone[q.Second] })
	return steps, questions, more
}

// doubt says why the newer entry may not simply take the place of the older.
func (p *pair) doubt() i18n.Text {
	switch {
	case p.verdict == unsure:
		return i18n.New("why.unsure")
	case p.a.Pinned:
		return i18n.New("why.pinned")
	case outranks(p.a.Entry, p.b.Entry):
		return i18n.New("why.only_heard")
	case p.b.Since().Sub(p.a.Since()) < time.Second:
		return i18n.New("why.same_time")
	case p.verdict == keepFirst:
		return i18n.New("why.older_right")
	}
	return ""
}

// group plans that of those that say the same in other words, as a model says, the fullest
// is shown for the others, in each scope. more tells that these are more than most.
func group(m *memories, pairs []*pair, most int) (steps []planned, more bool) {
	for _, all := range m.scopes {
		steps, more = groupScope(m, all[0].Scope, pairs, steps, most)
		if more {
			break
		}
	}
	return steps, more
}

// groupScope adds those of one scope to steps. Each of them means the same as the one that is shown.
func groupScope(m *memories, scope memory.Scope, pairs []*pair, steps []planned, most int) (_ []planned, more bool) {
	same := map[[2]string]bool{}
	var some []*signature
	for _, p := range pairs {
		if !p.same || p.verdict != duplicate || m.over(p) || p.a.Scope != scope {
			continue
		}
		same[pairOf(p.a.ID, p.b.ID)] = true
		some = append(some, p.a, p.b)
	}
	slices.SortFunc(some, better)
	some = slices.Compact(some)
	by, members := map[string]string{}, maps.Clone(m.heads)
	isMember := func(s *signature) bool {
		head := m.byID[cmp.Or(by[s.ID], s.By)]
		return head != nil && !m.gone[head.ID] && cmp.Or(by[head.ID], head.By) == ""
	}
	for _, head := range some {
		if isMember(head) {
			continue
		}
		for _, s := range some {
			if s == head || !same[pairOf(head.ID, s.ID)] || isMember(s) || !mayStand(head, s) || members[head.ID]+1 >= maxGroup {
				continue
			}
			if len(steps) >= most {
				return steps, true
			}
			members[head.ID]++
			by[s.ID] = head.ID
			step := memory.Step{Kind: memory.GroupStep, ID: s.ID, Rev: s.Rev, By: head.ID, ByRev: head.Rev}
			steps = append(steps, planned{step, "the same in other words"})
		}
	}
	return steps, false
}

// mayStand reports whether head may be shown for s, if a model says that both mean the same:
// it is as full and as sure, lacks no name or number, and nobody's word counts more.
func mayStand(head, s *signature) bool {
	return !otherEnd(head, s) && s.Integrity <= head.Integrity && rank(s.Entry) <= rank(head.Entry) &&
		len(s.stems) <= len(head.stems) && s.hedged == head.hedged && len(text.Missing(s.Text, head.Text)) == 0
}

// otherEnd reports whether two texts differ in their last word alone. They are rather two
// answers to one question than one in other words: likes sushi, likes goulash.
func otherEnd(a, b *signature) bool {
	if n := len(a.stems); n == 0 || n != len(b.stems) {
		return false
	}
	other := 0
	for _, x := range a.stems {
		if !has(b.stems, x) {
			other++
		}
	}
	return other == 1 && b.index(a.tokens[len(a.tokens)-1]) < 0 && a.index(b.tokens[len(b.tokens)-1]) < 0
}

// stale puts away what happened or was concluded long ago and was of no use since.
// What a person wrote or pinned stays.
func stale(m *memories, now time.Time) (steps []planned) {
	most := max(1, m.active/50)
	for _, all := range m.scopes {
		for _, s := range all {
			if m.gone[s.ID] || m.refused[pairOf(s.ID, "")] || !s.isStale(now) {
				continue
			}
			if most--; most < 0 {
				return steps
			}
			steps = append(steps, planned{memory.Step{Kind: memory.ArchiveStep, ID: s.ID, Rev: s.Rev}, "of no use for half a year"})
		}
	}
	return steps
}

func (s *signature) isStale(now time.Time) bool {
	used := s.LastHit
	if used.IsZero() || used.Before(s.ObservedAt) {
		used = s.ObservedAt
	}
	return (s.Kind == memory.Happening || s.Kind == memory.Insight) && !s.Pinned && rank(s.Entry) <= 2 &&
		now.Sub(used) >= staleAfter && now.Sub(s.CreatedAt) >= staleAfter && !s.ValidTo.After(now) && !s.ValidFrom.After(now)
}
