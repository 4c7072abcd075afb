package task

import (
	"fmt"
	"strings"
	"time"
)

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
		return t, fmt.Errorf("at %q does not exist in %s, because clocks go forward then: give another time, for example %s", text, loc, t.Add(time.Hour).Format("2006-01-02 15:04"))
	}
	return t, nil
}
