package main

import (
	"context"
	"slices"
	"time"

	"reverie/internal/search"
)

// cuts are the numbers of hits, rooms the tokens, within which evidence is counted.
var (
	cuts  = [3]int{5, 10, 20}
	rooms = [3]int{1_500, 2_000, 4_000}
)

const (
	deepest = 100 // hits looked at
	prompt  = 10  // hits of the search that is timed, with the floor
)

// score sums up questions. Shares are between 0 and 100.
type score struct {
	Questions int        `json:"questions"` // with evidence
	Recall    [3]float64 `json:"recall"`    // within cuts
	MRR       float64    `json:"mrr"`
	Within    [3]float64 `json:"within"` // rooms
	Mute      float64    `json:"mute"`   // of Questions, nothing passes the floor
	Without   int        `json:"without_evidence"`
	Quiet     float64    `json:"quiet"` // of Without, nothing passes the floor
}

// result is what one way found in a set.
type result struct {
	Way   string            `json:"way"`
	All   score             `json:"all"` // questions that are not apart
	Kinds map[string]*score `json:"kinds"`
	P50   float64           `json:"p50_ms"`
	P99   float64           `json:"p99_ms"`
	Found map[int]float64   `json:"-"` // question → its recall within cuts[1]
}

// measure asks all questions of s.
func measure(ctx context.Context, s *set, w way) (*result, error) {
	r := &result{Way: w.name, Kinds: map[string]*score{}, Found: map[int]float64{}}
	var took []time.Duration
	for i, q := range s.questions {
		hits, err := w.search(ctx, q, deepest, 0)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		passed, err := w.search(ctx, q, prompt, search.DefaultFloor)
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		if r.Kinds[q.Kind] == nil {
			r.Kinds[q.Kind] = &score{}
		}
		r.Kinds[q.Kind].add(s, q, hits, len(passed) == 0)
		if !q.Apart {
			r.All.add(s, q, hits, len(passed) == 0)
		}
		if len(q.Evidence) > 0 {
			r.Found[i] = share(q.Evidence, hits[:min(len(hits), cuts[1])])
		}
	}
	r.All.finish()
	for _, k := range r.Kinds {
		k.finish()
	}
	if slices.Sort(took); len(took) > 0 {
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }
		r.P50, r.P99 = ms(took[len(took)/2]), ms(took[len(took)*99/100])
	}
	return r, nil
}

func (c *score) add(s *set, q question, hits []string, silent bool) {
	if len(q.Evidence) == 0 {
		c.Without++
		if silent {
			c.Quiet++
		}
		return
	}
	c.Questions++
	if silent {
		c.Mute++
	}
	for i, k := range cuts {
		c.Recall[i] += share(q.Evidence, hits[:min(len(hits), k)])
	}
	if first := slices.IndexFunc(hits, func(ref string) bool { return slices.Contains(q.Evidence, ref) }); first >= 0 {
		c.MRR += 1 / float64(first+1)
	}
	for i, room := range rooms {
		var fit []string
		for _, ref := range hits {
			if cost := s.tokens[q.Scope][ref]; cost <= room {
				fit, room = append(fit, ref), room-cost
			}
		}
		c.Within[i] += share(q.Evidence, fit)
	}
}

// share is the share of evidence among hits.
func share(evidence, hits []string) float64 {
	n := 0
	for _, ref := range evidence {
		if slices.Contains(hits, ref) {
			n++
		}
	}
	return float64(n) / float64(len(evidence))
}

// finish turns sums into shares.
func (c *score) finish() {
	n := float64(max(c.Questions, 1))
	for i := range c.Recall {
		c.Recall[i] *= 100 / n
		c.Within[i] *= 100 / n
	}
	c.MRR, c.Mute, c.Quiet = c.MRR/n, 100*c.Mute/n, 100*c.Quiet/float64(max(c.Without, 1))
}
