package rehearsal

import (
	"regexp"
	"strconv"
	"strings"

	"reverie/internal/lazyregexp"
)

var (
	harvestRE = lazyregexp.New(`(?m)^\[(\d+)\] \d{4}-\d\d-\d\d \d\d:\d\d \S+: (.*(?:\n    .*)*)`)
	toldRE    = lazyregexp.New(`(?i)^(?:(?:please |and |by the way[,:]? )?(?:remember|note|don't forget)(?: that)? )?((?:my|our) .+ (?:is|are) .+|(?:i|we) (?:live|work|like|love|prefer|hate|have|am allergic|don't like) .+)$`)
	rememRE   = lazyregexp.New(`(?i)^(?:please )?(?:remember|don't forget) that (.+)$`)
)

// objective answers the request to pick a conversation's task: none.
func objective(t turn) (reply, bool) {
	messages := t.req.Messages
	return reply{text: "none"}, len(messages) == 1 && strings.HasPrefix(messages[0].text, "Which of these tasks")
}

// harvest answers the request for facts worth remembering: sentences that begin with "remember
// that", "my … is …" or "I like …", verbatim.
func harvest(t turn) (reply, bool) {
	messages := t.req.Messages
	if len(messages) != 1 || !strings.Contains(messages[0].text, "quote") || !strings.Contains(messages[0].text, "valid_from") {
		return reply{}, false
	}
	facts := []map[string]any{}
	for _, m := range harvestRE().FindAllStringSubmatch(messages[0].text, -1) {
		number, _ := strconv.Atoi(m[1])
		for _, s := range strings.FieldsFunc(m[2], func(r rune) bool { return strings.ContainsRune(".!?\n", r) }) {
			s = strings.TrimSpace(s)
			for _, re := range []*regexp.Regexp{rememRE(), toldRE()} {
				if told := re.FindStringSubmatch(s); told != nil {
					facts = append(facts, map[string]any{"message": number, "quote": s, "fact": capitalize(told[1]), "subject": "I", "kind": "fact", "valid_from": "", "valid_to": ""})
					break
				}
			}
		}
	}
	return reply{text: string(asJSON(facts))}, true
}
