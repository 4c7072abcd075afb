package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/llm"
	"reverie/internal/memory"
)

// message is a message of a chat, in the fields that `bot memory import` reads and more.
type message struct {
	Text         string    `json:"text"`
	Scope        string    `json:"scope"`
	Subject      string    `json:"subject"`
	Speaker      string    `json:"speaker"` // user or assistant
	ObservedAt   time.Time `json:"observed_at"`
	Ref          string    `json:"ref"`
	Conversation string    `json:"conversation"`
	Seq          int       `json:"seq"`
}

// fact is something that the person says, with the sentence that says it and the memory that a
// perfect harvest makes of it.
type fact struct {
	Ref    string    `json:"ref"`
	Text   string    `json:"text"`
	Memory string    `json:"memory"`
	At     time.Time `json:"at"`
	wish   bool
	topic  *matter
	values []string // of the same type, for the options of the answer
	answer *fact    // the options in the first answer to it
}

// question is asked after the chat.
type question struct {
	ID       string    `json:"id"`
	Query    string    `json:"query"`
	Scope    string    `json:"scope"`
	Evidence []string  `json:"evidence"` // refs of messages; none = the answer must be silence
	Kind     string    `json:"kind"`     // one of the ten abilities, or smalltalk
	Sub      string    `json:"sub"`
	Half     string    `json:"half"`
	Language string    `json:"language"`
	Now      time.Time `json:"now"`
	facts    []*fact
}

// chat is all that is said in some months.
type chat struct {
	id, person, half string
	l                *language
	messages         []message
	facts            []*fact
	questions        []question
}

// matter is a topic with the values that it has in one chat.
type matter struct {
	*topic
	set map[string]string
}

// maker makes one chat.
type maker struct {
	*chat
	r      *rand.Rand
	days   []time.Time
	plan   [][]*fact // by session
	wonder []*fact   // questions of the person that share words with later facts
	topics []*matter
	asks   []func()
	decks  map[string][]int
	said   string // the options in the last answer
	tokens int
}

const sessions = 34

// makeChat makes the chat number no of a language. Its half is that of its number.
func makeChat(l *language, no int, seed uint64, tokens int) *chat {
	half := halves[no%2]
	m := &maker{r: rand.New(rand.NewPCG(seed, uint64(no)<<32|uint64(l.code[0])<<8|uint64(l.code[1]))), plan: make([][]*fact, sessions), decks: map[string][]int{}}
	m.chat = &chat{id: fmt.Sprint(l.code, no), half: half, l: l}
	m.person = m.draw("names")[0]
	day := time.Date(2025, time.Month(1+m.r.IntN(6)), 1+m.r.IntN(20), 8, 0, 0, 0, time.UTC)
	for range sessions {
		m.days = append(m.days, day.Add(time.Duration(m.r.IntN(12*60))*time.Minute))
		day = day.AddDate(0, 0, 2+m.r.IntN(6))
	}
	for _, i := range m.r.Perm(len(l.topics[half])) {
		t := &matter{topic: l.topics[half][i], set: map[string]string{}}
		for name, values := range t.sets { // each is drawn by its own generator, as the order of a map is not fixed
			t.set[name] = values[(int(seed)+no*7+len(name)*3)%len(values)]
		}
		m.topics = append(m.topics, t)
	}
	for _, t := range m.topics {
		m.planTopic(t)
	}
	m.planWishes()
	m.planContradictions()
	for i := range sessions {
		m.session(i, tokens*(i+1)/sessions)
	}
	for _, ask := range m.asks {
		ask()
	}
	m.askVoid()
	return m.chat
}

// draw returns the next line of a list; none comes twice before all came.
func (m *maker) draw(name string) []string {
	all := m.l.list(name, m.half)
	deck := m.decks[name]
	if len(deck) == 0 {
		deck = m.r.Perm(len(all))
	}
	m.decks[name] = deck[1:]
	return all[deck[0]]
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// value draws a value of a type that is not among others.
func (m *maker) value(kind string, others ...string) string {
	for {
		v := ""
		if low, high, ok := strings.Cut(kind, "-"); ok && !strings.Contains(kind, ";") {
			a, _ := strconv.Atoi(low)
			b, _ := strconv.Atoi(high)
			n, step := a+m.r.IntN(b-a+1), 1
			if b > 2000 {
				step = 10
			}
			v = strconv.Itoa(n / step * step)
		} else {
			v = pick(m.r, fields(kind, ";"))
		}
		if !slices.Contains(others, v) {
			return v
		}
	}
}

// fill fills in the slots of a sentence.
func (m *maker) fill(text string, t *matter, more ...string) string {
	return upperFirst(m.fillIn(text, t, more...))
}

// fillIn fills in the slots of text; more are pairs of name and value.
func (m *maker) fillIn(text string, t *matter, more ...string) string {
	pairs := []string{"{P}", m.person}
	for i := 0; i < len(more); i += 2 {
		pairs = append(pairs, "{"+more[i]+"}", more[i+1])
	}
	if t != nil {
		for name, v := range t.set {
			pairs = append(pairs, "{"+name+"}", v)
		}
		label := strings.NewReplacer(pairs...).Replace(t.label)
		pairs = append(pairs, "{label}", label)
	}
	for range 2 { // a value may have slots itself
		text = strings.NewReplacer(pairs...).Replace(text)
	}
	for strings.Contains(text, "{place}") {
		text = strings.Replace(text, "{place}", m.draw("place")[0], 1)
	}
	for strings.Contains(text, "{who}") {
		text = strings.Replace(text, "{who}", m.draw("who")[0], 1)
	}
	for _, f := range m.l.lists["fix"] {
		text = strings.ReplaceAll(" "+text, " "+f[0]+" ", " "+f[1]+" ")[1:]
	}
	return text
}

func upperFirst(s string) string {
	for i, r := range s {
		return strings.ToUpper(string(r)) + s[i+len(string(r)):]
	}
	return s
}

// between returns a session from the share low to the share high of all.
func (m *maker) between(low, high float64) int {
	a, b := int(low*sessions), int(high*sessions)
	return a + m.r.IntN(max(1, b-a))
}

func (m *maker) tell(session int, f *fact) *fact {
	m.plan[session] = append(m.plan[session], f)
	m.facts = append(m.facts, f)
	return f
}

// ask notes a question to be asked when all has been said.
func (m *maker) ask(kind, sub string, query func() string, evidence ...*fact) {
	m.asks = append(m.asks, func() {
		facts := slices.Clone(evidence)
		slices.SortFunc(facts, func(a, b *fact) int { return a.At.Compare(b.At) })
		q := question{ID: fmt.Sprint(m.id, "-q", len(m.questions)), Query: query(), Scope: m.scope(), Evidence: []string{}, Kind: kind, Sub: sub,
			Half: m.half, Language: m.l.code, Now: m.days[sessions-1].AddDate(0, 0, 10), facts: facts}
		for _, f := range facts {
			q.Evidence = append(q.Evidence, f.Ref)
		}
		m.questions = append(m.questions, q)
	})
}

func (c *chat) user() string  { return "@" + strings.ToLower(c.person) + ":" + c.id + ".test" }
func (c *chat) scope() string { return string(memory.Private(c.user())) }

func (m *maker) askWith(kind, sub, list string, t *matter, evidence []*fact, more ...string) {
	line := m.draw(list)[0]
	m.ask(kind, sub, func() string { return m.fill(line, t, more...) }, evidence...)
}

func (m *maker) planTopic(t *matter) {
	order := m.r.Perm(len(t.attrs))
	for i, n := range order {
		m.planAttr(t, t.attrs[n], i, len(order))
	}
	for _, f := range t.months {
		m.planMonths(t, f)
	}
	costs, nouns := m.planCosts(t)
	events := m.planEvents(t)
	all := slices.Concat(events, costs)
	m.askWith("summary", "", "q.summary", t, all)
	if len(costs) > 2 {
		m.askWith("multi", "sum", "q.sum", t, costs)
		m.askWith("multi", "compare", "q.compare", t, []*fact{costs[0], costs[2]}, "a", nouns[0], "b", nouns[2])
	}
}

// planAttr plans a fact with one value: the first of a topic is never said, the second and every
// other one changes later.
func (m *maker) planAttr(t *matter, f []string, i, of int) {
	ask := pick(m.r, f[attrAsk:attrAsk2+1])
	if i == 0 && of > 2 {
		m.ask("abstention", "near", func() string { return m.fill(ask, t) })
		return
	}
	v := m.value(f[attrType])
	others := []string{v}
	for range 3 {
		if len(fields(f[attrType], ";")) == 1 || len(others) < len(fields(f[attrType], ";"))-1 {
			others = append(others, m.value(f[attrType], others...))
		}
	}
	say := func(text, v string) *fact {
		return &fact{Text: m.fill(text, t, "v", v), Memory: m.fill(f[attrMem], t, "v", v), topic: t, values: others[1:]}
	}
	changes := i%2 == 1 && f[attrNew] != ""
	at := m.between(.1, .9)
	if changes {
		at = m.between(.05, .45)
	}
	first := m.tell(at, say(pick(m.r, f[attrSay:attrSay2+1]), v))
	near := m.fill(f[attrNear], t, "v", others[len(others)-1])
	m.tell(m.between(0, 1), &fact{Text: near, Memory: m.person + ": " + near, topic: t, values: others[:1]})
	m.wonder = append(m.wonder, &fact{Text: m.fill(f[attrHm], t), topic: t, values: others})
	if !changes {
		m.ask("extraction", "value", func() string { return m.fill(ask, t) }, first)
		return
	}
	second := m.tell(m.between(.55, .97), say(f[attrNew], others[1]))
	second.Memory = m.fill(f[attrMem], t, "v", others[1])
	m.ask("update", "", func() string { return m.fill(ask, t) }, first, second)
}

// planMonths plans a value for each of some months, told early in the next one.
func (m *maker) planMonths(t *matter, f []string) {
	var all []*fact
	var names []string
	var used []string
	for i := 1; i < sessions; i++ {
		if m.days[i].Month() == m.days[i-1].Month() {
			continue
		}
		month := m.l.lists["months"][m.days[i-1].Month()-1][0]
		v := m.value(f[monthType], used...)
		used = append(used, v)
		names = append(names, month)
		all = append(all, m.tell(min(sessions-1, i+m.r.IntN(2)), &fact{Text: m.fill(f[monthSay], t, "v", v, "month", month),
			Memory: m.fill(f[monthMem], t, "v", v, "month", month), topic: t}))
	}
	n := m.r.IntN(len(all))
	m.ask("extraction", "month", func() string { return m.fill(f[monthAsk], t, "month", names[n]) }, all[n])
	if k := len(all); k > 2 {
		m.ask("multi", "months", func() string { return m.fill(f[monthSum], t, "from", names[k-3], "to", names[k-1]) }, all[k-3:]...)
	}
}

func (m *maker) planCosts(t *matter) (all []*fact, nouns []string) {
	for _, f := range t.cost {
		v := m.value(f[costType])
		all = append(all, m.tell(m.between(.05, .97), &fact{Text: m.fill(f[costSay], t, "v", v), Memory: m.fill(f[costMem], t, "v", v), topic: t}))
		nouns = append(nouns, m.fillIn(f[costNoun], t))
	}
	return all, nouns
}

// planEvents spreads the events of t over the chat and asks for their order, days between them, and
// what was a number of weeks before one.
func (m *maker) planEvents(t *matter) []*fact {
	n := len(t.events)
	var all []*fact
	var nouns []string
	var at []int
	for i, f := range t.events {
		s := m.between((float64(i)+.15)/float64(n), (float64(i)+.9)/float64(n))
		at = append(at, s)
		nouns = append(nouns, m.fillIn(f[eventNoun], t))
		all = append(all, m.tell(s, &fact{Text: m.fill(f[eventSay], t), Memory: m.fill(f[eventMem], t), topic: t}))
	}
	mixed := m.r.Perm(n)[:3]
	m.askWith("order", "named", "q.order", t, []*fact{all[mixed[0]], all[mixed[1]], all[mixed[2]]}, "a", nouns[mixed[0]], "b", nouns[mixed[1]], "c", nouns[mixed[2]])
	m.askWith("order", "topic", "q.order-topic", t, all)
	a, b := mixed[0], mixed[1]
	m.askWith("temporal", "between", "q.between", t, []*fact{all[a], all[b]}, "a", nouns[a], "b", nouns[b])
	m.askWith("temporal", "date", "q.date", t, []*fact{all[mixed[2]]}, "date", m.date(m.days[at[mixed[2]]]))
	for i := range n {
		for j := i + 1; j < n; j++ {
			days := int(m.days[at[j]].Sub(m.days[at[i]]).Hours()/24 + .5)
			if weeks := (days + 3) / 7; weeks >= 2 && weeks <= 9 && max(days-7*weeks, 7*weeks-days) <= 1 {
				m.askWith("temporal", "before", "q.before", t, []*fact{all[i], all[j]}, "n", strconv.Itoa(weeks), "a", nouns[j])
				return all
			}
		}
	}
	return all
}

// date formats a date as people of the language say it.
func (m *maker) date(at time.Time) string {
	form := m.l.lists["date"][0][0]
	return strings.NewReplacer("{d}", strconv.Itoa(at.Day()), "{m}", m.l.lists["months"][at.Month()-1][0], "{y}", strconv.Itoa(at.Year())).Replace(form)
}

func (m *maker) planWishes() {
	for _, f := range m.l.list("preference", m.half) {
		slots := []string{"bad", f[0], "good", f[1]}
		wish := m.tell(m.between(.03, .7), &fact{Text: m.fill(m.draw("dislike")[0], nil, slots...), Memory: m.fill(m.draw("dislike-mem")[0], nil, slots...), wish: true})
		if m.r.IntN(2) == 0 {
			near := m.fill(m.draw("dislike-near")[0], nil, slots...)
			m.tell(m.between(0, 1), &fact{Text: near, Memory: m.person + ": " + near})
		}
		if m.r.IntN(3) == 0 {
			wish.Text = f[4]
		}
		ask := pick(m.r, f[2:4])
		m.ask("preference", "", func() string { return m.fill(ask, nil) }, wish)
	}
	for _, f := range m.l.list("instruction", m.half) {
		wish := m.tell(m.between(.03, .7), &fact{Text: m.fill(m.draw("wish")[0], nil, "do", f[0]), Memory: m.fill(m.draw("wish-mem")[0], nil, "do", f[0]), wish: true})
		if m.r.IntN(3) == 0 {
			wish.Text = f[3]
		}
		ask := pick(m.r, f[1:3])
		m.ask("instruction", "", func() string { return m.fill(ask, nil) }, wish)
	}
}

func (m *maker) planContradictions() {
	for _, f := range m.l.list("contradiction", m.half) {
		a := m.tell(m.between(.05, .45), &fact{Text: m.fill(f[0], nil), Memory: m.fill(f[3], nil)})
		b := m.tell(m.between(.55, .97), &fact{Text: m.fill(f[1], nil), Memory: m.fill(f[4], nil)})
		m.ask("contradiction", "", func() string { return m.fill(f[2], nil) }, a, b)
	}
}

// askVoid asks for what was never said and for what the assistant said, and says what is no question.
func (m *maker) askVoid() {
	n := len(m.asks)
	for _, f := range m.l.list("void", m.half) {
		m.ask("abstention", "far", func() string { return m.fill(f[0], nil) })
	}
	slices.SortFunc(m.wonder, func(a, b *fact) int { return strings.Compare(a.Text, b.Text) })
	for i, f := range m.wonder {
		if line := m.l.list("q.said", m.half)[0][0]; i < 5 && f.answer != nil {
			m.ask("extraction", "answer", func() string { return m.fill(line, f.topic, "q", f.Text) }, f.answer)
		}
	}
	for _, f := range m.l.list("hello", m.half) {
		m.ask("smalltalk", "", func() string { return f[0] })
	}
	for _, ask := range m.asks[n:] {
		ask()
	}
}

// session says what is planned for session i, and other things until the chat has so many tokens.
func (m *maker) session(i, tokens int) {
	at := m.days[i]
	say := func(speaker, text string) string {
		seq := len(m.messages) + 1
		who := m.person
		if speaker == "assistant" {
			who = "assistant"
		}
		ref := fmt.Sprint(m.id, "-", seq)
		m.messages = append(m.messages, message{Text: text, Scope: m.scope(), Subject: who, Speaker: speaker, ObservedAt: at, Ref: ref, Conversation: m.id, Seq: seq})
		m.tokens += llm.EstimateTokens(text)
		at = at.Add(time.Duration(1+m.r.IntN(3)) * time.Minute)
		return ref
	}
	now := slices.Clone(m.plan[i])
	m.r.Shuffle(len(now), func(a, b int) { now[a], now[b] = now[b], now[a] })
	for left := now; len(left) > 0 || m.tokens < tokens; {
		if len(left) > 0 && (m.r.IntN(5) < 2 || m.tokens >= tokens) {
			f := left[0]
			left = left[1:]
			f.At = at
			topic := f.topic
			if topic == nil {
				topic = pick(m.r, m.topics)
			}
			f.Ref = say("user", m.around(f.Text, topic))
			say("assistant", m.answer(topic, f.Text, f.values))
			continue
		}
		topic := pick(m.r, m.topics)
		switch n := m.r.IntN(20); {
		case n < 4:
			small := m.draw("small")
			say("user", small[0])
			say("assistant", small[1])
		case n < 7 && len(m.wonder) > 0:
			f := m.wonder[0]
			m.wonder = append(m.wonder[1:], f)
			say("user", m.around(f.Text, nil))
			answer := &fact{At: at, Ref: say("assistant", m.answer(f.topic, f.Text, f.values)), Text: m.said}
			f.answer = cmp.Or(f.answer, answer)
		default:
			text := m.help(topic)
			say("user", m.around(text, nil))
			say("assistant", m.answer(topic, text, nil))
		}
	}
}

func (m *maker) help(t *matter) string {
	return m.fill(m.draw("help")[0], t, "thing", pick(m.r, t.things))
}

// around puts other sentences before and after what is said; with a topic, often a question about it.
func (m *maker) around(text string, t *matter) string {
	var parts []string
	for range m.r.IntN(3) {
		parts = append(parts, m.draw("pad")[0])
	}
	parts = append(parts, text)
	if t != nil && m.r.IntN(3) > 0 {
		parts = append(parts, m.help(t))
	}
	return m.join(parts)
}

func (m *maker) join(parts []string) string {
	if m.l.code == "ja" {
		return strings.Join(parts, "")
	}
	return strings.Join(parts, " ")
}

// answer is a long answer of the assistant: it repeats words of what was said, offers options, gives
// reasons, and asks back.
func (m *maker) answer(t *matter, said string, values []string) string {
	opening := m.fill(m.draw("open")[0], t, "thing", pick(m.r, t.things))
	if m.r.IntN(3) == 0 {
		opening = m.fill(m.draw("quote")[0], t, "q", said)
	}
	parts := []string{opening}
	if len(values) > 0 {
		for len(values) < 3 {
			values = append(slices.Clone(values), pick(m.r, t.things))
		}
		m.said = m.fill(m.draw("options")[0], t, "a", values[0], "b", values[1], "c", values[2])
		parts[0] = m.join([]string{parts[0], m.said})
	}
	tokens := 0
	for _, p := range parts {
		tokens += llm.EstimateTokens(p)
	}
	for want, i := 180+m.r.IntN(280), 0; tokens < want; i++ {
		list, by := "bullet", ""
		if i%4 == 3 {
			list = "advice"
		}
		by = m.fill(m.draw(list)[0], t, "thing", pick(m.r, t.things), "step", pick(m.r, t.steps), "reason", m.draw("reason")[0])
		parts = append(parts, by)
		tokens += llm.EstimateTokens(by)
	}
	return strings.Join(append(parts, m.fill(m.draw("close")[0], t, "thing", pick(m.r, t.things))), "\n")
}

// makeSet makes n chats: of five, three are English.
func makeSet(n int, seed uint64, tokens int) ([]*chat, error) {
	read := map[string]*language{}
	var out []*chat
	others := []string{"de", "fr", "es", "ja"}
	counts := map[string]int{}
	for i := range n {
		code := "en"
		if i%5 > 2 {
			code = others[(i/10*2+i%5-3)%4]
		}
		l := read[code]
		if l == nil {
			var err error
			if l, err = readLanguage(code); err != nil {
				return nil, err
			}
			read[code] = l
		}
		out = append(out, makeChat(l, counts[code], seed, tokens))
		counts[code]++
	}
	slices.SortStableFunc(out, func(a, b *chat) int { return cmp.Compare(a.id[:2], b.id[:2]) })
	return out, nil
}
