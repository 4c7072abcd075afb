package task

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
)

// Schedule says when a task falls due. Type decides which fields are used. After Validate, At is
// RFC 3339 with zone for "once", and HH:MM in the schedule's zone otherwise.
type Schedule struct {
	Type            string `json:"schedule_type"`              // once, daily, weekly, monthly, interval or cron
	At              string `json:"at,omitempty"`               // a moment or a time of day
	DayOfWeek       string `json:"day_of_week,omitempty"`      // mon to sun
	DayOfMonth      int    `json:"day_of_month,omitempty"`     // 1 to 31; shorter months are skipped
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

var weekdays = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}

// Bounds in seconds and years: shorter intervals flood the room, later dates are mistakes.
const (
	minInterval = 60
	maxInterval = 366 * 24 * 60 * 60
	maxYears    = 10
)

// Validate checks the schedule and returns it normalised; it is idempotent. Times without a zone
// are in loc. A missing, superfluous or unknown value is an error with an example. Without a Type,
// At is a phrase for parsePhrase.
func (s Schedule) Validate(now time.Time, loc *time.Location) (Schedule, error) {
	s.Type = trimLower(s.Type)
	s.At = strings.TrimSpace(s.At)
	s.DayOfWeek = trimLower(s.DayOfWeek)
	s.WindowStart, s.WindowEnd = strings.TrimSpace(s.WindowStart), strings.TrimSpace(s.WindowEnd)
	if s.Type == "" && s.At != "" {
		return s.fromPhrase(now, loc)
	}
	rule, ok := rules[s.Type]
	if !ok {
		return s, fmt.Errorf("schedule_type %q is not known: use once, daily, weekly, monthly, interval or cron, "+
			`for example {"schedule_type": "daily", "at": "09:00"}`, s.Type)
	}
	if err := s.checkFields(rule); err != nil {
		return s, err
	}
	var err error
	if s.Zone, err = normalizeZone(s.Zone); err != nil {
		return s, err
	}
	switch s.Type {
	case once:
		s.At, err = parseOnce(s.At, now, s.location(loc))
	case interval:
		err = s.checkInterval()
	case byCron:
		err = s.checkCron(now)
	default:
		s.At, err = normalizeClock("at", s.At, rule.example)
		if err == nil && s.Type == weekly {
			s.DayOfWeek, err = normalizeWeekday(s.DayOfWeek)
		}
		if err == nil && s.Type == monthly && (s.DayOfMonth < 1 || s.DayOfMonth > 31) {
			err = fmt.Errorf("day_of_month must be a whole number from 1 to 31, not %d, for example %s", s.DayOfMonth, rule.example)
		}
	}
	return s, err
}

// normalizeZone checks the name of a time zone. "Local" is refused: it depends on the machine.
func normalizeZone(name string) (string, error) {
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

// checkCron checks that the expression parses and falls due at some time.
func (s *Schedule) checkCron(now time.Time) error {
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

func trimLower(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// rule lists the fields of a schedule type, with an example.
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

// checkFields refuses fields that the type does not use. Dropping them would change the meaning.
func (s Schedule) checkFields(r rule) error {
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

func (s *Schedule) checkInterval() error {
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
	if s.WindowStart, err = normalizeClock("window_start", s.WindowStart, example); err != nil {
		return err
	}
	if s.WindowEnd, err = normalizeClock("window_end", s.WindowEnd, example); err != nil {
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

var clockPattern = lazyregexp.New(`^([01]?[0-9]|2[0-3]):([0-5][0-9])$`)

// normalizeClock returns a time of day as HH:MM. Other forms, as "7am" or "18.30", are errors.
func normalizeClock(field, text, example string) (string, error) {
	if text == "" {
		return "", fmt.Errorf("%s is missing: give a time of day as HH:MM (24 hours), for example %s", field, example)
	}
	m := clockPattern().FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s %q is not a time of day: write HH:MM (24 hours), for example %s", field, text, example)
	}
	return fmt.Sprintf("%02s:%s", m[1], m[2]), nil
}

func normalizeWeekday(text string) (string, error) {
	for i, d := range weekdays {
		if text == d || text == trimLower(weekdayName(i)) {
			return d, nil
		}
	}
	if text == "" {
		return "", fmt.Errorf("day_of_week is missing: use one of %s, for example %s", strings.Join(weekdays, ", "), rules[weekly].example)
	}
	return "", fmt.Errorf("day_of_week %q is not known: use one of %s, for example %s",
		text, strings.Join(weekdays, ", "), rules[weekly].example)
}

// weekdayName returns the full name of weekdays[i].
func weekdayName(i int) string { return time.Weekday((i + 1) % 7).String() }

// String returns the schedule in English: "daily at 09:00".
func (s Schedule) String() string { return s.format(i18n.English) }

// localLayouts are layouts of moments without a zone.
var localLayouts = []string{"2006-01-02 15:04", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02T15:04:05"}

// parseOnce parses the moment of a once schedule into RFC 3339. The moment must be in the future.
func parseOnce(text string, now time.Time, loc *time.Location) (string, error) {
	if text == "" {
		return "", fmt.Errorf("at is missing: say when, for example %s", rules[once].example)
	}
	t, err := parseMoment(text, now.In(loc))
	if err != nil {
		return "", err
	}
	t = t.Truncate(time.Second)
	switch localNow := now.In(loc).Format("Mon 2006-01-02 15:04 MST"); {
	case !t.After(now):
		return "", fmt.Errorf("at %q is in the past: it is %s now; give a later time", text, localNow)
	case t.After(now.AddDate(maxYears, 0, 0)):
		return "", fmt.Errorf("at %q is more than %d years away: it is %s now; give an earlier time", text, maxYears, localNow)
	}
	return t.Format(time.RFC3339), nil
}

// parseMoment parses a moment relative to now, in now's zone.
func parseMoment(text string, now time.Time) (time.Time, error) {
	// RFC 3339 needs upper-case "T" and "Z".
	if t, err := time.Parse(time.RFC3339, strings.ToUpper(text)); err == nil {
		return t, nil
	}
	for _, form := range localLayouts {
		if _, err := time.Parse(form, strings.ToUpper(text)); err == nil {
			return parseLocal(form, strings.ToUpper(text), now.Location())
		}
	}
	words := trimLower(strings.Join(strings.Fields(text), " "))
	if clockPattern().MatchString(words) {
		t, err := timeOn(now, words)
		if err == nil && !t.After(now) {
			t, err = timeOn(now.AddDate(0, 0, 1), words)
		}
		return t, err
	}
	return parseOncePhrase(text, now)
}

// timeOn returns the time of day text on the day of d.
func timeOn(d time.Time, text string) (time.Time, error) {
	hhmm, err := normalizeClock("at", text, rules[once].example)
	if err != nil {
		return time.Time{}, err
	}
	return parseLocal("2006-01-02 15:04", d.Format("2006-01-02 ")+hhmm, d.Location())
}

// parseLocal parses text in loc. A time skipped by a clock change is an error; Go would shift it silently.
func parseLocal(form, text string, loc *time.Location) (time.Time, error) {
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
