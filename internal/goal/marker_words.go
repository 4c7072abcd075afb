package goal

import (
	"cmp"
	"regexp"
	"strings"
)

// endings are the words and signs that can end a marker's line, by its kind, and what they mean; words
// without what parts them.
var endings = map[string]map[string]string{
	"CHECKPOINT": meanings("completed complete done finished ✅ ☑ ✔ [x]", string(Done),
		"inprogress started ongoing wip 🔄", string(InProgress),
		"pending todo notstarted planned blocked ⏳ []", string(Pending)),
	"DECISION": meanings("locked 🔒", "locked", "unlocked notlocked", "unlocked"),
	"GOAL": meanings("completed complete done finished achieved ✅", string(Completed), "paused onhold", string(Paused),
		"abandoned dropped", string(Abandoned), "active inprogress 🔄", string(Active)),
}

func meanings(pairs ...string) map[string]string {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		for w := range strings.FieldsSeq(pairs[i]) {
			all[w] = pairs[i+1]
		}
	}
	return all
}

const aSign = `(✅|☑|✔|🔄|⏳|🔒)\x{FE0F}?`

var (
	// A word stands behind a dash, a colon or a bar, or in brackets; marks around it do not matter, nor does
	// a sign before it. A sign needs nothing before it.
	wordEndRE = regexp.MustCompile(`(?i)^(.*\S)(?:\s+[-=]+>?\s*|\s*[–—→|:]\s*|\s*[(\[])[\s*_\x60(\[]*` +
		`(?:` + aSign + `\s*)?([a-z][a-z _-]*?)[\s*_\x60)\].!,;\x{FE0F}]*$`)
	signEndRE  = regexp.MustCompile(`^(.*?\S)\s*(?:[-–—→|:]+\s*)?[*_\x60(\[]*` + aSign + `[\s*_\x60)\].!,;]*$`)
	signRE     = regexp.MustCompile(`^(✅|☑|✔|🔄|⏳|\[[xX ]\])\x{FE0F}?\s*`)
	priorityRE = regexp.MustCompile(`(?i)^(.*?\S)(?:\s*\|\s*(?:priority:?\s*)?(high|medium|low)(?:\s+priority)?|` +
		`(?:\s+[-–—]\s+|\s*[(\[,]\s*)(?:priority:?\s*(high|medium|low)|(high|medium|low)\s+priority))[\s*_)\].]*$`)
	verbRE    = regexp.MustCompile(`(?i)^[*_]*([a-z]+)[*_]*(?:\s*:[*_]*\s*|\s+)(?:[-–—]\s+)?(.+)$`)
	verbEndRE = regexp.MustCompile(`(?i)^(.+?\S)(?:\s*\|\s*|\s+[-–—]\s+|\s*\(\s*)([a-z]+)[\s).]*$`)
	verbs     = meanings("created create added new", "created",
		"modified modify updated update changed edited", "modified",
		"deleted delete removed remove", "deleted")
)

// cutWords takes the endings of a kind of marker off the end of text, for as long as there are any, and
// returns what the last of them in the line means.
func cutWords(text, kind string) (rest, means string) {
	known := endings[kind]
	for text = plain(text); ; {
		word := ""
		m := wordEndRE.FindStringSubmatch(text)
		if m != nil {
			word = known[strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(m[3]))]
		}
		if word == "" {
			if m = signEndRE.FindStringSubmatch(text); m != nil {
				word = known[m[2]]
			}
		}
		if word == "" {
			return text, means
		}
		text, means = plain(m[1]), cmp.Or(means, word)
	}
}

// parseCheckpoint returns status "" when nothing says one: not the end of the
// line, not a sign before the description or the tag. A line that is nothing but a
// status has no description.
func parseCheckpoint(text, lead string) (rest string, status Step) {
	for rest = text; ; {
		before := rest
		var means string
		rest, means = cutWords(rest, "CHECKPOINT")
		status = cmp.Or(status, Step(means))
		if m := signRE.FindStringSubmatch(rest); m != nil {
			rest = rest[len(m[0]):]
			status = cmp.Or(status, stepOf(m[1]))
		}
		if rest = numbered.ReplaceAllString(rest, ""); rest == before {
			break
		}
	}
	if alone, _ := cutWords("x - "+rest, "CHECKPOINT"); alone == "x" {
		rest = ""
	}
	for ; lead != ""; lead = lead[1:] {
		if m := signRE.FindStringSubmatch(lead); m != nil {
			status = cmp.Or(status, stepOf(m[1]))
		}
	}
	return rest, status
}

func stepOf(sign string) Step {
	return Step(endings["CHECKPOINT"][strings.ReplaceAll(strings.ToLower(sign), " ", "")])
}

func parseGoal(text string) (rest string, ended Status, priority string) {
	means := ""
	for rest = plain(text); ; {
		var word string
		before := rest
		rest, word = cutWords(rest, "GOAL")
		means = cmp.Or(means, word)
		if m := priorityRE.FindStringSubmatch(rest); m != nil {
			rest, priority = plain(m[1]), cmp.Or(priority, strings.ToLower(m[2]+m[3]+m[4]))
		}
		if rest == before {
			break
		}
	}
	if ended = Status(means); ended == Active {
		ended = ""
	}
	return rest, ended, priority
}

// parseArtifact returns no action for a line that names none.
func parseArtifact(text string) (action, path string) {
	if m := verbRE.FindStringSubmatch(text); m != nil {
		action, path = verbs[strings.ToLower(m[1])], m[2]
	}
	if m := verbEndRE.FindStringSubmatch(text); m != nil && action == "" {
		action, path = verbs[strings.ToLower(m[2])], m[1]
	}
	if code, ok := strings.CutPrefix(path, "`"); ok { // what stands behind it explains
		if inner, _, ok := strings.Cut(code, "`"); ok {
			path = inner
		}
	}
	return action, plain(path)
}

// plain is text without blanks at its ends, the dash or colon it begins with, and
// emphasis, quotes or code marks around all of it.
func plain(text string) string {
	for {
		before := text
		text = strings.TrimSpace(text)
		for _, dash := range []string{"- ", "– ", "— ", ": "} {
			text = strings.TrimPrefix(text, dash)
		}
		for _, mark := range []string{"**", "__", "*", "_", "`", `"`, "“”", "~~"} {
			open, shut := mark, mark
			if mark == "“”" {
				open, shut = "“", "”"
			}
			if len(text) > len(open)+len(shut) && strings.HasPrefix(text, open) && strings.HasSuffix(text, shut) {
				text = text[len(open) : len(text)-len(shut)]
			}
		}
		if text == before {
			return text
		}
	}
}
