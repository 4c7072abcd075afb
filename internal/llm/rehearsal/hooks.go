package rehearsal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var hookRE = regexp.MustCompile(`(?i)\brehearse:\s*([a-z]+)(?:\s+([\w.]+))?`)

// hook plays the part that a test asks for; the package comment lists them.
func hook(t turn, m []string) (reply, bool) {
	n, _ := strconv.Atoi(m[2]) // 0 = none given
	switch strings.ToLower(m[1]) {
	case "empty":
		return reply{}, true
	case "garbled":
		return reply{page: true}, true
	case "error":
		if n < 400 || n > 599 {
			n = 500
		}
		return reply{status: n}, true
	case "slow":
		d, err := time.ParseDuration(m[2])
		if err != nil || d < 0 || d > 10*time.Minute {
			d = 3 * time.Second
		}
		return reply{text: "I waited for " + d.String() + " first.", delay: d}, true
	case "long":
		return reply{text: long(n)}, true
	case "length":
		return reply{text: "This answer ends in the middle of", finish: "length"}, true
	case "break":
		return reply{text: "This answer breaks off in the middle of its last sentence.", broken: true}, true
	case "think":
		return thinkAloud(), true
	case "tools":
		return t.rounds(n), true
	case "goal":
		return reply{text: goalReport}, true
	case "sub":
		return t.subSession(), true
	case "badargs":
		return t.badArguments(), true
	}
	return reply{text: fmt.Sprintf("I know no rehearsal called “%s”. There are: empty, garbled, error N, slow D, long N, length, break, think, tools N, goal, sub, badargs.", m[1])}, true
}

// subSession gives work to a sub-session, and says so.
func (t turn) subSession() reply {
	const name = "spawn_sub_session"
	if len(t.results) > 0 || !t.offers(name) {
		return reply{text: "It is on its way, if there are sub-sessions here."}
	}
	return reply{calls: []call{{Function: function{name, `{"objective":"Say hello to the room"}`}}}}
}

// goalReport is an answer with lines about a goal in it.
const goalReport = `I have begun.

[GOAL] Ship the rehearsal
[CHECKPOINT] Learn the lines - COMPLETED
[CHECKPOINT] Find the costumes - IN PROGRESS
[DECISION] Play in English - LOCKED
[ARTIFACT] Created notes/lines.md
[NEXT] Find the costumes

More tomorrow.`

// long is a text of n words, in sentences and paragraphs.
func long(n int) string {
	if n <= 0 || n > 20000 {
		n = 400
	}
	vocabulary := strings.Fields("every word of this long answer is here only to fill a page so that streaming can be watched")
	var b strings.Builder
	for i := range n {
		w := vocabulary[i%len(vocabulary)]
		if i%12 == 0 {
			w = upperFirst(w)
		}
		b.WriteString(w)
		switch {
		case i == n-1:
			b.WriteString(".")
		case i%60 == 59:
			b.WriteString(".\n\n")
		case i%12 == 11:
			b.WriteString(". ")
		default:
			b.WriteString(" ")
		}
	}
	return b.String()
}

// thinkAloud thinks in a field of its own and in a block whose tags come in
// pieces. None of it may reach a person.
func thinkAloud() reply {
	pieces := []string{"<th", "ink>", "rehearsed thinking ", "in a block</", "think", ">\n\n", "I thought ", "about it."}
	return reply{text: strings.Join(pieces, ""), pieces: pieces, reasoning: "rehearsed thinking in a field"}
}

// harmless is a call that changes nothing, of the tools on offer.
func (t turn) harmless() (call, bool) {
	for _, c := range []function{{"task", `{"action":"list"}`}, {"read_file", `{"path":"BASE_PROMPT.txt"}`}} {
		if t.offers(c.Name) {
			return call{Function: c}, true
		}
	}
	if len(t.req.Tools) > 0 {
		return call{Function: function{t.req.Tools[0].name, "{}"}}, true
	}
	return call{}, false
}

func (t turn) rounds(n int) reply {
	c, ok := t.harmless()
	if done := len(t.results); done >= n || !ok {
		return reply{text: fmt.Sprintf("I called tools in %d rounds.", done)}
	}
	return reply{calls: []call{c}}
}

func (t turn) badArguments() reply {
	if n := len(t.results); n > 0 {
		return reply{text: "The tool said: " + short(t.results[n-1], 400)}
	}
	name := "append_memory"
	if c, ok := t.harmless(); ok && !t.offers(name) {
		name = c.Function.Name
	} else if !ok {
		return reply{text: "No tool was offered to me."}
	}
	return reply{calls: []call{{Function: function{name, `{"entry": "never finis`}}}}
}
