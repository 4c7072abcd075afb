package task

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Words that a phrase may contain. They are English: the model translates.
var (
	dayParts = map[string][2]int{"": {0, 23}, "am": {0, 11}, "pm": {12, 23}, "morning": {3, 11}, "afternoon": {12, 18},
		"evening": {16, 23}, "night": {20, 23}} // part of the day → first and last hour
	numberWords = map[string]int{"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
		"eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30}
	unitSeconds = map[string]int{"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400} // by first letter
)

// phraseForm is a pattern for a time; re must match the whole phrase.
type phraseForm struct {
	kind string // in, every, today, tomorrow, after_tomorrow, on_day, daily, workdays, weekly or monthly
	re   *regexp.Regexp
}

var phraseForms = sync.OnceValue(func() (all []phraseForm) {
	var numbers []string
	for word := range numberWords {
		numbers = append(numbers, word)
	}
	replace := strings.NewReplacer(
		"{n}", `(?P<n>[0-9]{1,6}|`+strings.Join(numbers, "|")+`)`,
		"{unit}", `(?P<unit>secs?|seconds?|mins?|minutes?|h|hours?|days?|weeks?)`,
		"{day}", `(?P<day>mon|tue|wed|thu|fri|sat|sun)(?:day|sday|nesday|rsday|urday)?`,
		"{pre}", `(?: (?P<pre>morning|afternoon|evening|night))`,
		"{at}", `(?:at )?(?:(?P<fix>midnight|noon)|(?P<half>half past )?(?P<h>[0-9]{1,2}|`+strings.Join(numbers, "|")+
			`)(?:[:.](?P<m>[0-9]{2}))?(?: o'clock)?(?: ?(?P<part>a\.?m\.?|p\.?m\.?|in the (?:morning|afternoon|evening)|at night))?)`)
	for _, f := range []struct{ means, patterns string }{
		{"in", `in {n} {unit}; {n} {unit} from now; in (?P<halved>half an hour)`},
		{"every", `every {n} {unit}; every {unit}; (?P<unit>hour)ly; every (?P<halved>half hour)`},
		{"today", `today {at}; {at} today; this{pre} {at}; to(?P<pre>night) {at}`},
		{"tomorrow", `tomorrow{pre}? {at}; {at} tomorrow{pre}?`},
		{"after_tomorrow", `(?:the )?day after tomorrow {at}`},
		{"on_day", `(?:on )?{day}{pre}? {at}; {at} on {day}`},
		{"daily", `(?:every day|daily|each day|every{pre}) {at}; {at} (?:every day|daily|each day)`},
		{"workdays", `(?:on weekdays|every weekday|on workdays|every workday) {at}; {at} (?:on weekdays|every weekday)`},
		{"weekly", `(?:every|each) {day}{pre}? {at}; {at} (?:every|each) {day}; on {day}s {at}`},
		{"monthly", `(?:every month|monthly) on (?:the |day )?{date} {at}; on the {date} of (?:every|each) month {at}`},
	} {
		for p := range strings.SplitSeq(f.patterns, "; ") {
			p = strings.ReplaceAll(p, "{date}", `(?P<dom>[0-9]{1,2})(?:st|nd|rd|th)?`)
			all = append(all, phraseForm{f.means, regexp.MustCompile(`^` + replace.Replace(p) + `$`)})
		}
	}
	return all
})

// parsePhrase parses an English phrase such as "tomorrow at 7" into a validated schedule. A phrase
// that is not fully understood is an error with examples.
func parsePhrase(text string, now time.Time, loc *time.Location) (Schedule, error) {
	normalized := strings.Join(strings.Fields(strings.NewReplacer("’", "'", ",", " ").Replace(strings.ToLower(text))), " ")
	if normalized = strings.Trim(normalized, " .!"); len(normalized) > 200 {
		normalized, text = "", "so much text"
	}
	for _, f := range phraseForms() {
		m := f.re.FindStringSubmatch(normalized)
		if m == nil {
			continue
		}
		groups := map[string]string{}
		for i, name := range f.re.SubexpNames() {
			if m[i] != "" {
				groups[name] = m[i]
			}
		}
		s, err := phraseSchedule(f.kind, groups, now.In(loc))
		if err != nil {
			return Schedule{}, fmt.Errorf("at %q: %w", text, err)
		}
		return s.Validate(now, loc)
	}
	return Schedule{}, fmt.Errorf(`at %q is not understood: write a moment, for example %s; or, without schedule_type, `+
		`a phrase in English that says all, such as "tomorrow at 7" or "every Monday at 9"`, text, rules[once].example)
}

// phraseSchedule builds the schedule of a matched phrase.
func phraseSchedule(kind string, groups map[string]string, now time.Time) (Schedule, error) {
	if kind == "in" || kind == "every" {
		return durationSchedule(kind, groups, now)
	}
	at, err := phraseClock(groups)
	if err != nil {
		return Schedule{}, err
	}
	clock := fmt.Sprintf("%02d:%02d", at/60, at%60)
	day := groups["day"]
	switch kind {
	case "daily":
		return Schedule{Type: daily, At: clock}, nil
	case "workdays":
		return Schedule{Type: byCron, Expression: fmt.Sprintf("%d %d * * mon-fri", at%60, at/60)}, nil
	case "weekly":
		return Schedule{Type: weekly, DayOfWeek: day, At: clock}, nil
	case "monthly":
		return Schedule{Type: monthly, DayOfMonth: parseNumber(groups["dom"]), At: clock}, nil
	case "tomorrow":
		now = now.AddDate(0, 0, 1)
	case "after_tomorrow":
		now = now.AddDate(0, 0, 2)
	case "on_day":
		ahead := (slices.Index(weekdays, day) + 1 - int(now.Weekday()) + 7) % 7
		then, err := timeOn(now.AddDate(0, 0, ahead), clock)
		if err == nil && !then.After(now) {
			then, err = timeOn(now.AddDate(0, 0, ahead+7), clock)
		}
		return Schedule{Type: once, At: then.Format(time.RFC3339)}, err
	}
	then, err := timeOn(now, clock)
	return Schedule{Type: once, At: then.Format(time.RFC3339)}, err
}

// durationSchedule builds the schedule of "in 20 minutes" or "every 20 minutes".
func durationSchedule(kind string, groups map[string]string, now time.Time) (Schedule, error) {
	n, size := 1, 30*60
	if groups["halved"] == "" {
		size = unitSeconds[groups["unit"][:1]]
	}
	if groups["n"] != "" {
		if n = parseNumber(groups["n"]); n == 0 {
			return Schedule{}, errors.New("give a number above 0")
		}
	}
	switch {
	case kind == "every":
		return Schedule{Type: interval, IntervalSeconds: n * size}, nil
	case size%86400 == 0: // calendar days, also across clock changes
		then := now.AddDate(0, 0, min(n*(size/86400), 366*(maxYears+1)))
		return Schedule{Type: once, At: then.Format(time.RFC3339)}, nil
	}
	return Schedule{Type: once, At: now.Add(time.Duration(n*size) * time.Second).Format(time.RFC3339)}, nil
}

// parseNumber parses digits or a number word.
func parseNumber(text string) int {
	if n, ok := numberWords[text]; ok {
		return n
	}
	n, _ := strconv.Atoi(text) // the pattern matched digits
	return n
}

// fromPhrase returns the schedule of s whose At holds a whole phrase.
func (s Schedule) fromPhrase(now time.Time, loc *time.Location) (Schedule, error) {
	var err error
	if s.Zone, err = normalizeZone(s.Zone); err != nil {
		return s, err
	}
	if s != (Schedule{At: s.At, Zone: s.Zone}) || clockPattern().MatchString(s.At) {
		return s, errors.New(`schedule_type is missing: say once, daily, weekly, monthly, interval or cron`)
	}
	read, err := parsePhrase(s.At, now, s.location(loc))
	read.Zone = s.Zone
	return read, err
}

func parseOncePhrase(text string, now time.Time) (time.Time, error) {
	s, err := parsePhrase(text, now, now.Location())
	if err != nil {
		return time.Time{}, err
	}
	if s.Type != once {
		return time.Time{}, fmt.Errorf("at %q comes again and again: it is %s, so leave schedule_type out, or set its arguments", text, s)
	}
	return time.Parse(time.RFC3339, s.At)
}

// phraseClock returns the time of day in minutes. A time that does not fit its part of the day is an error.
func phraseClock(groups map[string]string) (int, error) {
	switch groups["fix"] {
	case "midnight":
		return 0, nil
	case "noon":
		return 12 * 60, nil
	}
	h, m := parseNumber(groups["h"]), parseNumber(groups["m"])
	if groups["half"] != "" {
		m = 30
	}
	if h > 23 || m > 59 {
		return 0, fmt.Errorf("%d:%02d is no time of day: write HH:MM (24 hours)", h, m)
	}
	part := strings.NewReplacer(".", "", "in the ", "", "at ", "").Replace(groups["part"])
	for _, part := range []string{groups["pre"], part} {
		hours := dayParts[part]
		if part == "am" && h == 12 {
			h = 0
		} else if h < hours[0] && h > 0 && h < 12 {
			h += 12
		}
		if h < hours[0] || h > hours[1] {
			return 0, fmt.Errorf("%d o'clock is not in the %s: write HH:MM (24 hours)", h%24, part)
		}
	}
	return h*60 + m, nil
}
