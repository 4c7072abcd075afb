package dream

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

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

// plan reads everything and decides what is to be done. It writes nothing.
func (n *night) plan(ctx context.Context) error {
	scopes, err := n.load(ctx)
	if err != nil {
		return err
	}
	var pairs []*pair
	var found []correction
	for _, scope := range scopes {
		if n.has(Dedup) {
			n.same(scope)
		}
		corrections, same := n.topics(scope).pairs()
		found, pairs = append(found, corrections...), append(pairs, same...)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pairs = append(slices.Concat(found...), n.near(ctx, scopes, pairs)...)
	n.ask(ctx, pairs)
	if err := ctx.Err(); err != nil {
		return err
	}
	believed := !takesAllForTheSame(found)
	for _, c := range found {
		c.alike()
	}
	for _, p := range pairs {
		if believed && p.verdict == duplicate {
			n.alike[pairOf(p.a.ID, p.b.ID)] = true
		}
	}
	n.supersede(found)
	if n.has(Dedup) && believed {
		for _, all := range scopes {
			n.group(all, pairs)
		}
	}
	if n.has(Stale) {
		n.stale(scopes)
	}
	return nil
}

// load reads what counts.
func (n *night) load(ctx context.Context) ([][]*signature, error) {
	if err := n.remember(ctx); err != nil {
		return nil, err
	}
	all, err := n.d.cfg.Store.List(ctx, everything, memory.Filter{Members: true})
	if err == nil {
		err = n.d.cfg.Store.Origins(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	return n.arrange(all), nil
}

// arrange divides entries into their scopes, each in the order of its age.
func (n *night) arrange(all []memory.Entry) [][]*signature {
	n.names = newNamer()
	n.byID, n.gone = map[string]*signature{}, map[string]bool{}
	n.alike = map[[2]string]bool{}
	at := map[memory.Scope]int{}
	var scopes [][]*signature
	young := 0
	for _, e := range all {
		if e.Conversation != "" {
			continue // a line of a talk is no fact
		}
		n.active++
		s := n.names.sign(e)
		if !n.o.Now && n.now.Sub(e.CreatedAt) < settled && n.now.Sub(e.ObservedAt) < settled {
			young++
			continue
		}
		i, there := at[e.Scope]
		if !there {
			i = len(scopes)
			at[e.Scope] = i
			scopes = append(scopes, nil)
		}
		scopes[i] = append(scopes[i], &s)
		n.byID[e.ID] = &s
	}
	if n.report.Active = n.active; young > 0 {
		n.note("%d memories of the last ten minutes were left alone", young)
	}
	n.members()
	return scopes
}

// members finds out which entries another one is shown for, and which are shown themselves again.
func (n *night) members() {
	n.heads = map[string]int{}
	var shown []*signature
	for _, s := range n.byID {
		if head := n.byID[s.By]; head != nil && head.By == "" {
			n.heads[head.ID]++
		} else {
			shown = append(shown, s)
		}
	}
	for _, s := range shown {
		s.By = ""
	}
}

// sameGroup reports whether one of a and b is shown for the other, or a third for both.
func sameGroup(a, b *signature) bool {
	return a.By == b.ID || b.By == a.ID || a.By != "" && a.By == b.By
}

// better orders entries: the one that is trusted more first, then the one whose word counts
// more, then the one that says more, then the older.
func better(a, b *signature) int {
	return cmp.Or(cmp.Compare(b.Integrity, a.Integrity), cmp.Compare(rank(b.Entry), rank(a.Entry)), cmp.Compare(len(b.tokens), len(a.tokens)), cmp.Compare(len(b.protected), len(a.protected)),
		a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

func pairOf(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// merge plans that b takes the place of a.
func (n *night) merge(a, b *signature, why string) {
	n.steps = append(n.steps, planned{memory.Step{Kind: memory.MergeStep, ID: a.ID, Rev: a.Rev, By: b.ID, ByRev: b.Rev}, why})
	n.gone[a.ID] = true
	if n.heads[a.ID] > 0 { // its members become those of b
		for _, s := range n.byID {
			if s.By == a.ID {
				s.By = b.ID
			}
		}
		b.By, n.heads[b.ID] = "", n.heads[a.ID]+n.heads[b.ID]
	}
	if a.Integrity >= b.Integrity && a.ObservedAt.After(b.ObservedAt) {
		b.ObservedAt = a.ObservedAt
	}
}

func (n *night) mayMerge(a, b *signature) bool {
	return !n.gone[a.ID] && !n.gone[b.ID] && !n.refused[pairOf(a.ID, b.ID)] && rank(a.Entry) <= rank(b.Entry) && a.Integrity <= b.Integrity && together(a, b) && covers(b, a)
}

// same merges what says the same in the same words, and what another one says too, beside more:
// sorted by their words, that one comes later, among those that begin the same.
func (n *night) same(all []*signature) {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *signature) int { return cmp.Or(strings.Compare(a.core, b.core), better(a, b)) })
	for i, a := range slices.Backward(sorted) {
		first, _ := slices.BinarySearchFunc(sorted, a.core, func(s *signature, core string) int { return strings.Compare(s.core, core) })
		for j, b := range sorted[first:] {
			if !strings.HasPrefix(b.core, a.core) || n.gone[a.ID] {
				break
			}
			switch {
			case first+j < i && n.mayMerge(a, b):
				n.merge(a, b, "the same words")
			case first+j > i && b.core != a.core && n.mayMerge(a, b):
				n.merge(a, b, "the other says it too")
			}
		}
	}
}

// pair is two entries that a model is asked about, the older first.
type pair struct {
	a, b     *signature
	conflict bool    // b may take the place of a; see corrections.go
	same     bool    // they may say the same
	shared   int     // words that a correction shares with the older text beside its subject; -1 = it has another subject
	denies   bool    // one of them says that it is not so
	weight   int     // how much a correction is like the older text
	verdict  verdict // "" = not known
}

// over reports whether nothing is done about p: one of the two is retired, or somebody parted them again.
func (n *night) over(p *pair) bool {
	return n.gone[p.a.ID] || n.gone[p.b.ID] || n.refused[pairOf(p.a.ID, p.b.ID)]
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// byAge are a and b, the older first.
func byAge(a, b *signature) (older, newer *signature) {
	if cmp.Or(a.Since().Compare(b.Since()), cmp.Compare(a.ID, b.ID)) > 0 {
		return b, a
	}
	return a, b
}

// paraphrase reports whether a and b may say the same in other words: numbers and
// names are the same, and most of the words.
func paraphrase(a, b *signature) bool {
	return a.negative == b.negative && !a.compound && !b.compound && a.protected == b.protected && a.ValidTo.Equal(b.ValidTo) &&
		together(a, b) && share(a.stems, b.stems) >= .5
}

// supersede plans that the newer of two holds from its date on, where a model and the structure
// say so. What only the model says is asked.
func (n *night) supersede(found []correction) {
	agreed := n.agreed(found)
	var sure []*pair
	for _, p := range slices.Concat(found...) {
		why := p.doubt()
		switch {
		case n.over(p):
		case p.claimed() && why == "" && agreed[p]:
			sure = append(sure, p)
		case p.claimed(), p.shared > 0 && (p.verdict == unsure || p.verdict == keepFirst):
			n.question(p, cmp.Or(why, i18n.New("why.only_a_model")))
		}
	}
	slices.SortFunc(sure, func(p, q *pair) int { return cmp.Or(p.a.Since().Compare(q.a.Since()), cmp.Compare(p.a.ID, q.a.ID)) })
	defer func() {
		n.report.Questions = slices.DeleteFunc(n.report.Questions, func(q Question) bool { return n.gone[q.First] || n.gone[q.Second] })
	}()
	for _, p := range sure {
		if n.labelled >= n.most() {
			n.more = true
			return
		}
		n.labelled++
		n.gone[p.a.ID] = true
		n.steps = append(n.steps, planned{memory.Step{Kind: memory.SupersedeStep, ID: p.a.ID, Rev: p.a.Rev, By: p.b.ID, ByRev: p.b.Rev}, "another answer"})
	}
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

// most is how many steps of a night may rest on what a model says.
func (n *night) most() int { return max(5, n.active/5) }

func (n *night) question(p *pair, why i18n.Text) {
	if n.asked[pairOf(p.a.ID, p.b.ID)] || n.repeated(p) {
		return
	}
	if n.tooMany(p.a.Scope) {
		n.more = true
		return
	}
	n.report.Questions = append(n.report.Questions, asked(memory.Question{Scope: p.a.Scope, First: p.a.Entry, Second: p.b.Entry, Why: why}))
}

// group plans that of those that say the same in other words, as a model says, the fullest
// is shown for the others. Each of them means the same as that one.
func (n *night) group(all []*signature, pairs []*pair) {
	same := map[[2]string]bool{}
	var some []*signature
	for _, p := range pairs {
		if !p.same || p.verdict != duplicate || n.over(p) || p.a.Scope != all[0].Scope {
			continue
		}
		same[pairOf(p.a.ID, p.b.ID)] = true
		some = append(some, p.a, p.b)
	}
	slices.SortFunc(some, better)
	some = slices.Compact(some)
	for _, head := range some {
		if n.member(head) {
			continue
		}
		for _, s := range some {
			if s == head || !same[pairOf(head.ID, s.ID)] || n.member(s) || !mayStand(head, s) || n.heads[head.ID]+1 >= maxGroup {
				continue
			}
			if n.labelled >= n.most() {
				n.more = true
				return
			}
			n.labelled++
			n.heads[head.ID]++
			s.By = head.ID
			n.steps = append(n.steps, planned{memory.Step{Kind: memory.GroupStep, ID: s.ID, Rev: s.Rev, By: head.ID, ByRev: head.Rev}, "the same in other words"})
		}
	}
}

// member reports whether another entry is shown for s.
func (n *night) member(s *signature) bool {
	head := n.byID[s.By]
	return head != nil && !n.gone[head.ID] && head.By == ""
}

// mayStand reports whether head may be shown for s, if a model says that both mean the same:
// it is as full and as sure, lacks no name or number, and nobody's word counts more.
func mayStand(head, s *signature) bool {
	return !otherEnd(head, s) && s.Integrity <= head.Integrity && rank(s.Entry) <= rank(head.Entry) && len(s.stems) <= len(head.stems) && s.hedged == head.hedged && len(text.Missing(s.Text, head.Text)) == 0
}

// otherEnd reports whether two short texts differ in their last word alone. They are rather two
// answers to one question than one in other words: likes sushi, likes goulash.
func otherEnd(a, b *signature) bool {
	if n := len(a.stems); n == 0 || n > 3 || n != len(b.stems) {
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
func (n *night) stale(scopes [][]*signature) {
	most := max(1, n.active/50)
	for _, all := range scopes {
		for _, s := range all {
			used := s.LastHit
			if used.IsZero() || used.Before(s.ObservedAt) {
				used = s.ObservedAt
			}
			if n.gone[s.ID] || s.Kind != memory.Happening && s.Kind != memory.Insight || s.Pinned || rank(s.Entry) > 2 ||
				n.now.Sub(used) < staleAfter || n.now.Sub(s.CreatedAt) < staleAfter || s.ValidTo.After(n.now) || s.ValidFrom.After(n.now) || n.refused[pairOf(s.ID, "")] {
				continue
			}
			if most--; most < 0 {
				return
			}
			n.gone[s.ID] = true
			n.steps = append(n.steps, planned{memory.Step{Kind: memory.ArchiveStep, ID: s.ID, Rev: s.Rev}, "of no use for half a year"})
		}
	}
}
