package rehearsal

import (
	"regexp"
	"strings"
)

var (
	choiceRE = regexp.MustCompile(`(?m)^> (task_\w+): (.+)$`)
	linesRE  = regexp.MustCompile(`(?m)^> @?[^:\s]+(?::\S+)?: (.+)$`)
	wordRE   = regexp.MustCompile(`\pL{4,}`)
)

// objective answers the program's question which of some tasks a conversation is about:
// the one that shares most words with what people wrote.
func objective(t turn) (reply, bool) {
	messages := t.req.Messages
	if len(messages) != 1 || !strings.HasPrefix(messages[0].text, "Which of these tasks") {
		return reply{}, false
	}
	tasks, talk, _ := strings.Cut(messages[0].text, "\nThe conversation:\n")
	var said strings.Builder
	for _, l := range linesRE.FindAllStringSubmatch(talk, -1) {
		if !strings.HasPrefix(l[0], "> assistant:") {
			said.WriteString(" " + fold(l[1]))
		}
	}
	best, most := "none", 0
	for _, m := range choiceRE.FindAllStringSubmatch(tasks, -1) {
		n := 0
		for _, w := range wordRE.FindAllString(fold(m[2]), -1) {
			n += strings.Count(said.String(), w)
		}
		if n > most {
			best, most = m[1], n
		}
	}
	return reply{text: best}, true
}
