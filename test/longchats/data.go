package main

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

//go:embed testdata/*.txt
var files embed.FS

// halves are the two parts of all topics and wordings: search may be tuned with the first; the second
// is only measured.
var halves = []string{"tuned", "held"}

// language is what chats of one language are made of: a file of testdata, see testdata/README.
type language struct {
	code   string
	lists  map[string][][]string // "name half" or "name" → lines of fields
	topics map[string][]*topic   // by half
}

// topic is what a person is busy with for months.
type topic struct {
	name, label                 string
	sets                        map[string][]string // slots with one value for each chat
	attrs, months, events, cost [][]string
	things, steps               []string
}

// Fields of the lines of a topic. A line "attr" has them in this order.
const (
	attrType = iota // "300-900" or "a; b; c"
	attrSay
	attrSay2
	attrNew // says a later value
	attrAsk
	attrAsk2
	attrHm   // a question with its words, before the value is known
	attrNear // the same of somebody else
	attrMem
	attrFields
)

const (
	monthType = iota
	monthSay
	monthAsk
	monthSum // asks for all months together
	monthMem
	monthFields
)

const (
	eventSay = iota
	eventNoun
	eventMem
	eventFields
)

const (
	costType = iota
	costSay
	costNoun
	costMem
	costFields
)

// list returns the lines of a list in one half, with those for both.
func (l *language) list(name, half string) [][]string {
	return slices.Concat(l.lists[name], l.lists[name+" "+half])
}

func readLanguage(code string) (*language, error) {
	data, err := files.ReadFile("testdata/" + code + ".txt")
	if err != nil {
		return nil, err
	}
	l := &language{code: code, lists: map[string][][]string{}, topics: map[string][]*topic{}}
	var name string
	var now *topic
	for i, line := range strings.Split(string(data), "\n") {
		fail := func(why string) error { return fmt.Errorf("%s.txt:%d: %s: %s", code, i+1, why, line) }
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			name, now = strings.Trim(line, "[]"), nil
			if f := strings.Fields(name); f[0] == "topic" {
				now = &topic{name: f[1], sets: map[string][]string{}}
				l.topics[f[2]] = append(l.topics[f[2]], now)
			}
		case now != nil:
			key, rest, ok := strings.Cut(line, ":")
			if !ok || !now.add(key, fields(rest, "|")) {
				return nil, fail("not a line of a topic")
			}
		default:
			l.lists[name] = append(l.lists[name], fields(line, "|"))
		}
	}
	return l, l.check()
}

func fields(s, by string) []string {
	var out []string
	for f := range strings.SplitSeq(s, by) {
		out = append(out, strings.TrimSpace(f))
	}
	return out
}

// add adds a line of a topic. It reports whether key and number of fields are right.
func (t *topic) add(key string, f []string) bool {
	switch key = strings.TrimSpace(key); {
	case key == "label":
		t.label = f[0]
	case key == "thing":
		t.things = append(t.things, fields(f[0], ";")...)
	case key == "step":
		t.steps = append(t.steps, fields(f[0], ";")...)
	case key == "attr" && len(f) == attrFields:
		t.attrs = append(t.attrs, f)
	case key == "month" && len(f) == monthFields:
		t.months = append(t.months, f)
	case key == "event" && len(f) == eventFields:
		t.events = append(t.events, f)
	case key == "cost" && len(f) == costFields:
		t.cost = append(t.cost, f)
	case strings.HasPrefix(key, "set "):
		t.sets[strings.TrimPrefix(key, "set ")] = fields(f[0], ";")
	default:
		return false
	}
	return true
}

// widths is how many fields the lines of each list have.
var widths = map[string]int{
	"names": 1, "months": 1, "pad": 1, "help": 1, "open": 1, "quote": 1, "bullet": 1, "reason": 1, "advice": 1, "options": 1, "close": 1,
	"small": 2, "hello": 1, "date": 1, "who": 1, "place": 1,
	"dislike": 1, "dislike-near": 1, "dislike-mem": 1, "preference": 5, "wish": 1, "wish-mem": 1, "instruction": 4, "fix": 2, "contradiction": 5,
	"void": 1, "q.order": 1, "q.order-topic": 1, "q.first": 1, "q.summary": 1, "q.sum": 1, "q.compare": 1, "q.between": 1, "q.before": 1, "q.date": 1, "q.said": 1,
}

func (l *language) check() error {
	for _, name := range slices.Sorted(maps.Keys(l.lists)) {
		plain, _, _ := strings.Cut(name, " ")
		for _, f := range l.lists[name] {
			if widths[plain] != len(f) {
				return fmt.Errorf("%s.txt: [%s] has %d fields, not %d: %s", l.code, name, widths[plain], len(f), strings.Join(f, " | "))
			}
		}
	}
	for _, half := range halves {
		if len(l.topics[half]) == 0 {
			return fmt.Errorf("%s.txt: no topics that are %s", l.code, half)
		}
		for _, name := range slices.Sorted(maps.Keys(widths)) {
			if len(l.list(name, half)) == 0 {
				return fmt.Errorf("%s.txt: nothing in [%s] that is %s", l.code, name, half)
			}
		}
	}
	return nil
}
