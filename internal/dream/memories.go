package dream

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"reverie/internal/memory"
)

// past is what earlier dreams left to know.
type past struct {
	since    time.Time          // what was changed before it has been compared with all already
	replaced map[string]bool    // entries that took the place of others before
	refused  map[[2]string]bool // pairs that somebody parted again
	asked    map[[2]string]bool // questions that were put already
}

// memories is what counts, as the steps of a plan so far leave it. Nobody changes one: after makes the next.
type memories struct {
	past
	names  *namer
	active int                   // entries that count, of all scopes
	scopes [][]*signature        // what may be touched, in the order of its age
	byID   map[string]*signature // the same
	gone   map[string]bool       // retired by the plan
	heads  map[string]int        // how many others each is shown for
}

// arrange divides entries into their scopes. What is newer than fresh is left alone; young is how
// many these are.
func arrange(all []memory.Entry, p past, fresh time.Time) (m *memories, young int) {
	names := newNamer()
	m = &memories{past: p, names: &names, byID: map[string]*signature{}, gone: map[string]bool{}}
	at := map[memory.Scope]int{}
	for _, e := range all {
		if e.Conversation != "" {
			continue // a line of a talk is no fact
		}
		m.active++
		s := m.names.sign(e)
		if e.CreatedAt.After(fresh) && e.ObservedAt.After(fresh) {
			young++
			continue
		}
		i, there := at[e.Scope]
		if !there {
			i = len(m.scopes)
			at[e.Scope] = i
			m.scopes = append(m.scopes, nil)
		}
		m.scopes[i] = append(m.scopes[i], &s)
		m.byID[e.ID] = &s
	}
	m.heads = members(m.byID)
	return m, young
}

// members counts for how many others each entry is shown, and has those shown themselves again
// whose head is not.
func members(byID map[string]*signature) map[string]int {
	heads := map[string]int{}
	var shown []*signature
	for _, s := range byID {
		if head := byID[s.By]; head != nil && head.By == "" {
			heads[head.ID]++
		} else {
			shown = append(shown, s)
		}
	}
	for _, s := range shown {
		s.By = ""
	}
	return heads
}

// after is m as steps leave it.
func (m *memories) after(steps []planned) *memories {
	next := *m
	next.byID, next.gone, next.heads = maps.Clone(m.byID), maps.Clone(m.gone), maps.Clone(m.heads)
	change := func(id string, f func(*signature)) {
		s := *next.byID[id]
		f(&s)
		next.byID[id] = &s
	}
	shownBy := func(id, head string) { change(id, func(s *signature) { s.By = head }) }
	for _, s := range steps {
		if s.Kind == memory.GroupStep {
			next.heads[s.By]++
			shownBy(s.ID, s.By)
			continue
		}
		if next.gone[s.ID] = true; s.Kind != memory.MergeStep {
			continue
		}
		if next.heads[s.ID] > 0 { // its members become those of the other
			for id, member := range next.byID {
				if member.By == s.ID {
					shownBy(id, s.By)
				}
			}
			shownBy(s.By, "")
			next.heads[s.By] += next.heads[s.ID]
		}
		change(s.By, func(b *signature) { b.renew(next.byID[s.ID]) })
	}
	next.scopes = make([][]*signature, len(m.scopes))
	for i, all := range m.scopes {
		for _, s := range all {
			next.scopes[i] = append(next.scopes[i], next.byID[s.ID])
		}
	}
	return &next
}

// renew lets s be as new as a, which is merged into it, unless that is trusted less.
func (s *signature) renew(a *signature) {
	if a.Integrity >= s.Integrity && a.ObservedAt.After(s.ObservedAt) {
		s.ObservedAt = a.ObservedAt
	}
}

// most is how many steps of a night may rest on what a model says.
func (m *memories) most() int { return max(5, m.active/5) }

// over reports whether nothing is done about p: one of the two is retired, or somebody parted them again.
func (m *memories) over(p *pair) bool {
	return m.gone[p.a.ID] || m.gone[p.b.ID] || m.refused[pairOf(p.a.ID, p.b.ID)]
}

// fresh reports whether one of p changed since the last dream.
func (m *memories) fresh(p *pair) bool {
	return !p.a.UpdatedAt.Before(m.since) || !p.b.UpdatedAt.Before(m.since)
}

// sameGroup reports whether one of a and b is shown for the other, or a third for both.
func sameGroup(a, b *signature) bool {
	return a.By == b.ID || b.By == a.ID || a.By != "" && a.By == b.By
}

// better orders entries: the one that is trusted more first, then the one whose word counts
// more, then the one that says more, then the older.
func better(a, b *signature) int {
	return cmp.Or(cmp.Compare(b.Integrity, a.Integrity), cmp.Compare(rank(b.Entry), rank(a.Entry)),
		cmp.Compare(len(b.tokens), len(a.tokens)), cmp.Compare(len(b.protected), len(a.protected)),
		a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

func pairOf(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

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

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// paraphrase reports whether a and b may say the same in other words: numbers and
// names are the same, and most of the words.
func paraphrase(a, b *signature) bool {
	return a.negative == b.negative && !a.compound && !b.compound && a.protected == b.protected && a.ValidTo.Equal(b.ValidTo) &&
		together(a, b) && share(a.stems, b.stems) >= .5
}

// judged is pairs with what a model said of them.
type judged struct {
	corrections []correction
	pairs       []*pair // with those of the corrections
	believed    bool    // what it calls the same may be the same
	alike       map[[2]string]bool
}

// judge takes the verdicts of pairs together, found among them.
func judge(found []correction, pairs []*pair) judged {
	j := judged{corrections: found, pairs: pairs, believed: !takesAllForTheSame(found), alike: map[[2]string]bool{}}
	for _, c := range found {
		c.alike()
	}
	for _, p := range pairs {
		if j.believed && p.verdict == duplicate {
			j.alike[pairOf(p.a.ID, p.b.ID)] = true
		}
	}
	return j
}

// sameAs reports whether two entries say the same, as far as is known.
func (j judged) sameAs(a, b *signature) bool {
	person := a.Scope.Person()
	aboutOne := a.Scope == b.Scope &&
		(strings.EqualFold(a.Subject, b.Subject) || a.Subject == "" && b.Subject == person || b.Subject == "" && a.Subject == person)
	return aboutOne && (covers(a, b) || covers(b, a)) || j.alike[pairOf(a.ID, b.ID)] || sameGroup(a, b)
}

// repeated reports whether p asks in other words what was a question before.
func (j judged) repeated(m *memories, p *pair) bool {
	for q := range m.asked {
		for i, id := range q {
			other := m.byID[q[1-i]]
			if other != nil && (id == p.b.ID && j.sameAs(other, p.a) || id == p.a.ID && j.sameAs(other, p.b)) {
				return true
			}
		}
	}
	return false
}
