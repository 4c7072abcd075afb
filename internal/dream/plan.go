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
	settled    = 10 * time.Minute     // newer entries may belong to a current conversation and are skipped
	staleAfter = 180 * 24 * time.Hour // without use
	maxGroup   = 20                   // entries of a group, with its head

	maxQuestions = 10 // new ones for one scope in one night
)

// everything lets the dreamer read all scopes. The plan keeps them apart.
var everything = memory.Access{Actor: "dreaming", All: true}

type planned struct {
	memory.Step
	why string
}

type plan struct {
	memories *memories // after the steps
	steps    []planned
	tasks    []plannedTask
}

// plan computes the steps of a night. It stores verdicts and changes nothing else.
func (r *run) plan(ctx context.Context) (*plan, error) {
	m, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	p := &plan{memories: m}
	add := func(steps []planned) { p.steps, p.memories = append(p.steps, steps...), p.memories.after(steps) }
	if r.has(Dedup) {
		var merged []planned
		for _, all := range p.memories.scopes {
			merged = append(merged, mergeScope(all, p.memories.refused)...)
		}
		add(merged)
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

// load reads the active entries and the results of earlier dreams.
func (r *run) load(ctx context.Context) (*memories, error) {
	known, err := r.d.loadPast(ctx)
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
	r.report.Learned = learned(all, known.last)
	m, young := arrange(all, known, fresh)
	if r.report.Active = m.active; young > 0 {
		r.note("%d memories of the last ten minutes were left alone", young)
	}
	return m, nil
}

// learned lists what the assistant noted itself after since, oldest first.
func learned(all []memory.Entry, since time.Time) (lines []report.Line) {
	for _, e := range slices.SortedFunc(slices.Values(all), func(a, b memory.Entry) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
		if (e.Source == memory.Harvest || e.Source == memory.Assistant) && e.Conversation == "" && e.CreatedAt.After(since) {
			lines = append(lines, report.Line{Scope: e.Scope, ID: e.ID, Text: e.Text})
		}
	}
	return lines
}

// mergeScope merges entries of equal words. It also merges entries that are the beginning of
// another one. The other one sorts after them.
func mergeScope(all []*signature, refused map[[2]string]bool) (steps []planned) {
	sorted := make([]*signature, len(all))
	for i, s := range all {
		own := *s // renew changes it
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

// supersede plans to supersede the older entries of agreed pairs. Other claims of the model become
// questions. more reports that the night's limit was reached.
func supersede(m *memories, j judged) (steps []planned, questions []report.Question, more bool) {
	agreed := j.agreed(m)
	var sure []*pair
	for _, p := range slices.Concat(j.corrections...) {
		why := p.doubt()
		switch {
		case m.closed(p):
		case p.claimed() && why == "" && agreed[p]:
			sure = append(sure, p)
		case !p.claimed() && (p.shared <= 0 || p.verdict != unsure && p.verdict != keepFirst):
		case m.asked[pairOf(p.a.ID, p.b.ID)] || j.repeated(m, p):
		case tooMany(questions, p.a.Scope):
			more = true
		default:
			questions = append(questions, report.Question{Scope: p.a.Scope, Why: cmp.Or(why, i18n.New("why.only_a_model")),
				First: p.a.ID, FirstText: p.a.Text, FirstAt: p.a.Since(), Second: p.b.ID, SecondText: p.b.Text, SecondAt: p.b.Since()})
		}
	}
	slices.SortFunc(sure, func(p, q *pair) int { return byAge(p.a, q.a) })
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

func tooMany(questions []report.Question, scope memory.Scope) bool {
	found := 0
	for _, q := range questions {
		found += flag(q.Scope == scope)
	}
	return found >= maxQuestions
}

// doubt returns why the newer entry may not replace the older one without a question. It returns ""
// if it may.
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

// group plans groups of paraphrases, each in one scope. The fullest text of a group is shown for the
// others, which are its duplicates. more reports that there are more than most.
func group(m *memories, pairs []*pair, most int) (steps []planned, more bool) {
	same := map[[2]string]bool{}
	var some []*signature
	for _, p := range pairs {
		if !p.same || p.verdict != duplicate || m.closed(p) {
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
			if s == head || !same[pairOf(head.ID, s.ID)] || isMember(s) || !mayRepresent(head, s) || members[head.ID]+1 >= maxGroup {
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

// mayRepresent reports whether head may be shown for its duplicate s. It is as trusted, as long and as
// certain, and has all names and numbers of s.
func mayRepresent(head, s *signature) bool {
	return !differInLastWord(head, s) && !differInSmallWords(head, s) && s.Integrity <= head.Integrity &&
		rank(s.Entry) <= rank(head.Entry) &&
		len(s.stems) <= len(head.stems) && s.hedged == head.hedged && len(text.Missing(s.Text, head.Text)) == 0
}

// differInLastWord reports whether two texts differ only in their last word. They are two answers to
// one question rather than paraphrases: likes sushi, likes goulash.
func differInLastWord(a, b *signature) bool {
	if n := len(a.stems); n == 0 || n != len(b.stems) {
		return false
	}
	other := 0
	for _, x := range a.stems {
		other += flag(!has(b.stems, x))
	}
	return other == 1 && b.index(a.tokens[len(a.tokens)-1]) < 0 && a.index(b.tokens[len(b.tokens)-1]) < 0
}

// differInSmallWords reports whether two texts differ only in function words, place by place. These may
// reverse the meaning: Der Wirt vertritt Wilma, Den Wirt vertritt Wilma.
func differInSmallWords(a, b *signature) bool {
	if len(a.stems) == 0 || len(a.tokens) != len(b.tokens) {
		return false
	}
	differ := false
	for i, t := range a.tokens {
		u := b.tokens[i]
		if t.text != u.text && !(t.small && u.small) {
			return false
		}
		differ = differ || t.text != u.text
	}
	return differ
}

// stale plans to archive happenings and insights unused for staleAfter. Entries that a person wrote or
// pinned stay.
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
