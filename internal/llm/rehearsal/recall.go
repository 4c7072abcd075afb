package rehearsal

import (
	"fmt"
	"slices"
	"strings"

	"reverie/internal/lazyregexp"
)

var (
	aboutRE = lazyregexp.New(`(?is)^` + lead + `(?:what (?:do|did) (?:you|i|we) (?:know|remember|have|say|tell you)(?: to you)? about|(?:do you )?(?:know|remember)(?: anything| something)? about|tell me (?:more |something |everything )?about|do you (?:know|remember)|remember)\s+(.+?)\s*[?.!]*$`)
	askRE   = lazyregexp.New(`(?is)^` + lead + `((?:what|who|whom|whose|where|when|which|how)\b.+?)\s*\?*$`)
)

// recall answers a question from the lines of its own request.
func recall(t turn) (reply, bool) {
	topic, broad := "", false
	if m := aboutRE().FindStringSubmatch(t.said); m != nil {
		topic, broad = m[1], true
	} else if m := askRE().FindStringSubmatch(t.said); m != nil {
		topic = m[1]
	} else {
		return reply{}, false
	}
	asked := topics(topic)
	var found []string
	switch {
	case len(asked) > 0:
		found = search(t.req, asked, broad)
	case broad: // "about me": all of it
		found = aboutPeople(t.req)
	default: // "how are you?"
		return reply{}, false
	}
	name := clip(topic, 100)
	switch len(found) {
	case 0:
		return reply{text: fmt.Sprintf("Nothing about “%s” is in what I was given.", name)}, true
	case 1:
		return reply{text: fmt.Sprintf("This is in what I was given about “%s”:\n\n> %s", name, found[0])}, true
	default:
		return reply{text: fmt.Sprintf("This is in what I was given about “%s”:\n\n> - %s", name, strings.Join(found, "\n> - "))}, true
	}
}

const maxFound = 5 // lines quoted

// search returns the lines with the most of the words asked for: more than half of them, or half
// for a broad question.
func search(req request, asked []string, broad bool) []string {
	slices.Sort(asked)
	asked = slices.Compact(asked)
	best := 1
	if !broad {
		best = len(asked)/2 + 1
	} else {
		best = max(best, (len(asked)+1)/2)
	}
	var found []string
	for _, l := range knowledgeLines(req) {
		has, n := topics(l.text), 0
		for _, w := range asked {
			if slices.Contains(has, w) {
				n++
			}
		}
		switch {
		case n > best:
			best, found = n, []string{l.text}
		case n == best:
			found = append(found, l.text)
		}
	}
	return newest(found)
}

// aboutPeople returns facts about people: all lines but skills and tasks.
func aboutPeople(req request) []string {
	var found []string
	for _, l := range knowledgeLines(req) {
		if l.source != "skills" && l.source != "tasks" {
			found = append(found, l.text)
		}
	}
	return newest(found)
}

// newest returns the last lines, deduplicated and shortened. Later lines win when lines disagree.
func newest(lines []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, l := range lines {
		if f := fold(l); !seen[f] {
			seen[f] = true
			kept = append(kept, clip(l, 300))
		}
	}
	return kept[max(0, len(kept)-maxFound):]
}

// knowledgeLines returns the lines of a request that can hold knowledge: blocks of data, and earlier
// statements of people. Questions and the model's own answers are excluded. A system text without
// blocks counts whole.
func knowledgeLines(req request) (lines []line) {
	last := len(req.Messages) - 1
	for last > 0 && req.Messages[last].Role != "user" {
		last--
	}
	for i, m := range req.Messages {
		text := m.text
		switch m.Role {
		case "system", "developer":
			if data := dataLines(text); len(data) > 0 || strings.Contains(text, "<data") {
				lines = append(lines, data...)
				continue
			}
			for l := range strings.Lines(text) {
				if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
					lines = append(lines, line{text: withoutBullet(l)})
				}
			}
		case "user":
			if i != last {
				lines = append(lines, statements(ownWords(text))...)
			}
			lines = append(lines, dataLines(text)...)
		case "tool":
			lines = append(lines, dataLines(text)...)
		}
	}
	return lines
}

// statements returns the lines of a person's message that are not questions. Of "remember that …"
// only the fact counts.
func statements(own string) (lines []line) {
	if m := rememberRE().FindStringSubmatch(own); m != nil && !strings.HasSuffix(own, "?") {
		return []line{{text: fact(m[2])}}
	}
	for l := range strings.Lines(own) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasSuffix(l, "?") && !askRE().MatchString(l) && !aboutRE().MatchString(l) {
			lines = append(lines, line{text: l})
		}
	}
	return lines
}
