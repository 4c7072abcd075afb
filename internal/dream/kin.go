package dream

import (
	"cmp"
	"math/bits"
	"regexp"
	"slices"
	"strings"
)

const (
	longSubject = 1000 // a subject with more entries is no help to find two that belong together
	kinShared   = 2    // stems that two entries of different subjects share at least
)

// slight are kana, which are endings in Japanese, and a Han character alone is there in its pairs as well.
// Counted all, they would make two codes of two people more alike than two jobs of one.
var slight = regexp.MustCompile(`^(?:\p{Hiragana}+|\p{Han})$`)

// kin finds for an entry those that are about the same person, thing or question. What
// few entries have in common weighs more than what many have: "the cleaner" is no name,
// but of two dozen entries.
type kin struct {
	all    []*signature
	lists  map[int32][]int32 // entries by stem, name, question and subject
	seen   []int32           // i+1 of the entry that weight and shared of another are of
	weight []int
	shared []int32
}

func (n *night) kin(all []*signature) *kin {
	k := &kin{all: all, lists: map[int32][]int32{}, seen: make([]int32, len(all)), weight: make([]int, len(all)), shared: make([]int32, len(all))}
	often := map[int32]int{}
	for _, s := range all {
		for _, t := range s.tokens {
			for _, stem := range t.stems {
				often[stem]++
			}
		}
	}
	subjects := headWords(all)
	for i, s := range all {
		s.keys, s.whose = nil, nil
		for j, t := range s.tokens {
			switch {
			case (t.name || j == 0 && !t.small || subjects[t.text]) && !hasDigit(t.text): // whatever language its stem is of
				s.whose = append(s.whose, n.names.name(t.text))
			case !t.small && !asides[t.text] && !slight.MatchString(t.text):
				s.keys = append(s.keys, t.key(often))
			}
		}
		if s.whose = unique(s.whose); s.self {
			s.whose = append(s.whose, -1)
		}
		for _, f := range s.classes {
			s.keys = append(s.keys, n.names.number("question "+f.class.name))
		}
		if s.keys = unique(s.keys); n.gone[s.ID] {
			continue
		}
		for _, key := range s.keys {
			k.lists[key] = append(k.lists[key], int32(i))
		}
		for _, who := range s.whose {
			k.lists[-2-who] = append(k.lists[-2-who], int32(i))
		}
	}
	return k
}

// key is the stem of t that most words share: which one is the likeliest depends on the
// language that the rest of the text is taken for.
func (t token) key(often map[int32]int) int32 {
	return slices.MinFunc(t.stems, func(a, b int32) int { return cmp.Or(often[b]-often[a], cmp.Compare(a, b)) })
}

// headWords are the words that stand at the beginning of most of what they are said in:
// whom people write of who write no capital letters ("oops samir's birthday is in june").
func headWords(all []*signature) map[string]bool {
	first, times, out := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, s := range all {
		for j, t := range s.tokens {
			if times[t.text]++; j == 0 && !t.small {
				first[t.text]++
			}
		}
	}
	for w, n := range first {
		out[w] = n > 2 && 4*n >= 3*times[w]
	}
	return out
}

// of lists what may belong to all[i], each with what both have in common.
func (k *kin) of(i int) (near []int32) {
	visit := func(key int32, longest int, shared int32) {
		list := k.lists[key]
		if len(list) > longest {
			return
		}
		weight := 1 + bits.Len(uint(len(k.all)/max(1, len(list))))
		for _, j := range list {
			if k.seen[j] != int32(i)+1 {
				k.seen[j], k.weight[j], k.shared[j] = int32(i)+1, 0, 0
				near = append(near, j)
			}
			k.weight[j] += weight
			k.shared[j] += shared
		}
	}
	for _, key := range k.all[i].keys {
		visit(key, longList, 1)
	}
	for _, who := range k.all[i].whose {
		visit(-2-who, longSubject, kinShared)
	}
	return slices.DeleteFunc(near, func(j int32) bool { return j == int32(i) || k.shared[j] < kinShared })
}

// pairs are the likeliest of those in which all[i] is the newer one and which may be made.
func (k *kin) pairs(i int, may func(a, b *signature) bool) []scored {
	b := k.all[i]
	news := b.news()
	likelihood := map[int][]int32{}
	best := 0
	for _, j := range k.of(i) {
		if score := likely(k.all[j], b, k.weight[j]+news); score > 0 {
			likelihood[score] = append(likelihood[score], j)
			best = max(best, score)
		}
	}
	var out []scored
	for score := best; score > 0; score-- {
		for _, j := range likelihood[score] {
			if len(out) == perEntry {
				return out
			}
			if a := k.all[j]; may(a, b) {
				out = append(out, scored{&pair{a: a, b: b, conflict: true, loose: true, class: "another answer"}, score})
			}
		}
	}
	return out
}

// news is how much s sounds as if something were not as it was.
func (s *signature) news() (n int) {
	if s.changed {
		n += 3
	}
	if event.MatchString(s.plain) {
		n++
	}
	return n
}

// scored is a pair, and how likely it is that it says something.
type scored struct {
	*pair
	score int
}

func likeliest(p, q scored) int {
	return cmp.Or(q.score-p.score, strings.Compare(p.a.ID, q.a.ID), strings.Compare(p.b.ID, q.b.ID))
}
