package dream

import (
	"cmp"
	"math/bits"
	"slices"
)

// A correction is a newer text that replaces an older one: "Anna's dentist is Adler", "Anna goes to
// Bosse now". A model labels the most similar older texts. Its verdict is applied if the structure
// confirms it (see agreed); otherwise a person is asked.
const (
	perCorrection = 20   // candidates for a newer text that tells of a change
	perOther      = 2    // candidates for other texts
	longTopic     = 1000 // a word in more texts than these is ignored
)

// correction is the pairs of one newer text with older ones, most similar first.
type correction []*pair

// corrections pairs each newer text with the older ones it may replace. same are further paraphrases.
func corrections(m *memories, dedup, contradiction bool) (found []correction, same []*pair) {
	for _, scope := range m.scopes {
		c, also := newTopics(m, scope, dedup, contradiction).pairs()
		found, same = append(found, c...), append(same, also...)
	}
	return found, same
}

// topics is an inverted index of the entries of one scope. It finds those that share words or
// names. Rare words weigh more.
type topics struct {
	*memories
	dedup, contradiction bool // the active phases

	all      []*signature
	lists    map[int32][]int32 // places in all, by key
	keys     [][]int32
	titles   map[int32]bool
	weak     map[int32]bool // keys without a topic: numbers, the words after them, words of change
	subjects []int32        // the person or thing that each text is about
	before   [][]int32      // the two words before the subject: my brother Finn
	common   []common       // by place in all; see sharing
}

// common is the overlap of two texts: its weight, and the number of shared topic words, which are
// neither weak nor the subject.
type common struct{ weight, shared int32 }

// contexts holds for each stem the stems that occur with it, without names. A subject occurs with many
// others, an answer with few.
type contexts map[int32]map[int32]bool

func (c contexts) add(s *signature) {
	first := slices.IndexFunc(s.tokens, func(t token) bool { return !t.small })
	for i, t := range s.tokens {
		if !t.name && i != first {
			continue
		}
		if c[t.stem] == nil {
			c[t.stem] = map[int32]bool{}
		}
		for _, u := range s.tokens {
			if !u.name && !u.small {
				c[t.stem][u.stem] = true
			}
		}
	}
}

// Keys beside those of words.
const (
	noSubject = 0
	theOwner  = -1 // the person whose memory it is
)

func newTopics(m *memories, all []*signature, dedup, contradiction bool) *topics {
	t := &topics{memories: m, dedup: dedup, contradiction: contradiction, all: all,
		lists: map[int32][]int32{}, common: make([]common, len(all)),
		keys: make([][]int32, len(all)), titles: titles(all, m.names), weak: map[int32]bool{}}
	ways := contexts{}
	for _, s := range all {
		ways.add(s)
	}
	t.findSubjects(ways)
	for i, s := range all {
		for j, w := range s.tokens {
			if !w.small && !asides[w.text] {
				t.keys[i] = append(t.keys[i], w.key(m.names))
			}
			if s.number(j) || w.change {
				t.weak[w.key(m.names)] = true
			}
		}
		if s.self {
			t.keys[i] = append(t.keys[i], theOwner)
		}
		t.keys[i] = unique(t.keys[i])
		for _, k := range t.keys[i] {
			t.lists[k] = append(t.lists[k], int32(i))
		}
	}
	return t
}

// byAge orders entries by age, the oldest first.
func byAge(a, b *signature) int { return cmp.Or(a.Since().Compare(b.Since()), cmp.Compare(a.ID, b.ID)) }

// key returns the index key of t: the name itself, or the lowest stem of another word.
func (t token) key(names *namer) int32 {
	if t.name && !hasDigit(t.text) {
		return names.number("name " + names.possessor(t))
	}
	return slices.Min(t.stems)
}

// titles finds the words that mostly stand right before a name: Dr, Tante, Mr.
func titles(all []*signature, names *namer) map[int32]bool {
	times, before := map[int32]int{}, map[int32]int{}
	for _, s := range all {
		for i, w := range s.tokens {
			times[w.key(names)]++
			if i+1 < len(s.tokens) && s.tokens[i+1].name && !s.tokens[i+1].after {
				before[w.key(names)]++
			}
		}
	}
	out := map[int32]bool{}
	for k := range before {
		out[k] = 5*before[k] >= 4*times[k]
	}
	return out
}

// findSubjects sets the subject of each entry. It is the name, or first word, that has the most contexts
// and is no title.
func (t *topics) findSubjects(contexts contexts) {
	t.subjects, t.before = make([]int32, len(t.all)), make([][]int32, len(t.all))
	for i, s := range t.all {
		owner := s.self && s.Subject == ""
		if owner {
			t.subjects[i] = theOwner
		}
		most := 0
		first := slices.IndexFunc(s.tokens, func(w token) bool { return !w.small })
		for j, w := range s.tokens {
			if owner && (j == 0 || !t.titles[s.tokens[j-1].key(t.names)]) { // but my brother Finn
				continue
			}
			ways := len(contexts[w.stem])
			if k := w.key(t.names); (w.name || j == first && !s.named(j+1)) && !s.number(j) && ways > most && !t.titles[k] {
				t.subjects[i], t.before[i], most = k, nil, ways
				for _, o := range s.tokens[max(0, j-2):j] {
					t.before[i] = append(t.before[i], o.key(t.names))
				}
			}
		}
	}
}

func (s *signature) named(j int) bool { return j < len(s.tokens) && s.tokens[j].name }

// number reports whether the word at place j is a number, or right after one.
func (s *signature) number(j int) bool {
	return hasDigit(s.tokens[j].text) || j > 0 && hasDigit(s.tokens[j-1].text)
}

// pairs lists the corrections that changed since the last dream, and further paraphrases.
func (t *topics) pairs() (found []correction, same []*pair) {
	for i, b := range t.all {
		if t.gone[b.ID] {
			continue
		}
		c, also := t.related(i)
		if same = append(same, also...); slices.ContainsFunc(c, t.changedSinceLast) {
			found = append(found, c)
		}
	}
	return found, same
}

// related pairs the text i with the most similar older ones that it may correct. same are further
// paraphrases.
func (t *topics) related(i int) (c correction, same []*pair) {
	b := t.all[i]
	var near []candidate
	for _, j := range t.sharing(i) {
		a, found := t.all[j], t.common[j]
		if byAge(a, b) >= 0 || t.gone[a.ID] || sameGroup(a, b) {
			continue
		}
		p := pair{a: a, b: b, same: t.dedup && paraphrase(a, b)}
		switch {
		case t.contradiction && (!a.compound || a.turned) && together(a, b) && !p.foreign():
			near = append(near, candidate{place: j, common: found, same: p.same, related: t.sameSubject(i, int(j))})
		case p.same && t.changedSinceLast(&p) && !t.refused[pairOf(a.ID, b.ID)]:
			p.weight, p.shared = int(found.weight), int(found.shared)
			same = append(same, &p)
		}
	}
	slices.SortFunc(same, func(p, q *pair) int { return cmp.Compare(p.a.ID, q.a.ID) })
	slices.SortFunc(near, func(p, q candidate) int {
		return cmp.Or(flag(q.related)-flag(p.related), int(q.weight-p.weight), byAge(t.all[q.place], t.all[p.place]))
	})
	most := perOther
	if b.tellsChange() {
		most = perCorrection
	}
	for k, m := range near {
		if k >= most && !m.same {
			continue
		}
		a := t.all[m.place]
		p := &pair{a: a, b: b, same: m.same, weight: int(m.weight), shared: int(m.shared), conflict: true,
			denies: t.denies(b, int(m.place))}
		if !m.related {
			p.shared = -1
		} else if slices.ContainsFunc(a.tokens, func(t token) bool { return t.change && b.index(t) >= 0 }) {
			p.shared = 0 // such as two meetings that were cancelled
		}
		c = append(c, p)
	}
	return c, same
}

// candidate is an older text that a newer one may correct.
type candidate struct {
	common
	place         int32 // in all
	same, related bool  // may be a paraphrase; has the same subject
}

// sharing lists the texts that share words with the text i. It sets common for them.
func (t *topics) sharing(i int) (places []int32) {
	clear(t.common)
	for _, k := range t.keys[i] {
		list := t.lists[k]
		if len(list) > longTopic {
			continue
		}
		weight := int32(1 + bits.Len(uint(len(t.all)/len(list))))
		shared := int32(flag(k != t.subjects[i] && k != theOwner && !slices.Contains(t.before[i], k) && !t.titles[k] && !t.weak[k]))
		for _, j := range list {
			if t.common[j].weight == 0 {
				places = append(places, j)
			}
			t.common[j].weight += weight
			t.common[j].shared += shared
		}
	}
	return places
}

// sameSubject reports whether the texts i and j have one subject. Hr. Lorenz is not Fr. Lorenz.
func (t *topics) sameSubject(i, j int) bool {
	x, y := t.title(i), t.title(j)
	return t.subjects[i] == t.subjects[j] && t.subjects[i] != noSubject && (x == y || x == 0 || y == 0)
}

// title returns the title right before the subject of the text i, or 0.
func (t *topics) title(i int) int32 {
	if b := t.before[i]; len(b) > 0 && t.titles[b[len(b)-1]] {
		return b[len(b)-1]
	}
	return 0
}

// denies reports whether one of b and the text i negates the other. They share the rarest topic word
// of i.
func (t *topics) denies(b *signature, i int) bool {
	if t.all[i].negative == b.negative {
		return false
	}
	shared, rarest := false, longTopic
	for _, w := range t.all[i].tokens {
		k := w.key(t.names)
		if w.small || asides[w.text] || k == t.subjects[i] || slices.Contains(t.before[i], k) || t.titles[k] {
			continue
		}
		if n := len(t.lists[k]); n < rarest || n == rarest && b.index(w) >= 0 {
			shared, rarest = b.index(w) >= 0, n
		}
	}
	return shared
}

// agreed returns the pairs whose newer text replaces the older one. Both the model and the
// structure must say so. The texts share the subject and a topic word, the newer one tells of a
// change, and no other older text is more similar. One text replaces one fact.
func (j judged) agreed(m *memories) map[*pair]bool {
	found := j.corrections
	first := map[string]*pair{} // by older entry: the oldest claimed correction
	for _, c := range found {
		for _, p := range c {
			if f := first[p.a.ID]; p.claimed() && p.doubt() == "" && (f == nil || p.b.Since().Before(f.b.Since())) {
				first[p.a.ID] = p
			}
		}
	}
	agreed, corrects := map[*pair]bool{}, map[string]bool{}
	for _, p := range first {
		corrects[p.b.ID] = true
	}
	for _, c := range found {
		var claimed []*pair
		done := m.replaced[c[0].b.ID] // the newer text, or a duplicate of it, has replaced something
		other := 0                    // the highest weight of an older text that is not replaced
		for _, p := range c {
			switch f := first[p.a.ID]; {
			case p.shared < 0 && p.claimed():
				done = true // a claim across subjects discredits the model about this text
			case p.verdict == duplicate:
				done = done || m.replaced[p.a.ID] || corrects[p.a.ID]
			case f == p:
				claimed = append(claimed, p)
			case f == nil && p.shared >= 0:
				other = max(other, p.weight)
			}
		}
		doubtful := func(p *pair) bool {
			return p.shared < 1 || p.a.owns(p.b) || p.b.owns(p.a) || p.otherTopic() || !p.changes() || !j.sameFact(p, claimed[0])
		}
		if len(claimed) == 0 || done || claimed[0].weight <= other || slices.ContainsFunc(claimed, doubtful) {
			continue
		}
		for _, p := range claimed {
			agreed[p] = true
		}
	}
	return agreed
}

// callsMostDuplicates reports whether the model calls too many pairs duplicates. The limit is a
// third of the pairs with different subjects. Above it, none of the model's duplicates are grouped.
func callsMostDuplicates(found []correction) bool {
	strangers, same := 0, 0
	for _, c := range found {
		for _, p := range c {
			if p.shared < 0 && !p.same && p.verdict != "" && p.verdict != unclear {
				strangers, same = strangers+1, same+flag(p.verdict == duplicate)
			}
		}
	}
	return 3*same > strangers
}

// markDuplicates allows pairs with a common subject and topic word to be grouped. It does not if
// the model calls all pairs of c duplicates.
func (c correction) markDuplicates() {
	if !slices.ContainsFunc(c, func(p *pair) bool { return p.verdict != duplicate && p.verdict != unclear && p.verdict != "" }) {
		return
	}
	for _, p := range c {
		p.same = p.same || p.shared > 0 && !p.b.compound && p.a.negative == p.b.negative
	}
}

// claimed reports whether the model says that the newer text replaces the older one.
func (p *pair) claimed() bool { return p.verdict == keepSecond || p.verdict == update }

// tellsChange reports whether s tells of one change, without an addition or a hedge.
func (s *signature) tellsChange() bool {
	return s.changed && !s.adds && !s.hedged && (!s.compound || s.turned)
}

// changes reports whether the newer text tells of a change. A negation must negate the older text, and
// two negations do not contradict each other.
func (p *pair) changes() bool {
	a, b := p.a, p.b
	switch {
	case b.turned || !a.negative && !b.negative:
		return b.tellsChange()
	case a.negative != b.negative:
		return p.denies && (b.negative || b.changed) && !b.adds && !b.hedged && !b.compound
	}
	return false
}

// otherTopic reports whether the two texts may answer different questions. Beside the common words an
// older text has its answer in one place, and the newer one another answer, unless it negates or ends it.
func (p *pair) otherTopic() bool {
	own := p.a.placesBeside(p.b)
	return own > 1 || own > p.b.placesBeside(p.a) && p.a.negative == p.b.negative
}

// placesBeside counts the runs of words in s that o lacks. Small words and words of change belong to no
// run, and a punctuation mark ends one.
func (s *signature) placesBeside(o *signature) (n int) {
	inside := false
	for _, t := range s.tokens {
		inside = inside && !t.after
		switch {
		case t.small || t.change || asides[t.text]:
		case o.index(t) >= 0:
			inside = false
		case !inside:
			n, inside = n+1, true
		}
	}
	return n
}

// owns reports whether s has a possessive of a name in o, of something that o lacks: "Anna's sister
// lives in Rome now" and "Anna lives in Oslo".
func (s *signature) owns(o *signature) bool {
	for i, t := range s.tokens {
		if !t.whose || o.index(t) < 0 {
			continue
		}
		for j, what := range s.tokens[i+1:] {
			if !what.small && !what.change && !s.number(i+1+j) {
				if o.index(what) < 0 {
					return true
				}
				break
			}
		}
	}
	return false
}

// sameFact reports whether the older texts of p and q state one fact: their names and numbers beyond the
// newer text are equal.
func (j judged) sameFact(p, q *pair) bool {
	x, y := p.droppedValues(hasDigit), q.droppedValues(hasDigit)
	if len(x)+len(y) == 0 {
		x, y = p.droppedValues(nil), q.droppedValues(nil)
	}
	return p.a == q.a || j.sameAs(p.a, q.a) || p.a.negative == q.a.negative && slices.Equal(x, y)
}

// droppedValues lists the names and numbers that only the older text has. It lists those that of
// accepts; nil accepts all.
func (p *pair) droppedValues(of func(string) bool) (out []string) {
	for _, t := range p.a.tokens {
		if (t.name || hasDigit(t.text)) && (of == nil || of(t.text)) && p.b.index(t) < 0 {
			out = append(out, t.text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
