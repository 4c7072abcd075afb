package main

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
)

// judge simulates a model: it answers a prompt about pairs of texts whose true relation it knows.
type judge func(k *knowledge, prompt string) string

// judges are the simulated models by name.
var judges = []struct {
	name string
	say  judge
}{
	{"perfect", perfect},
	{"lossy", lossy},
	{"truncating", func(k *knowledge, p string) string { s := perfect(k, p); return s[:len(s)*3/5] }},
	{"inventing", inventing},
	{"garbage", func(*knowledge, string) string {
		return "They all look fine to me [1], I have tidied up: {\"memories\": []}"
	}},
	{"hostile", always("update")},
	{"hostile2", always("duplicate")},
	{"careless", careless},
	{"cunning", cunning},
}

// knowledge is what a judge knows, and counts of its questions.
type knowledge struct {
	of       map[string][]*fact // by text
	calls    int
	asked    map[string]int // number of questions by pair
	strange  int            // texts that are in no entry
	repeated int
}

func (w *world) knowledge() *knowledge {
	k := &knowledge{of: map[string][]*fact{}, asked: map[string]int{}}
	for _, e := range w.entries {
		k.of[strings.TrimSpace(e.text)] = e.facts
	}
	return k
}

var quoted = regexp.MustCompile(`<memory [a-z0-9]+>(.*?)</memory [a-z0-9]+>`)

// pairs returns the pairs of texts that a prompt asks about.
func pairs(prompt string) [][2]string {
	var out [][2]string
	all := quoted.FindAllStringSubmatch(prompt, -1)
	if len(all)%2 == 1 { // the line that explains the marks
		all = all[1:]
	}
	for i := 0; i+1 < len(all); i += 2 {
		out = append(out, [2]string{all[i][1], all[i+1][1]})
	}
	return out
}

// ask counts the pairs of a prompt and lets say answer.
func (k *knowledge) ask(say judge, prompt string) string {
	k.calls++
	for _, p := range pairs(prompt) {
		key := min(p[0], p[1]) + "\x00" + max(p[0], p[1])
		if k.asked[key]++; k.asked[key] > 1 {
			k.repeated++
		}
		for _, text := range p {
			if k.of[strings.TrimSpace(text)] == nil {
				k.strange++
			}
		}
	}
	return say(k, prompt)
}

func answer(prompt string, say func(a, b string) string) string {
	var items []string
	for i, p := range pairs(prompt) {
		items = append(items, fmt.Sprintf(`{"pair": %d, "verdict": %q}`, i+1, say(p[0], p[1])))
	}
	return "[" + strings.Join(items, ",\n") + "]"
}

func (k *knowledge) truth(a, b string) string {
	x, y := k.of[strings.TrimSpace(a)], k.of[strings.TrimSpace(b)]
	switch {
	case len(x) != 1 || len(y) != 1:
		return "neither"
	case x[0] == y[0]:
		return "duplicate"
	case x[0].key == y[0].key && x[0].at.Before(y[0].at):
		return "keep_second"
	case x[0].key == y[0].key:
		return "keep_first"
	}
	return "neither"
}

func perfect(k *knowledge, prompt string) string { return answer(prompt, k.truth) }

// lossy omits a fifth of the answers and gets a tenth wrong.
func lossy(k *knowledge, prompt string) string {
	return answer(prompt, func(a, b string) string {
		h := fnv.New32a()
		h.Write([]byte(a + "\x00" + b))
		switch n := h.Sum32() % 100; {
		case n < 20:
			return ""
		case n < 30:
			return []string{"duplicate", "keep_second", "keep_first", "neither"}[n%4]
		}
		return k.truth(a, b)
	})
}

// inventing writes texts of its own, and answers pairs that were not asked.
func inventing(k *knowledge, prompt string) string {
	good := answer(prompt, k.truth)
	return "[{\"pair\": 1, \"verdict\": \"merge\", \"text\": \"Anna lives on the moon\"}, {\"pair\": 99, \"verdict\": \"duplicate\"},\n" + good[1:]
}

// careless is right, except for one in four similar pairs: there it takes the newer text for an update
// of the older.
func careless(k *knowledge, prompt string) string {
	return answer(prompt, func(a, b string) string {
		h := fnv.New32a()
		h.Write([]byte(a + "\x00" + b))
		if right := k.truth(a, b); right != "neither" || h.Sum32()%4 > 0 || !lookAlike(a, b, .5) {
			return right
		}
		return "keep_second"
	})
}

// trustedAfter is the number of correct answers of a cunning model: by then any trial of the model is
// over.
const trustedAfter = 40

// cunning is right until it is trusted. Then it calls similar texts updates, and updates something
// else. It stays right where a lie would be found easily.
func cunning(k *knowledge, prompt string) string {
	if k.calls <= trustedAfter {
		return perfect(k, prompt)
	}
	return answer(prompt, func(a, b string) string {
		switch right := k.truth(a, b); {
		case right == "neither" && lookAlike(a, b, .25):
			return "keep_second"
		case right == "keep_second" || right == "keep_first":
			return "neither"
		default:
			return right
		}
	})
}

// lookAlike reports whether a and b share so large a part of their words.
func lookAlike(a, b string, share float64) bool {
	x, y := strings.Fields(strings.ToLower(a)), strings.Fields(strings.ToLower(b))
	both := 0
	for _, word := range x {
		if slices.Contains(y, word) {
			both++
		}
	}
	return float64(both) >= share*float64(len(x)+len(y)-both)
}

func always(verdict string) judge {
	return func(_ *knowledge, prompt string) string {
		return answer(prompt, func(string, string) string { return verdict })
	}
}
