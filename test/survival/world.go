package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// fact is a statement that is true, or was until another replaced it.
type fact struct {
	key  string // the question it answers
	text string
	at   time.Time
	old  bool // another fact replaced it
	wide bool // it is only said together with another fact
}

// entry is a text of the memory and its facts.
type entry struct {
	text, source, subject string
	at                    time.Time
	facts                 []*fact
}

// world is the facts about thirty people, and their wordings.
type world struct {
	set     set
	facts   []*fact
	entries []entry
	rng     *rand.Rand
	used    map[string]bool
	numbers int
}

var day0 = time.Date(2025, 3, 1, 9, 0, 0, 0, time.UTC)

// build returns the world of a set and a seed; it is deterministic.
func build(s set, seed uint64) *world {
	w := &world{set: s, rng: rand.New(rand.NewPCG(seed, 7)), used: map[string]bool{}}
	for i, who := range s.people {
		var said []*fact
		for j, a := range s.attrs {
			if (i+j)%max(1, a.of) == 0 {
				said = append(said, w.answer(who, a)...)
			}
		}
		w.compounds(who, said)
	}
	for _, a := range s.self {
		w.answer("", a)
	}
	w.rng.Shuffle(len(w.entries), func(i, j int) { w.entries[i], w.entries[j] = w.entries[j], w.entries[i] })
	return w
}

// fill replaces the placeholders of a wording.
func fill(wording, who, value, before string) string {
	return strings.NewReplacer("{p}", who, "{v}", value, "{o}", before).Replace(wording)
}

// value returns a new value of a that is in none of others.
func (w *world) value(a attribute, others []string) string {
	for {
		v := a.values[w.rng.IntN(len(a.values))]
		if strings.Contains(v, "%") {
			w.numbers++
			v = fmt.Sprintf(v, w.numbers%100)
		}
		if !slices.Contains(others, v) {
			return v
		}
	}
}

// answer adds the current and the earlier facts of who.
func (w *world) answer(who string, a attribute) []*fact {
	source := []string{"harvest", "harvest", "user_explicit"}[w.rng.IntN(3)]
	at := day0.AddDate(0, 0, w.rng.IntN(200)).Add(time.Duration(w.rng.IntN(600)) * time.Minute)
	var out []*fact
	var values []string
	for range max(1, a.each) {
		v := w.value(a, values)
		values = append(values, v)
		key := who + " " + a.name
		if a.each > 0 || len(a.not) > 0 {
			key += " " + v
		}
		f := w.say(who, key, v, "", source, a.say, at)
		out = append(out, f)
		switch {
		case len(a.update) > 0 && w.rng.IntN(9) == 0:
			f.old = true
			later := at.AddDate(0, 0, 20+w.rng.IntN(90))
			next := w.value(a, values)
			g := w.say(who, key, next, v, source, a.update, later)
			out = append(out, g)
			if a.again && w.rng.IntN(2) == 0 {
				g.old = true
				out = append(out, w.say(who, key, w.value(a, append(values, next)), next, source, a.update, later.AddDate(0, 0, 20+w.rng.IntN(40))))
			}
		case len(a.not) > 0 && w.rng.IntN(6) == 0:
			f.old = true
			out = append(out, w.say(who, key, v, "", source, a.not, at.AddDate(0, 0, 20+w.rng.IntN(90))))
		}
	}
	return out
}

// say adds a fact in one or more of its wordings.
func (w *world) say(who, key, value, before, source string, wordings []string, at time.Time) *fact {
	text := fill(wordings[w.rng.IntN(len(wordings))], who, value, before)
	_, first := utf8.DecodeRuneInString(text)
	f := &fact{key: key, text: text, at: at}
	w.facts = append(w.facts, f)
	subject := ""
	if w.rng.IntN(4) == 0 {
		subject = who
	}
	add := func(text string, after time.Duration, source string) {
		w.entries = append(w.entries, entry{text, source, subject, at.Add(after), []*fact{f}})
	}
	add(text+".", 0, source)
	hours := func() time.Duration { return time.Duration(1+w.rng.IntN(300)) * time.Hour }
	switch w.rng.IntN(20) {
	case 0, 1:
		add(text+".", hours(), "harvest")
	case 2:
		add(text+"!", hours(), "harvest")
	case 3:
		add("  "+text, hours(), source)
	case 4:
		add(strings.ToUpper(text[:first])+text[first:]+" .", hours(), "harvest")
	case 5, 6, 7, 8, 9, 10:
		other := fill(wordings[w.rng.IntN(len(wordings))], who, value, before)
		if other == text {
			other = strings.ToLower(text[:first]) + text[first:] + " !"
		}
		add(other+".", hours(), "harvest")
	}
	return f
}

// compounds adds entries with two facts about who. One person in three has a fact that is said in no
// other way.
func (w *world) compounds(who string, said []*fact) {
	holds := slices.DeleteFunc(slices.Clone(said), func(f *fact) bool {
		return slices.ContainsFunc(said, func(g *fact) bool { return g.old && g.key == f.key })
	})
	if w.rng.IntN(3) > 0 || len(holds) < 2 {
		return
	}
	a, b := holds[w.rng.IntN(len(holds))], holds[w.rng.IntN(len(holds))]
	if a == b {
		return
	}
	text := fmt.Sprintf(w.set.join, a.text, b.text) + "."
	if w.rng.IntN(2) == 0 {
		a.wide = true
		w.entries = slices.DeleteFunc(w.entries, func(e entry) bool { return e.facts[0] == a && len(e.facts) == 1 })
	}
	at := a.at
	if b.at.After(at) {
		at = b.at
	}
	w.entries = append(w.entries, entry{text, "harvest", "", at.Add(time.Hour), []*fact{a, b}})
}
