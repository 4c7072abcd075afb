package approval

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/text"
	"reverie/internal/tool"
)

// Question makes the messages that ask about a: a notice with each act, its arguments and the sources of
// untrusted text, and the poll. Clients show polls without line breaks, so it has only names.
func (a *Approval) Question(say i18n.Say) []chat.Outgoing {
	var details, names []string
	for _, act := range a.Acts {
		lines := argumentLines(act.Call.Arguments)
		if act.Covers == "" {
			lines = nil
			for _, line := range act.Shown {
				lines = append(lines, exactText(line))
			}
		}
		name := actText(say, act.Act)
		details = append(details, name+"\n"+codeBlock(strings.Join(lines, "\n")))
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(a.Sources) > 0 {
		details = append(details, say("approve.seen", "seen", strings.Join(a.Sources, ", ")))
	}
	how := "approve.how"
	if !a.mayCover() {
		how = "approve.how_once"
	}
	options := []chat.Option{{ID: Once, Text: say("approve.once")}}
	if a.mayCover() {
		options = append(options, chat.Option{ID: Wide, Text: say("approve.wide")})
	}
	options = append(options, chat.Option{ID: No, Text: say("approve.no")})
	text := say("approve.ask") + " (" + strings.Join(names, ", ") + ") " +
		say(how, "code", a.Code, "minutes", fmt.Sprint(int(answerTimeout.Minutes())))
	return []chat.Outgoing{{ID: a.detailsID(), Thread: a.Talk.Thread(), Text: strings.Join(details, "\n\n"), Notice: true},
		{ID: a.QuestionID(), Thread: a.Talk.Thread(), Text: text, Notice: true, Options: options}}
}

// actText describes a call for people.
func actText(say i18n.Say, act tool.Act) string {
	for _, key := range []string{"act." + act.Call.Name + "." + act.Action, "act." + act.Call.Name} {
		if text := say(key); text != key {
			return text
		}
	}
	return say("act.tool", "tool", strings.TrimSpace(act.Call.Name+" "+act.Action))
}

// argumentLines lists the arguments of a call, a line each.
func argumentLines(arguments string) []string {
	var args map[string]any
	if json.Unmarshal([]byte(arguments), &args) != nil {
		return []string{visibleText(arguments)}
	}
	var lines []string
	first := []string{"old", "path"}
	for _, name := range slices.SortedFunc(maps.Keys(args), func(a, b string) int {
		return cmp.Or(slices.Index(first, b)-slices.Index(first, a), cmp.Compare(a, b))
	}) {
		if name == "action" { // part of actText
			continue
		}
		text, ok := args[name].(string)
		if !ok {
			raw, _ := json.Marshal(args[name]) //nolint:errchkjson // it came from JSON
			text = string(raw)
		}
		lines = append(lines, visibleText(name)+": “"+visibleText(text)+"”")
	}
	return lines
}

// The most characters of each result in Outcome, and of the output of a command.
const (
	shownRunes  = 300
	shownOutput = 4000
)

// codeBlock returns text as a block of Markdown that it cannot end.
func codeBlock(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}

// visibleText returns text in one line, with invisible characters made visible.
func visibleText(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == '\ufe0e', r == '\ufe0f': // of emoji
			return -1
		case invisible(r):
			return '�'
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// exactText returns a line as it is, with all characters made visible but spaces.
func exactText(line string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return '␉'
		case r != ' ' && unicode.IsSpace(r), invisible(r):
			return '�'
		}
		return r
	}, strings.ToValidUTF8(line, "�"))
}

func invisible(r rune) bool {
	return r == '\u2800' || // a Braille blank
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Outcome lists the results of the acts, after the message text key.
func (a *Approval) Outcome(say i18n.Say, key string) string {
	lines := []string{say(key)}
	for _, act := range a.Acts {
		if !act.Done {
			continue
		}
		key := "approve.did"
		if act.Failed {
			key = "approve.failed"
		}
		result := history.OneLine(act.Result, shownRunes)
		if act.Covers == "" || strings.Contains(act.Result, "\n") { // the output of a command, or a diff
			result = "\n" + codeBlock(text.Clip(tool.ForPeople(act.Result), shownOutput))
		}
		lines = append(lines, "- "+say(key, "act", actText(say, act.Act), "result", result))
	}
	return strings.Join(lines, "\n")
}
