package rehearsal

import (
	"strconv"
	"strings"

	"reverie/internal/lazyregexp"
)

var (
	blockRE = lazyregexp.New(`(?s)<data id="(\w+)" source="(summary|conversation)">\n(.*?)\n</data (\w+)>`)
	wordsRE = lazyregexp.New(`at most (\d+) words`)
	lineRE  = lazyregexp.New(`^(\S+) \[[^\]]*\]: (.+)$`)
)

// summarise answers the request for a summary: the previous summary, then the first words of what
// people said, up to the limit.
func summarise(t turn) (reply, bool) {
	messages := t.req.Messages
	if len(messages) != 2 || !strings.Contains(messages[1].text, `source="conversation">`) {
		return reply{}, false
	}
	left := 100
	if m := wordsRE().FindStringSubmatch(messages[0].text); m != nil {
		left, _ = strconv.Atoi(m[1])
	}
	var lines []string
	for _, block := range blockRE().FindAllStringSubmatch(messages[1].text, -1) {
		if block[1] != block[4] {
			continue
		}
		for l := range strings.Lines(block[3]) {
			l = strings.TrimSpace(l)
			if block[2] == "conversation" {
				m := lineRE().FindStringSubmatch(l)
				if m == nil {
					continue
				}
				l = m[1] + " said: " + clip(m[2], 100)
			} else if strings.HasPrefix(l, "Word for word") {
				break // the program keeps these itself
			}
			if n := len(strings.Fields(l)); n > 0 && n <= left {
				left -= n
				lines = append(lines, l)
			}
		}
	}
	return reply{text: strings.Join(lines, "\n")}, true
}
