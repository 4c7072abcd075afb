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

	"reverie/internal/text"

	nfkc "golang.org/x/text/unicode/norm"
)

// tongue is how one language speaks of times, from the lists "when…" in data/words.
type tongue struct {
	name     string
	pre      map[string]string // parts of the day that stand before the time, such as "morning"
	parts    map[string]string // … and behind it or in it
	fixed    map[string]string // words that are a time: noon
	numbers  map[string]int
	units    map[string]int    // seconds
	weekdays map[string]string // to mon … sun
	forms    []phraseForm
}

// phraseForm is a way to say when; re must match all of a phrase.
type phraseForm struct {
	means string // in, today, tomorrow, after_tomorrow, on_day, daily, workdays, weekly, monthly or every
	re    *regexp.Regexp
}

var unitSeconds = map[string]int{"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 7 * 86400}

var tongues = sync.OnceValue(func() []*tongue {
	var all []*tongue
	for _, language := range text.Languages() {
		forms := text.Words(language, "when")
		if len(forms) == 0 {
			continue
		}
		t := &tongue{name: language, pre: text.Pairs(language, "when_before"), parts: text.Pairs(language, "when_part"),
			fixed: text.Pairs(language, "when_fixed"), weekdays: text.Pairs(language, "when_weekday"),
			numbers: map[string]int{}, units: map[string]int{}}
		for word, n := range text.Pairs(language, "when_number") {
			t.numbers[word], _ = strconv.Atoi(n)
		}
		for word, unit := range text.Pairs(language, "when_unit") {
			t.units[word] = unitSeconds[unit]
		}
		replace := strings.NewReplacer(
			"{n}", `(?P<n>[0-9]{1,6}`+orOne(t.numbers)+`)`, "{unit}", `(?P<unit>`+oneOf(t.units)+`)`,
			"{day}", `(?P<day>`+oneOf(t.weekdays)+`)`,
			"{date}", strings.Join(text.Words(language, "when_date"), ""), "{pre}", `(?P<pre>`+oneOf(t.pre)+`)`,
			"{at}", strings.NewReplacer("{part}", `(?P<part>`+oneOf(t.parts)+`)`, "{fix}", `(?P<fix>`+oneOf(t.fixed)+`)`,
				"{h}", `(?P<h>[0-9]{1,2}`+orOne(t.numbers)+`)`, "{m}", `(?P<m>[0-9]{2})`).
				Replace(strings.Join(text.Words(language, "when_clock"), "")),
		)
		for _, f := range forms {
			means, pattern, _ := strings.Cut(f, "=")
			t.forms = append(t.forms, phraseForm{means, regexp.MustCompile(`^(?:` + replace.Replace(pattern) + `)$`)})
		}
		all = append(all, t)
	}
	return all
})

// oneOf is an expression for one of the words, the longest first.
func oneOf[V any](words map[string]V) string {
	var all []string
	for w := range words {
		all = append(all, regexp.QuoteMeta(w))
	}
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return strings.Join(all, "|")
}

func orOne(words map[string]int) string {
	if len(words) == 0 {
		return ""
	}
	return "|" + oneOf(words)
}

// readPhrase reads when something is to be done, in the words of one of seven languages:
// "tomorrow at 7", "jeden Montag um 9", "20分後". The schedule is in its final form.
// All of the text must be understood; what is not is an error with examples.
func readPhrase(text string, now time.Time, loc *time.Location) (Schedule, error) {
	return phraseIn(tongues(), text, now, loc)
}

func phraseIn(tongues []*tongue, text string, now time.Time, loc *time.Location) (Schedule, error) {
	plain := plainly(text)
	if len(plain) > 200 {
		return Schedule{}, notUnderstood("so much text")
	}
	var wrong error
	for _, t := range tongues {
		for _, f := range t.forms {
			m := f.re.FindStringSubmatch(plain)
			if m == nil {
				continue
			}
			said := map[string]string{}
			for i, name := range f.re.SubexpNames() {
				if name != "" && m[i] != "" {
					said[name] = m[i]
				}
			}
			s, err := t.schedule(f.means, said, now.In(loc))
			if err == nil {
				return s.Validate(now, loc)
			}
			wrong = err
		}
	}
	if wrong != nil {
		return Schedule{}, fmt.Errorf("at %q: %w", text, wrong)
	}
	return Schedule{}, notUnderstood(text)
}

// plainly folds case, width, white space and the marks that end a sentence.
func plainly(text string) string {
	text = strings.ToLower(nfkc.NFKC.String(text))
	text = strings.NewReplacer("’", "'", ",", " ", "、", " ", "。", " ").Replace(text)
	return strings.Trim(strings.Join(strings.Fields(text), " "), " .!")
}

// phraseError is of words that say no time. Its text tells the model what to write.
type phraseError struct{ Words string }

func (e *phraseError) Error() string {
	return fmt.Sprintf(`at %q is not understood: write a moment, for example %s; or, without schedule_type, `+
		`a phrase that says all, such as "tomorrow at 7" or "every Monday at 9"`, e.Words, rules[once].example)
}

func notUnderstood(text string) error { return &phraseError{text} }

// schedule makes what was said a schedule.
func (t *tongue) schedule(meant string, said map[string]string, now time.Time) (Schedule, error) {
	if meant == "in" || meant == "every" {
		return t.span(meant, said, now)
	}
	at, err := t.clock(said)
	if err != nil {
		return Schedule{}, err
	}
	clock := fmt.Sprintf("%02d:%02d", at/60, at%60)
	day := t.weekdays[said["day"]]
	switch meant {
	case "daily":
		return Schedule{Type: daily, At: clock}, nil
	case "workdays":
		return Schedule{Type: byCron, Expression: fmt.Sprintf("%d %d * * mon-fri", at%60, at/60)}, nil
	case "weekly":
		return Schedule{Type: weekly, DayOfWeek: day, At: clock}, nil
	case "monthly":
		dom, err := t.number(said["dom"])
		if err != nil || dom < 1 || dom > 31 {
			return Schedule{}, fmt.Errorf("%s is no day of a month", said["dom"])
		}
		return Schedule{Type: monthly, DayOfMonth: dom, At: clock}, nil
	case "tomorrow":
		now = now.AddDate(0, 0, 1)
	case "after_tomorrow":
		now = now.AddDate(0, 0, 2)
	case "on_day":
		ahead := (slices.Index(days, day) + 1 - int(now.Weekday()) + 7) % 7
		then, err := timeOn(now.AddDate(0, 0, ahead), clock)
		if err == nil && !then.After(now) {
			then, err = timeOn(now.AddDate(0, 0, ahead+7), clock)
		}
		return Schedule{Type: once, At: then.Format(time.RFC3339)}, err
	}
	then, err := timeOn(now, clock)
	return Schedule{Type: once, At: then.Format(time.RFC3339)}, err
}

// span is "in 20 minutes", or "every 20 minutes".
func (t *tongue) span(meant string, said map[string]string, now time.Time) (Schedule, error) {
	n := 1
	if said["n"] != "" {
		var err error
		if n, err = t.number(said["n"]); err != nil || n == 0 {
			return Schedule{}, errors.New("give a number above 0")
		}
	}
	size := t.units[said["unit"]]
	if said["halved"] != "" {
		n, size = 1, 30*60
	}
	switch {
	case meant == "every":
		return Schedule{Type: interval, IntervalSeconds: n * size}, nil
	case size%86400 == 0: // a day of the calendar, whatever its length
		then := now.AddDate(0, 0, min(n*(size/86400), 366*(maxYears+1)))
		return Schedule{Type: once, At: then.Format(time.RFC3339)}, nil
	}
	return Schedule{Type: once, At: now.Add(time.Duration(n*size) * time.Second).Format(time.RFC3339)}, nil
}

func (t *tongue) number(text string) (int, error) {
	if n, ok := t.numbers[text]; ok {
		return n, nil
	}
	return strconv.Atoi(text)
}

// phrase is s whose At says all in words.
func (s Schedule) phrase(now time.Time, loc *time.Location) (Schedule, error) {
	var err error
	if s.Zone, err = zone(s.Zone); err != nil {
		return s, err
	}
	if s != (Schedule{At: s.At, Zone: s.Zone}) || clockForm.MatchString(s.At) {
		return s, errors.New(`schedule_type is missing: say once, daily, weekly, monthly, interval or cron`)
	}
	read, err := readPhrase(s.At, now, s.in(loc))
	read.Zone = s.Zone
	return read, err
}

// momentOf reads the phrase of a once schedule.
func momentOf(text string, now time.Time) (time.Time, error) {
	s, err := readPhrase(text, now, now.Location())
	if err != nil {
		return time.Time{}, err
	}
	if s.Type != once {
		return time.Time{}, fmt.Errorf("at %q comes again and again: it is %s, so leave schedule_type out, or set its arguments", text, s)
	}
	return time.Parse(time.RFC3339, s.At)
}

// clock is the time of day, in minutes.
func (t *tongue) clock(said map[string]string) (int, error) {
	if fix := said["fix"]; fix != "" {
		return parseClock(t.fixed[fix])
	}
	h, err := t.number(said["h"])
	if err != nil {
		return 0, err
	}
	m := 0
	switch {
	case said["m"]+said["m2"] != "":
		if m, err = t.number(said["m"] + said["m2"]); err != nil {
			return 0, err
		}
	case said["half"] != "":
		m = 30
	case said["quarter"] != "":
		m = 15
	}
	if h > 23 || m > 59 {
		return 0, fmt.Errorf("%d:%02d is no time of day: write HH:MM (24 hours)", h, m)
	}
	for _, part := range []string{t.pre[said["pre"]], t.parts[said["part"]]} {
		if h, err = within(h, part); err != nil {
			return 0, err
		}
	}
	at := h*60 + m
	if said["halb"] != "" { // half an hour before
		at = (at + 24*60 - 30) % (24 * 60)
	}
	return at, nil
}

// within is the hour h of a part of the day. What fits only with a guess is an error.
func within(h int, part string) (int, error) {
	from, to := map[string][2]int{"am": {0, 11}, "pm": {12, 23}, "dawn": {0, 5}, "morning": {3, 11}, "noon": {11, 14},
		"afternoon": {12, 18}, "evening": {16, 23}, "night": {20, 23}, "": {0, 23}}[part], 0
	to = from[1]
	if part == "am" && h == 12 {
		h = 0
	} else if h < from[0] && h > 0 && h < 12 {
		h += 12
	}
	if h < from[0] || h > to {
		return 0, fmt.Errorf("%d o'clock is not in the %s: write HH:MM (24 hours)", h%24, part)
	}
	return h, nil
}
