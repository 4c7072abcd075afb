package dream

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"reverie/internal/text"
)

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
	if cmp.Or(a.Since().Compare(b.Since()), cmp.Compare(a.ID, b.ID)) > 0 {
		a, b = b, a
	}
	return &pair{a: a, b: b, same: true}
}
