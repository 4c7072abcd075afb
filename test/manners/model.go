package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"reverie/internal/llm"
)

// Drift of the model; see the comment of the package.
const (
	scale    = 3000 // tokens
	lookedUp = 500  // tokens: how much further a rule lies that a note only points to
	missed   = .01  // of rules that were just said
)

// drift returns the probability that the model breaks a rule that was said so many tokens ago.
func drift(distance int) float64 {
	return missed + (1-missed)*(1-math.Exp(-math.Pow(float64(distance)/scale, 2)))
}

// model is a server of a chat model that follows what it reads, and drifts. It keeps figures of the requests.
type model struct {
	name string // a talk's, so that each has its own chances

	mu             sync.Mutex
	last           []message // of the last request
	compared       int       // bytes of requests that had a next one
	same           int       // of these, with which the next one begins
	comparedWithin int       // as compared and same, without requests after a summary was asked for
	sameWithin     int
	summed         bool
	notes          int
	longest        int    // tokens of a note of steering
	fault          string // the first broken promise on notes
}

type message struct{ Role, Content string }

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Messages []message
		Stream   bool
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(raw, &request) != nil || len(request.Messages) == 0 {
		http.Error(w, `{"error":{"message":"not understood"}}`, http.StatusBadRequest)
		return
	}
	all := request.Messages
	answer := "They talked about the house, the bread, the bicycle, the night train, the piano and the coat. Nothing is open."
	m.mu.Lock()
	if strings.Contains(all[0].Content+all[len(all)-1].Content, "You write the summary") {
		m.summed = true
	} else {
		m.count(all)
		answer = read(all).answer(m.name)
	}
	m.mu.Unlock()
	if !request.Stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}]}`, quoted(answer))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%s},\"finish_reason\":null}]}\n\n", quoted(answer))
	fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // strings always encode
	return string(b)
}

var steering = regexp.MustCompile(`(?s)\nNow:\n(.*?)\n(?:\S[^\n]*:\n|\[/note )`)

// count updates the figures.
func (m *model) count(all []message) {
	same, size, differs := 0, 0, false
	for i, old := range m.last {
		size += len(old.Content)
		if differs {
			continue
		}
		begun := 0
		if i < len(all) {
			for begun < min(len(old.Content), len(all[i].Content)) && old.Content[begun] == all[i].Content[begun] {
				begun++
			}
		}
		same += begun
		differs = begun < len(old.Content)
	}
	m.compared, m.same = m.compared+size, m.same+same
	if !m.summed {
		m.comparedWithin, m.sameWithin = m.comparedWithin+size, m.sameWithin+same
	}
	m.last, m.summed = all, false

	found := steering.FindAllStringSubmatch(all[len(all)-1].Content, -1)
	for _, f := range found {
		m.notes++
		m.longest = max(m.longest, llm.EstimateTokens(f[1]))
		if len(found) > 1 || strings.Count(f[1], "\n- ") > 0 {
			m.fault = "two notes in a message: " + f[1]
		}
	}
}

// reader reads the rules of style in a request.
type reader struct {
	all   []message
	words []string // the program's, by message; the rest is blanked out
	after []int    // tokens after each message
}

func read(all []message) *reader {
	r := &reader{all, make([]string, len(all)), make([]int, len(all))}
	for i := len(all) - 1; i >= 0; i-- {
		r.words[i] = programWords(all[i])
		if i > 0 {
			r.after[i-1] = r.after[i] + llm.EstimateTokens(all[i].Content)
		}
	}
	return r
}

var (
	data  = regexp.MustCompile(`(?s)<data id=.*?</data \w+>`)
	notes = regexp.MustCompile(`(?s)\[note [^\]]*\].*?\[/note [^\]]*\]`)

	// rules are what the model understands of each field, in the program's words.
	rules = map[string]*regexp.Regexp{
		"length":   regexp.MustCompile(`(?i)(one to three sentences)|(one or two short paragraphs)`),
		"emoji":    regexp.MustCompile(`(?i)(no emoji)|(at most one emoji)|(one or two emoji)`),
		"address":  regexp.MustCompile(`(?i)(familiar address)|(polite address)|(as they address you)`),
		"language": regexp.MustCompile(`Answer in this language: ([\pL ]+)\.`),
		"name":     regexp.MustCompile(`Address the person with: ([^.]+)\.`),
		"phrase":   regexp.MustCompile(`Do without the phrase “(.+?)”`),
	}
	pointer = regexp.MustCompile(`as you are described above|how you are described above`)
)

// programWords returns a message with all but the program's words blanked out; "" = it has none.
func programWords(m message) string {
	blank := func(s string) string { return strings.Repeat(" ", len(s)) }
	switch m.Role {
	case "system":
		return data.ReplaceAllStringFunc(m.Content, blank)
	case "user":
		if !strings.Contains(m.Content, "[note ") {
			return ""
		}
		out, end := "", 0
		for _, at := range notes.FindAllStringIndex(m.Content, -1) {
			out += blank(m.Content[end:at[0]]) + data.ReplaceAllStringFunc(m.Content[at[0]:at[1]], blank)
			end = at[1]
		}
		return out + blank(m.Content[end:])
	}
	return ""
}

// find returns what pattern last matched in the program's words, and how many tokens came after it.
func (r *reader) find(pattern *regexp.Regexp) (found []string, distance int, ok bool) {
	for i, words := range slices.Backward(r.words) {
		if words == "" || !pattern.MatchString(words) {
			continue
		}
		all := pattern.FindAllStringSubmatchIndex(words, -1)
		at := all[len(all)-1]
		for k := 2; k < len(at); k += 2 {
			s := ""
			if at[k] >= 0 {
				s = words[at[k]:at[k+1]]
			}
			found = append(found, s)
		}
		return found, r.after[i] + llm.EstimateTokens(r.all[i].Content[at[1]:]), true
	}
	return nil, 0, false
}

// rule returns the rule of a field and its distance. ok is false if there is none.
func (r *reader) rule(field string) (found []string, distance int, ok bool) {
	found, distance, ok = r.find(rules[field])
	if _, near, pointed := r.find(pointer); pointed {
		distance = min(distance, near+lookedUp)
	}
	return found, distance, ok
}

// choice is a number from 0 to 1 that depends on the talk, the newest message and what is chosen.
func choice(talk, said, what string) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, talk, "\x00", said, "\x00", what)
	return float64(mix(h.Sum64())>>11) / (1 << 53)
}

// mix spreads the last bytes that were hashed over all bits.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// saidIn returns what the person says in a message.
func saidIn(m message) string { return strings.TrimSpace(notes.ReplaceAllString(m.Content, "")) }

// person returns the language in which the person wrote last, and whether they use the polite address.
func (r *reader) person() (theirs *language, formal bool) {
	theirs = english
	for _, m := range slices.Backward(r.all) {
		if m.Role != "user" {
			continue
		}
		for line := range strings.SplitSeq(saidIn(m), "\n") {
			l := languageOf(line)
			if l == nil || len(line) > 200 || line[0] == '[' { // nothing, a pasted text, the header
				continue
			}
			theirs = l
			if l.saysFormal != nil && (l.saysFormal.MatchString(line) || l.saysFamiliar.MatchString(line)) {
				return l, l.saysFormal.MatchString(line)
			}
		}
	}
	return theirs, formal
}

// answer follows the rules that r finds, unless the model drifts; then it follows its habits.
func (r *reader) answer(talk string) string {
	said := saidIn(r.all[len(r.all)-1])
	theirs, formal := r.person()
	drifts := func(field string, distance int) bool { return choice(talk, said, field) < drift(distance) }

	speaks := theirs
	if found, distance, ok := r.rule("language"); ok {
		wanted := languages[slices.IndexFunc(languages, func(l *language) bool { return l.name == found[0] })]
		switch {
		case wanted == theirs: // the newest message reminds of it
		case !drifts("language", distance):
			speaks = wanted
		}
	} else if !strings.Contains(r.all[0].Content, "language") {
		speaks = english
	}
	sentences, paragraphs := 9, 3
	if found, distance, ok := r.rule("length"); ok && !drifts("length", distance) {
		sentences, paragraphs = 3, 1
		if found[1] != "" {
			sentences, paragraphs = 5, 2
		}
	}
	emoji := 2
	if found, distance, ok := r.rule("emoji"); ok && !drifts("emoji", distance) {
		switch {
		case found[0] != "":
			emoji = 0
		case found[1] != "":
			emoji = 1
		}
	}
	polite := choice(talk, said, "habit") < .5
	if found, distance, ok := r.rule("address"); ok {
		polite = found[1] != "" || found[2] != "" && formal
		if drifts("address", distance) {
			polite = !polite
		}
	}

	var out []string
	for i := range sentences {
		out = append(out, speaks.answers[(int(choice(talk, said, "words")*8)+i)%len(speaks.answers)])
	}
	switch {
	case speaks.toForm == "":
	case polite:
		out[len(out)-1] = speaks.toForm
	default:
		out[len(out)-1] = speaks.toFamiliar
	}
	if found, distance, ok := r.rule("phrase"); ok && drifts("phrase", distance) {
		out[0] = strings.ToUpper(found[0][:1]) + found[0][1:] + "."
	}
	if found, distance, ok := r.rule("name"); ok && !drifts("name", distance) {
		out[0] = found[0] + ", " + out[0]
	}
	text, each := "", (len(out)+paragraphs-1)/paragraphs
	for i, s := range out {
		switch {
		case i > 0 && i%each == 0:
			text += "\n\n"
		case i > 0:
			text += " "
		}
		text += s
	}
	return text + strings.Repeat(" 🙂", emoji)
}
