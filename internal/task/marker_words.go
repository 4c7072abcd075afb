package task

import (
	"regexp"
	"strings"
)

// form is a word that can end a marker's line, and the patterns that mean it.
type form struct {
	means      string
	word, sign string // regular expressions; sign needs nothing before it
	end        []*regexp.Regexp
}

// forms completes a list of them. A word stands behind a dash, a colon or a bar, or
// in brackets; marks around it do not matter.
func forms(list ...form) []form {
	const open, shut = `[\s*_\x60(\[]*`, `[\s*_\x60)\].!,;\x{FE0F}]*$`
	for i := range list {
		f := &list[i]
		what := f.word
		if f.sign != "" {
			what = `(?:(?:` + f.sign + `)\x{FE0F}?\s*)?(?:` + f.word + `)|` + f.sign
		}
		f.end = append(f.end,
			regexp.MustCompile(`(?i)^(.*?\S)(?:\s+[-=]+>?\s*|\s*[–—→|:]\s*)`+open+`(?:`+what+`)`+shut),
			regexp.MustCompile(`(?i)^(.*?\S)\s*[(\[]`+open+`(?:`+what+`)\s*[*_\x60]*[)\]]`+shut))
		if f.sign != "" {
			f.end = append(f.end, regexp.MustCompile(`^(.*?\S)\s*(?:`+f.sign+`)`+shut))
		}
	}
	return list
}

var (
	stepForms = forms(
		form{means: string(Done), word: `completed?|done|finished`, sign: `✅|☑|✔`},
		form{means: string(InProgress), word: `in[ _-]?progress|started|ongoing|wip`, sign: `🔄`},
		form{means: string(Pending), word: `pending|to[ _-]?do|not[ _-]started|planned|blocked`, sign: `⏳`},
	)
	lockForms = forms(
		form{means: "unlocked", word: `unlocked|not[ _-]locked`},
		form{means: "locked", word: `locked`, sign: `🔒`},
	)
	goalForms = forms(
		form{means: string(Completed), word: `completed?|done|finished|achieved`, sign: `✅`},
		form{means: string(Paused), word: `paused|on hold`},
		form{means: string(Abandoned), word: `abandoned|dropped`},
		form{means: string(Active), word: `active|in[ _-]?progress`, sign: `🔄`},
	)
	// Only so much of a line whose status is not its end: "X - COMPLETED yesterday".
	midStatusRE = regexp.MustCompile(`^(.*?\S)\s+-\s+(COMPLETED|IN-PROGRESS|PENDING|BLOCKED)\b`)
	signRE      = regexp.MustCompile(`^(?:(✅|☑|✔|\[[xX]\])|(🔄)|(⏳|\[ \]))\x{FE0F}?\s*`)
	priorityRE  = regexp.MustCompile(`(?i)^(.*?\S)(?:\s*\|\s*(?:priority:?\s*)?(high|medium|low)(?:\s+priority)?|` +
		`(?:\s+[-–—]\s+|\s*[(\[,]\s*)(?:priority:?\s*(high|medium|low)|(high|medium|low)\s+priority))[\s*_)\].]*$`)
	verbRE    = regexp.MustCompile(`(?i)^[*_]*(?:(created?|added|new)|(modified|modify|updated?|changed|edited)|(deleted?|removed?))[*_]*(?:\s*:[*_]*\s*|\s+)(?:[-–—]\s+)?(.+)$`)
	verbEndRE = regexp.MustCompile(`(?i)^(.+?\S)(?:\s*\|\s*|\s+[-–—]\s+|\s*\(\s*)(?:(created|added|new)|(modified|updated|changed|edited)|(deleted|removed))[\s).]*$`)
)

// cutWords takes the forms off the end of text, for as long as there are any, and
// returns what the last of them in the line means.
func cutWords(text string, list []form) (rest, means string) {
	for text = plain(text); ; {
		cut := false
		for _, f := range list {
			for _, re := range f.end {
				if m := re.FindStringSubmatch(text); m != nil {
					text, cut = plain(m[1]), true
					if means == "" {
						means = f.means
					}
					break
				}
			}
		}
		if !cut {
			return text, means
		}
	}
}

// parseCheckpoint returns status "" when nothing says one: not the end of the
// line, not a sign before the description or the tag. A line that is nothing but a
// status has no description.
func parseCheckpoint(text, lead string) (rest string, status Step) {
	say := func(s Step) {
		if status == "" {
			status = s
		}
	}
	for rest = text; ; {
		before := rest
		var means string
		rest, means = cutWords(rest, stepForms)
		say(Step(means))
		if m := midStatusRE.FindStringSubmatch(rest); m != nil && means == "" {
			rest = m[1] + " - " + m[2]
			continue
		}
		if m := signRE.FindStringSubmatch(rest); m != nil {
			rest = rest[len(m[0]):]
			say(signs(m[1:]))
		}
		if rest = numbered.ReplaceAllString(rest, ""); rest == before {
			break
		}
	}
	if alone, _ := cutWords("x - "+rest, stepForms); alone == "x" {
		rest = ""
	}
	for ; lead != ""; lead = lead[1:] {
		if m := signRE.FindStringSubmatch(lead); m != nil {
			say(signs(m[1:]))
		}
	}
	return rest, status
}

func signs(found []string) Step {
	for i, step := range []Step{Done, InProgress, Pending} {
		if found[i] != "" {
			return step
		}
	}
	return ""
}

func parseGoal(text string) (rest string, ended Status, priority string) {
	means := ""
	for rest = plain(text); ; {
		var word string
		before := rest
		if rest, word = cutWords(rest, goalForms); means == "" {
			means = word
		}
		if m := priorityRE.FindStringSubmatch(rest); m != nil {
			rest = plain(m[1])
			if priority == "" {
				priority = strings.ToLower(m[2] + m[3] + m[4])
			}
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
	m := verbRE.FindStringSubmatch(text)
	if m != nil {
		m = []string{m[0], m[4], m[1], m[2], m[3]}
	} else if m = verbEndRE.FindStringSubmatch(text); m == nil {
		return "", ""
	}
	path = m[1]
	if code, ok := strings.CutPrefix(path, "`"); ok { // what stands behind it explains
		if inner, _, ok := strings.Cut(code, "`"); ok {
			path = inner
		}
	}
	for i, verb := range []string{"created", "modified", "deleted"} {
		if m[2+i] != "" {
			action = verb
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
