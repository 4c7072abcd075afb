// Package testset makes conversations of two people, and questions about them
// with the messages that answer each: what the search is measured with. The same
// seed makes the same set.
package testset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Line is a message, in the fields that `bot memory import` reads.
type Line struct {
	Text         string    `json:"text"`
	Scope        string    `json:"scope"`
	Subject      string    `json:"subject"`
	ObservedAt   time.Time `json:"observed_at"`
	Ref          string    `json:"ref"`
	Conversation string    `json:"conversation"`
	Seq          int       `json:"seq"`
}

// Question asks for what some messages say.
type Question struct {
	ID       string   `json:"id"`
	Query    string   `json:"query"`
	Scope    string   `json:"scope"`
	Language string   `json:"language"`
	Kind     string   `json:"kind"`
	Evidence []string `json:"evidence"` // refs of the messages that answer it; none = nothing does
}

// Set is what Make makes.
type Set struct {
	Lines     []Line
	Questions []Question
	SmallTalk []Question // what is said to a bot and has no answer in any chat
}

const (
	chats    = 4 // of each language
	sessions = 9 // of each chat
	fillers  = 20
	repeats  = 30 // of what is told again and again: only the date tells which is meant
	decoys   = 6  // that sound like the facts and are about others
)

// Make makes the set of seed.
func Make(seed uint64) Set {
	var s Set
	for i, l := range languages {
		for c := range chats {
			m := &maker{set: &s, l: l, random: rand.New(rand.NewPCG(seed, uint64(i*chats+c))), id: fmt.Sprintf("%s%d", l.code, c)}
			m.chat(c)
		}
		for j, text := range smallTalk[l.code] {
			s.SmallTalk = append(s.SmallTalk, Question{ID: fmt.Sprintf("s%d", len(s.SmallTalk)), Query: text,
				Scope: fmt.Sprintf("room:!%s%d:test", l.code, j%chats), Language: l.code, Kind: "small talk"})
		}
	}
	return s
}

// maker makes one chat.
type maker struct {
	set    *Set
	l      *language
	random *rand.Rand
	id     string
	people [2]string
	seq    int
	at     time.Time
	decks  map[string][]string // slot → values not used yet
}

// scene is a fact with its question, before it has its place in the chat.
type scene struct {
	kind    *kind
	who     int
	slots   map[string]string
	session int
	asked   bool
}

// dated is the kind of fact that happens again and again.
const dated = "dated"

func (m *maker) chat(c int) {
	n := 2 * c
	m.people = [2]string{m.l.people[n%len(m.l.people)], m.l.people[(n+1)%len(m.l.people)]}
	m.decks = map[string][]string{}
	var scenes []scene
	for i := range m.l.kinds {
		k := &m.l.kinds[i]
		for who := range 2 {
			for range 2 {
				scenes = append(scenes, scene{k, who, m.slots(k), m.random.IntN(sessions), true})
			}
		}
		for i := range repeats {
			if k.name == dated {
				scenes = append(scenes, scene{k, i % 2, m.slots(k), m.random.IntN(sessions), false})
			}
		}
	}
	m.at = time.Date(2025, time.Month(1+m.random.IntN(4)), 1+m.random.IntN(20), 18, 0, 0, 0, time.UTC)
	for session := range sessions {
		var now []*scene
		for i := range scenes {
			if scenes[i].session == session {
				now = append(now, &scenes[i])
			}
		}
		for range fillers {
			now = append(now, nil)
		}
		for range decoys {
			now = append(now, &scene{kind: &kind{turns: m.l.decoys[m.random.IntN(len(m.l.decoys))]}, who: m.random.IntN(2)})
		}
		m.random.Shuffle(len(now), func(a, b int) { now[a], now[b] = now[b], now[a] })
		for _, s := range now {
			switch {
			case s == nil:
				m.filler()
			case s.kind.ask == "":
				for i, t := range s.kind.turns {
					m.say((s.who+i)%2, m.anything(t))
				}
			default:
				m.play(s)
			}
		}
		m.at = m.at.AddDate(0, 0, 5+m.random.IntN(20)).Truncate(24 * time.Hour).Add(time.Duration(9+m.random.IntN(11)) * time.Hour)
	}
}

// slots draws the values of a scene. Values of one slot do not repeat within a
// chat until all were used, so that a question has one answer.
func (m *maker) slots(k *kind) map[string]string {
	out := map[string]string{}
	all := strings.Join(k.turns, " ") + k.ask
	for _, name := range slices.Sorted(maps.Keys(m.l.values)) {
		if strings.Contains(all, "{"+name+"}") {
			out[name] = m.draw(name, m.l.values[name])
		}
	}
	out["n"] = fmt.Sprint(100 + m.random.IntN(9000))
	if k.pairs != "" { // what is done, and how one asks for it
		did, asked, _ := strings.Cut(m.draw(k.name, strings.Split(k.pairs, "|")), "=")
		out["did"], out["do"] = did, asked
	}
	return out
}

func (m *maker) draw(name string, values []string) string {
	deck := m.decks[name]
	if len(deck) == 0 {
		deck = append(deck, values...)
		m.random.Shuffle(len(deck), func(a, b int) { deck[a], deck[b] = deck[b], deck[a] })
	}
	m.decks[name] = deck[1:]
	return deck[0]
}

func (m *maker) say(who int, text string) string {
	m.seq++
	ref := fmt.Sprintf("%s-%d", m.id, m.seq)
	m.set.Lines = append(m.set.Lines, Line{Text: text, Scope: m.scope(), Subject: m.people[who], ObservedAt: m.at, Ref: ref, Conversation: m.id, Seq: m.seq})
	m.at = m.at.Add(time.Minute)
	return ref
}

func (m *maker) scope() string { return "room:!" + m.id + ":test" }

func (m *maker) filler() {
	m.say(m.random.IntN(2), m.anything(m.l.fillers[m.random.IntN(len(m.l.fillers))]))
}

// anything fills in text with whatever comes.
func (m *maker) anything(text string) string {
	for _, name := range slices.Sorted(maps.Keys(m.l.values)) {
		if values := m.l.values[name]; strings.Contains(text, "{"+name+"}") {
			text = strings.ReplaceAll(text, "{"+name+"}", values[m.random.IntN(len(values))])
		}
	}
	return strings.ReplaceAll(text, "{n}", fmt.Sprint(100+m.random.IntN(9000)))
}

func (m *maker) play(s *scene) {
	fillIn := func(text string) string {
		for name, value := range s.slots {
			text = strings.ReplaceAll(text, "{"+name+"}", value)
		}
		text = strings.ReplaceAll(text, "{A}", m.people[s.who])
		text = strings.ReplaceAll(text, "{B}", m.people[1-s.who])
		return strings.ReplaceAll(text, "{date}", m.l.date(m.at))
	}
	var evidence []string
	ask := fillIn(s.kind.ask)
	for _, t := range s.kind.turns {
		who, text, _ := strings.Cut(t, ":")
		speaker := s.who
		if strings.HasPrefix(who, "B") {
			speaker = 1 - s.who
		}
		ref := m.say(speaker, fillIn(text))
		if strings.HasSuffix(who, "*") {
			evidence = append(evidence, ref)
		}
	}
	if !s.asked {
		return
	}
	m.set.Questions = append(m.set.Questions, Question{ID: fmt.Sprintf("q%d", len(m.set.Questions)), Query: ask, Scope: m.scope(),
		Language: m.l.code, Kind: s.kind.name, Evidence: evidence})
}
