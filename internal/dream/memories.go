package dream

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"reverie/internal/memory"
	"reverie/internal/text"
)

// past holds the results of earlier dreams.
type past struct {
	last     time.Time          // when the last one ended that did not fail; without one, a day ago
	since    time.Time          // entries unchanged since then were compared already
	replaced map[string]bool    // entries that superseded others
	refused  map[[2]string]bool // pairs whose step a person undid
	asked    map[[2]string]bool // pairs that a person was asked about
}

// memories is an immutable view of the active entries during a plan; after makes the next one.
type memories struct {
	past
	names  *namer
	active int                   // number of active entries
	scopes [][]*signature        // entries that a plan may change, by scope
	byID   map[string]*signature // the same entries
	gone   map[string]bool       // retired by the plan
	heads  map[string]int        // number of members by head
}

// arrange divides entries by scope. It skips those newer than fresh and counts them in young.
func arrange(all []memory.Entry, p past, fresh time.Time) (m *memories, young int) {
	names := newNamer()
	m = &memories{past: p, names: &names, byID: map[string]*signature{}, gone: map[string]bool{}}
	at := map[memory.Scope]int{}
	for _, e := range all {
		if e.Conversation != "" {
			continue // a line of a conversation is no fact
		}
		m.active++
		s := m.names.signatureOf(e)
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

// members counts the members of each head. A member whose head is not shown becomes independent.
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

// after returns m with steps applied.
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

// renew gives s the date of a, which is merged into it. It does not if a is trusted less.
func (s *signature) renew(a *signature) {
	if a.Integrity >= s.Integrity && a.ObservedAt.After(s.ObservedAt) {
		s.ObservedAt = a.ObservedAt
	}
}

// most is the limit of steps in one night that depend on a model.
func (m *memories) most() int { return max(5, m.active/5) }

// closed reports whether one entry of p is retired. It is also true if a person undid a step about
// p.
func (m *memories) closed(p *pair) bool {
	return m.gone[p.a.ID] || m.gone[p.b.ID] || m.refused[pairOf(p.a.ID, p.b.ID)]
}

func (m *memories) changedSinceLast(p *pair) bool {
	return !p.a.UpdatedAt.Before(m.since) || !p.b.UpdatedAt.Before(m.since)
}

func sameGroup(a, b *signature) bool {
	return a.By == b.ID || b.By == a.ID || a.By != "" && a.By == b.By
}

// better orders entries by integrity, rank, length and age.
func better(a, b *signature) int {
	return cmp.Or(cmp.Compare(b.Integrity, a.Integrity), cmp.Compare(rank(b.Entry), rank(a.Entry)),
		cmp.Compare(len(b.tokens), len(a.tokens)), cmp.Compare(len(b.protected), len(a.protected)),
		a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

func pairOf(a, b string) [2]string { return [2]string{min(a, b), max(a, b)} }

// pair is an older entry a and a newer entry b. A model labels it.
type pair struct {
	a, b     *signature
	conflict bool    // b may replace a; see corrections.go
	same     bool    // they may be paraphrases
	shared   int     // number of shared topic words; -1 = different subjects
	denies   bool    // one negates the other
	weight   int     // similarity
	verdict  verdict // "" = unknown
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// paraphrase reports whether a and b may be paraphrases: they share numbers, names and half of the stems.
func paraphrase(a, b *signature) bool {
	return a.negative == b.negative && !a.compound && !b.compound && a.protected == b.protected && a.ValidTo.Equal(b.ValidTo) &&
		together(a, b) && jaccard(a.stems, b.stems) >= .5
}

type judged struct {
	corrections []correction
	believed    bool // the model's duplicates are credible
	duplicates  map[[2]string]bool
}

func judge(found []correction, pairs []*pair) judged {
	j := judged{corrections: found, believed: !callsMostDuplicates(found), duplicates: map[[2]string]bool{}}
	for _, c := range found {
		c.markDuplicates()
	}
	for _, p := range pairs {
		if j.believed && p.verdict == duplicate {
			j.duplicates[pairOf(p.a.ID, p.b.ID)] = true
		}
	}
	return j
}

// sameAs reports whether two entries are known duplicates.
func (j judged) sameAs(a, b *signature) bool {
	person := a.Scope.Person()
	aboutOne := a.Scope == b.Scope &&
		(strings.EqualFold(a.Subject, b.Subject) || a.Subject == "" && b.Subject == person || b.Subject == "" && a.Subject == person)
	return aboutOne && (covers(a, b) || covers(b, a)) || j.duplicates[pairOf(a.ID, b.ID)] || sameGroup(a, b)
}

// repeated reports whether an earlier question had a duplicate of p.
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

const (
	neighbours = 3                // compared with one entry
	nearTime   = 20 * time.Second // to find neighbours in one night
)

// near adds pairs of embedding neighbours with the same names and numbers. They may be paraphrases.
// It adds at most one pair for four entries.
func (r *run) near(ctx context.Context, m *memories, pairs []*pair) []*pair {
	if !r.has(Dedup) || r.d.cfg.Ask == nil {
		return pairs
	}
	known := map[[2]string]bool{}
	for _, p := range pairs {
		known[pairOf(p.a.ID, p.b.ID)] = true
	}
	var changed []*signature
	for _, all := range m.scopes {
		for _, s := range all {
			if !m.gone[s.ID] && !s.UpdatedAt.Before(m.since) && !s.compound {
				changed = append(changed, s)
			}
		}
	}
	// A random order covers all entries over several nights.
	rand.Shuffle(len(changed), func(i, j int) { changed[i], changed[j] = changed[j], changed[i] })
	began, most := time.Now(), max(perRequest, m.active/4)
	for _, a := range changed {
		if ctx.Err() != nil || most == 0 {
			return pairs
		}
		if time.Since(began) > nearTime {
			r.more = true
			return pairs
		}
		found, err := r.d.cfg.Store.Neighbours(ctx, a.ID, neighbours)
		if err != nil {
			if ctx.Err() == nil {
				r.note("what is near in meaning could not be looked for: %v", err)
			}
			return pairs
		}
		for _, id := range found {
			if b := m.byID[id]; b != nil && !known[pairOf(a.ID, b.ID)] && most > 0 {
				known[pairOf(a.ID, b.ID)] = true
				if p := m.compareNear(a, b); p != nil {
					pairs = append(pairs, p)
					most--
				}
			}
		}
	}
	return pairs
}

// compareNear returns a pair of two neighbours, or nil if they cannot be paraphrases.
func (m *memories) compareNear(a, b *signature) *pair {
	if m.gone[b.ID] || m.refused[pairOf(a.ID, b.ID)] || a.negative != b.negative || a.hedged != b.hedged || a.compound || b.compound ||
		!a.ValidTo.Equal(b.ValidTo) || !together(a, b) ||
		len(text.LostProtected(a.Text, b.Text))+len(text.LostProtected(b.Text, a.Text)) > 0 || sameGroup(a, b) {
		return nil
	}
	if byAge(a, b) > 0 {
		a, b = b, a
	}
	return &pair{a: a, b: b, same: true}
}
