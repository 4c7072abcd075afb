package task

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"reverie/internal/i18n"
)

// Schedule says when a task falls due. Type decides which fields belong to it. After Validate, At is
// RFC 3339 with its zone for "once", and HH:MM in the configured zone for the others.
type Schedule struct {
	Type            string `json:"schedule_type"`              // once, daily, weekly, monthly, interval or cron
	At              string `json:"at,omitempty"`               // when, or at which time of day
	DayOfWeek       string `json:"day_of_week,omitempty"`      // mon to sun
	DayOfMonth      int    `json:"day_of_month,omitempty"`     // 1 to 31; a shorter month has no such day
	IntervalSeconds int    `json:"interval_seconds,omitempty"` // 60 or more
	WindowStart     string `json:"window_start,omitempty"`     // HH:MM; for interval: only from then …
	WindowEnd       string `json:"window_end,omitempty"`       // … until then, perhaps past midnight
	Expression      string `json:"cron,omitempty"`             // minute, hour, day of month, month, day of week
	Zone            string `json:"zone,omitempty"`             // such as Europe/Berlin; empty: the configured one
}

const (
	once     = "once"
	daily    = "daily"
	weekly   = "weekly"
	monthly  = "monthly"
	interval = "interval"
	byCron   = "cron"
)

var days = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// A reminder more often than this is a flood, and one further off a mistake.
const (
	minInterval = 60
	maxInterval = 366 * 24 * 60 * 60
	maxYears    = 10
)

// Validate checks the schedule and returns it in its final form, which comes back as it is; times
// without a zone are in loc. Whatever is missing, superfluous or not understood is an error with an
// example, never a guess. Without a Type, At says all in words, as readPhrase reads them.
func (s Schedule) Validate(now time.Time, loc *time.Location) (Schedule, error) {
	s.Type = norm(s.Type)
	s.At = strings.TrimSpace(s.At)
	s.DayOfWeek = norm(s.DayOfWeek)
	s.WindowStart, s.WindowEnd = strings.TrimSpace(s.WindowStart), strings.TrimSpace(s.WindowEnd)
	if s.Type == "" && s.At != "" {
		return s.phrase(now, loc)
	}
	rule, ok := rules[s.Type]
	if !ok {
		return s, fmt.Errorf("schedule_type %q is not known: use once, daily, weekly, monthly, interval or cron, "+
			`for example {"schedule_type": "daily", "at": "09:00"}`, s.Type)
	}
	if err := s.onlyFields(rule); err != nil {
		return s, err
	}
	var err error
	if s.Zone, err = zone(s.Zone); err != nil {
		return s, err
	}
	switch s.Type {
	case once:
		s.At, err = parseOnce(s.At, now, s.in(loc))
	case interval:
		err = s.validInterval()
	case byCron:
		err = s.validCron(now)
	default:
		s.At, err = clock("at", s.At, rule.example)
		if err == nil && s.Type == weekly {
			s.DayOfWeek, err = weekday(s.DayOfWeek)
		}
		if err == nil && s.Type == monthly && (s.DayOfMonth < 1 || s.DayOfMonth > 31) {
			err = fmt.Errorf("day_of_month must be a whole number from 1 to 31, not %d, for example %s", s.DayOfMonth, rule.example)
		}
	}
	return s, err
}

// zone reads the name of a time zone. "Local" is the zone of whichever machine
// this runs on, so it says nothing.
func zone(name string) (string, error) {
	name = strings.TrimSpace(name)
	if name == "" {
		return "", nil
	}
	loc, err := time.LoadLocation(name)
	if err != nil || loc == time.Local {
		return "", fmt.Errorf("zone %q is not known: use a name such as Europe/Berlin, or leave it out for the usual one", name)
	}
	return loc.String(), nil
}

// validCron checks the expression, and that its time ever comes.
func (s *Schedule) validCron(now time.Time) error {
	s.Expression = strings.ToLower(strings.Join(strings.Fields(s.Expression), " "))
	example := rules[byCron].example
	if s.Expression == "" {
		return fmt.Errorf("cron is missing: give minute, hour, day of month, month and day of week, for example %s", example)
	}
	e, err := parseCron(s.Expression)
	if err != nil {
		return fmt.Errorf("cron %q: %w; for example %s", s.Expression, err, example)
	}
	if _, ok := nextCron(e, now.UTC()); !ok {
		return fmt.Errorf("cron %q never falls due: there is no such day, for example %s", s.Expression, example)
	}
	return nil
}

func norm(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// rule says which fields a type has, with an example to learn from.
type rule struct {
	fields  []string
	example string
}

var rules = map[string]rule{
	once: {[]string{"at"}, `{"schedule_type": "once", "at": "2027-03-14 09:00"}; ` +
		`at may also be "18:30", "tomorrow 09:00" or "in 20 minutes"`},
	daily:   {[]string{"at"}, `{"schedule_type": "daily", "at": "09:00"}`},
	weekly:  {[]string{"at", "day_of_week"}, `{"schedule_type": "weekly", "day_of_week": "mon", "at": "09:00"}`},
	monthly: {[]string{"at", "day_of_month"}, `{"schedule_type": "monthly", "day_of_month": 1, "at": "09:00"}`},
	interval: {[]string{"interval_seconds", "window_start", "window_end"},
		`{"schedule_type": "interval", "interval_seconds": 3600, "window_start": "08:00", "window_end": "20:00"}`},
	byCron: {[]string{"cron"}, `{"schedule_type": "cron", "cron": "30 7 * * mon-fri"}`},
}

// onlyFields refuses a field that the type has no use for: to drop it silently
// would promise something that never happens.
func (s Schedule) onlyFields(r rule) error {
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"at", s.At != ""},
		{"day_of_week", s.DayOfWeek != ""},
		{"day_of_month", s.DayOfMonth != 0},
		{"interval_seconds", s.IntervalSeconds != 0},
		{"window_start", s.WindowStart != ""},
		{"window_end", s.WindowEnd != ""},
		{"cron", s.Expression != ""},
	} {
		if f.set && !slices.Contains(r.fields, f.name) {
			return fmt.Errorf("%s does not go with schedule_type %q, which takes %s: leave it out, for example %s",
				f.name, s.Type, strings.Join(r.fields, ", "), r.example)
		}
	}
	return nil
}

func (s *Schedule) validInterval() error {
	example := rules[interval].example
	if s.IntervalSeconds < minInterval || s.IntervalSeconds > maxInterval {
		return fmt.Errorf("interval_seconds must be a whole number from %d to %d, not %d, for example %s",
			minInterval, maxInterval, s.IntervalSeconds, example)
	}
	if s.WindowStart == "" && s.WindowEnd == "" {
		return nil
	}
	if s.WindowStart == "" || s.WindowEnd == "" {
		return fmt.Errorf("window_start and window_end belong together: give both or none, for example %s", example)
	}
	var err error
	if s.WindowStart, err = clock("window_start", s.WindowStart, example); err != nil {
		return err
	}
	if s.WindowEnd, err = clock("window_end", s.WindowEnd, example); err != nil {
		return err
	}
	if s.IntervalSeconds >= 24*60*60 {
		return fmt.Errorf("window_start and window_end go with intervals shorter than a day: leave them out, for example %s",
			rules[daily].example)
	}
	if s.WindowStart == s.WindowEnd {
		return fmt.Errorf("window_start and window_end are both %s, which leaves no time: "+
			"make them differ, or leave both out, for example %s", s.WindowStart, example)
	}
	return nil
}

var clockForm = regexp.MustCompile(`^([01]?[0-9]|2[0-3]):([0-5][0-9])$`)

// clock reads a time of day and nothing else: "7am" or "18.30" is an error, not
// nine o'clock.
func clock(field, text, example string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("%s is missing: give a time of day as HH:MM (24 hours), for example %s", field, example)
	}
	m := clockForm.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s %q is not a time of day: write HH:MM (24 hours), for example %s", field, text, example)
	}
	return fmt.Sprintf("%02s:%s", m[1], m[2]), nil
}

func weekday(text string) (string, error) {
	for i, d := range days {
		if text == d || text == norm(fullDay(i)) {
			return d, nil
		}
	}
	if text == "" {
		return "", fmt.Errorf("day_of_week is missing: use one of %s, for example %s", strings.Join(days, ", "), rules[weekly].example)
	}
	return "", fmt.Errorf("day_of_week %q is not known: use one of %s, for example %s",
		text, strings.Join(days, ", "), rules[weekly].example)
}

// fullDay is the name of days[i].
func fullDay(i int) string { return time.Weekday((i + 1) % 7).String() }

// String is the schedule in English: "daily at 09:00".
func (s Schedule) String() string { return s.said(i18n.English) }

// localForms are moments without a zone.
var localForms = []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"}

// parseOnce reads the one moment of a once schedule, in the future, and returns
// it as RFC 3339.
func parseOnce(text string, now time.Time, loc *time.Location) (string, error) {
	if text == "" {
		return "", fmt.Errorf("at is missing: say when, for example %s", rules[once].example)
	}
	t, err := moment(text, now.In(loc))
	if err != nil {
		return "", err
	}
	t = t.Truncate(time.Second)
	switch here := now.In(loc).Format("Mon 2006-01-02 15:04 MST"); {
	case !t.After(now):
		return "", fmt.Errorf("at %q is in the past: it is %s now; give a later time", text, here)
	case t.After(now.AddDate(maxYears, 0, 0)):
		return "", fmt.Errorf("at %q is more than %d years away: it is %s now; give an earlier time", text, maxYears, here)
	}
	return t.Format(time.RFC3339), nil
}

// moment reads text as it is meant at now, in now's zone.
func moment(text string, now time.Time) (time.Time, error) {
	// Upper case first: RFC 3339 knows "T" and "Z" only.
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(text)); err == nil {
		return t, nil
	}
	for _, form := range localForms {
		if _, err := time.Parse(form, strings.ToUpper(text)); err == nil {
			return local(form, strings.ToUpper(text), now.Location())
		}
	}
	words := norm(strings.Join(strings.Fields(text), " "))
	if clockForm.MatchString(words) {
		t, err := timeOn(now, words)
		if err == nil && !t.After(now) {
			t, err = timeOn(now.AddDate(0, 0, 1), words)
		}
		return t, err
	}
	return momentOf(text, now)
}

// timeOn is the time of day text on the day of d.
func timeOn(d time.Time, text string) (time.Time, error) {
	hhmm, err := clock("at", text, rules[once].example)
	if err != nil {
		return time.Time{}, err
	}
	return local("2006-01-02 15:04", d.Format("2006-01-02 ")+hhmm, d.Location())
}

// local reads text in loc. The hour that is left out when clocks go forward is
// an error: Go would pick another time without a word.
func local(form, text string, loc *time.Location) (time.Time, error) {
	t, err := time.ParseInLocation(form, text, loc)
	if err != nil {
		return t, fmt.Errorf("at %q: %w", text, err)
	}
	if t.Format(form) != text {
		return t, fmt.Errorf("at %q does not exist in %s, because clocks go forward then: give another time, for example %s",
			text, loc, t.Add(time.Hour).Format("2006-01-02 15:04"))
	}
	return t, nil
}
