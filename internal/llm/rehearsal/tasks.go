package rehearsal

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reverie/internal/lazyregexp"
)

var (
	listRE   = lazyregexp.New(`(?i)^` + lead + `(?:what are my|what's on my|list|show)(?: me)?(?: all)?(?: my| the)?(?: open)?\s*(?:tasks?|reminders|task list|todos?)(?: list)?\s*[?.!]*$`)
	changeRE = lazyregexp.New(`(?i)^` + lead + `(complete|finish|pause|resume|delete)\s+(?:the )?(?:task )?#?(task_\w+)\s*[.!]*$`)
	workRE   = lazyregexp.New(`(?is)^` + lead + `work on\s+(.+?)[\s.!?]*$`)
	remindRE = lazyregexp.New(`(?is)^` + lead + `(?:remind me|(?:add|create|make)(?: a)?(?: new)? (?:task|reminder)):?\s+(.+?)[\s.!?]*$`)
)

func listTasks(t turn, _ []string) (reply, bool) {
	return t.callTool("task", map[string]any{"action": "list"}, "", func(result string) string {
		return "Your tasks:\n\n" + beginning(result)
	})
}

func changeTask(t turn, m []string) (reply, bool) {
	action := strings.ToLower(m[1])
	if action == "finish" {
		action = "complete"
	}
	args := map[string]any{"action": action, "task_id": m[2]}
	if action == "complete" {
		args["reason"] = "The person says that it is done."
	}
	return t.callTool("task", args, m[2], firstLine)
}

// workTask adds a task that the program performs itself when due.
func workTask(t turn, m []string) (reply, bool) {
	args := map[string]any{"action": "add", "priority": 5}
	content := schedule(strings.Join(strings.Fields(m[1]), " "), args)
	if args["schedule_type"] == nil { // talk about it
		return reply{}, false
	}
	args["content"], args["ai_prompt"] = capitalize(content), "Work on "+content+", and say how it went."
	return t.callTool("task", args, "task_", func(result string) string { return "I will do that. " + firstLine(result) })
}

func addTask(t turn, m []string) (reply, bool) {
	args := map[string]any{"action": "add", "priority": 5}
	args["content"] = capitalize(schedule(strings.Join(strings.Fields(m[1]), " "), args))
	return t.callTool("task", args, "task_", func(result string) string {
		_, id, _ := strings.Cut(firstLine(result), "#task_") // Added: [P5] #task_ID: content [when]
		_, added, _ := strings.Cut(id, ": ")
		if content, when, timed := strings.Cut(strings.TrimSuffix(added, "]"), " ["); timed {
			return "I will remind you " + strings.TrimPrefix(when, "once ") + ": " + content + "."
		}
		return "I noted the task: " + added + "."
	})
}

// firstLine returns the part of a result that is meant for people.
func firstLine(result string) string {
	l, _, _ := strings.Cut(result, "\n")
	return clip(l, 300)
}

// A time of day, and due times in people's words.
const (
	clockPat = `(?:\d{1,2}(?::\d{2})?(?:\s?[ap]\.?m\.?)?(?:\s?o'clock)?|noon|midnight)`
	atPat    = `(?:\s+at\s+(` + clockPat + `))?`
	dayPat   = `monday|tuesday|wednesday|thursday|friday|saturday|sunday`
)

// when has a row for each way to state a time. set writes the match into the task tool's fields,
// and returns false for an impossible time.
var when = []struct {
	pattern string
	set     func(m []string, args map[string]any) bool
}{
	{`every\s+(?:(\d+)\s+)?(minutes?|hours?)`, func(m []string, args map[string]any) bool {
		n, unit := 1, 60
		if m[1] != "" {
			n, _ = strconv.Atoi(m[1]) // overflow gives a number that the tool refuses
		}
		if strings.HasPrefix(m[2], "h") {
			unit = 3600
		}
		args["schedule_type"], args["interval_seconds"] = "interval", n*unit
		return n > 0 && n < 100000
	}},
	{`(?:every|each)\s+(?:day|morning)` + atPat, daily},
	{`daily` + atPat, daily},
	{`every\s+(` + dayPat + `)s?` + atPat, func(m []string, args map[string]any) bool {
		args["schedule_type"], args["day_of_week"] = "weekly", m[1][:3]
		return setAt(args, m[2], "")
	}},
	{`every\s+month\s+on\s+the\s+(\d{1,2})(?:st|nd|rd|th)?` + atPat, func(m []string, args map[string]any) bool {
		day, _ := strconv.Atoi(m[1])
		args["schedule_type"], args["day_of_month"] = "monthly", day
		return day >= 1 && day <= 31 && setAt(args, m[2], "")
	}},
	{`in\s+(\d{1,4}|an?)\s+(second|minute|hour|day)s?`, func(m []string, args map[string]any) bool {
		n := m[1]
		if n[0] == 'a' {
			n = "1"
		}
		args["schedule_type"], args["at"] = "once", fmt.Sprintf("in %s %ss", n, m[2])
		return true
	}},
	{`tomorrow(?:\s+morning)?` + atPat, func(m []string, args map[string]any) bool {
		args["schedule_type"] = "once"
		return setAt(args, m[1], "tomorrow ")
	}},
	{`on\s+(\d{4}-\d{2}-\d{2})` + atPat, func(m []string, args map[string]any) bool {
		args["schedule_type"] = "once"
		return setAt(args, m[2], m[1]+" ")
	}},
	{`(?:today\s+)?at\s+(` + clockPat + `)`, func(m []string, args map[string]any) bool {
		args["schedule_type"] = "once"
		return setAt(args, m[1], "")
	}},
}

func daily(m []string, args map[string]any) bool {
	args["schedule_type"] = "daily"
	return setAt(args, m[1], "")
}

// setAt sets the time of day, by default nine in the morning.
func setAt(args map[string]any, said, before string) bool {
	clock, ok := "09:00", true
	if said != "" {
		clock, ok = clockTime(said)
	}
	args["at"] = before + clock
	return ok
}

// clockTime converts "6pm", "18", "9:05 am" or "noon" to "18:00" and the like.
func clockTime(s string) (string, bool) {
	s = strings.NewReplacer(" ", "", ".", "", "o'clock", "").Replace(s)
	switch s {
	case "noon":
		return "12:00", true
	case "midnight":
		return "00:00", true
	}
	half := ""
	if strings.HasSuffix(s, "m") {
		s, half = s[:len(s)-2], s[len(s)-2:]
	}
	hour, minute, _ := strings.Cut(s, ":")
	h, _ := strconv.Atoi(hour) // at most two digits each
	m, _ := strconv.Atoi(minute)
	if half != "" && (h < 1 || h > 12) || h > 23 || m > 59 {
		return "", false
	}
	if half != "" {
		h %= 12
	}
	if half == "pm" {
		h += 12
	}
	return fmt.Sprintf("%02d:%02d", h, m), true
}

// whenRE has two expressions for each row of when: the time before the task, and after it. It is
// compiled on first use.
var whenRE = sync.OnceValue(func() (res [][2]*regexp.Regexp) {
	for _, w := range when {
		res = append(res, [2]*regexp.Regexp{
			regexp.MustCompile(`(?is)^` + w.pattern + `,?\s+(?:to|that|about)\s+(?P<do>.+)$`),
			regexp.MustCompile(`(?is)^(?:(?:to|that|about)\s+)?(?P<do>.+?),?\s+` + w.pattern + `$`),
		})
	}
	return res
})

// schedule extracts the time of a reminder into args and returns the rest. An unknown time stays in
// the text.
func schedule(s string, args map[string]any) (content string) {
	for i, both := range whenRE() {
		for _, re := range both {
			m := re.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			at, set := re.SubexpIndex("do"), map[string]any{}
			content = m[at]
			if when[i].set(lower(slices.Delete(m, at, at+1)), set) {
				maps.Copy(args, set)
				return content
			}
		}
	}
	for _, p := range []string{"to ", "that ", "about "} {
		if strings.HasPrefix(strings.ToLower(s), p) {
			return s[len(p):]
		}
	}
	return s
}

func lower(m []string) []string {
	out := make([]string, len(m))
	for i, s := range m {
		out[i] = strings.ToLower(s)
	}
	return out
}
