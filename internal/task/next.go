package task

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Next returns the first moment after t at which s, in its final form, falls due; false = there is
// none any more. Times of day are those of s.Zone, or of loc. since is when the schedule was made:
// it is not due before, and an interval is counted from there, or from each opening of its window.
//
// A time of day that clocks leave out falls due when they have gone forward, and one that comes
// twice at its first. A month without the day has no such time.
func (s Schedule) Next(t, since time.Time, loc *time.Location) (time.Time, bool) {
	loc = s.in(loc)
	if t.Before(since.Add(-1)) {
		t = since.Add(-1)
	}
	t = t.In(loc)
	switch s.Type {
	case once:
		due, err := time.Parse(time.RFC3339, s.At)
		return due.In(loc), err == nil && due.After(t)
	case interval:
		return s.nextInterval(t, since)
	}
	e, err := parseCron(s.asCron())
	if err != nil {
		return time.Time{}, false
	}
	return nextCron(e, t)
}

// asCron is s, which has a time of day, as a cron expression.
func (s Schedule) asCron() string {
	at, err := parseClock(s.At)
	if s.Type == byCron || err != nil {
		return s.Expression
	}
	dom, dow := "*", "*"
	switch s.Type {
	case weekly:
		dow = s.DayOfWeek
	case monthly:
		dom = strconv.Itoa(s.DayOfMonth)
	}
	return fmt.Sprintf("%d %d %s * %s", at%60, at/60, dom, dow)
}

// in is the zone of s: its own, or loc.
func (s Schedule) in(loc *time.Location) *time.Location {
	if s.Zone == "" {
		return loc
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return loc // Validate has refused it; a zone file that went away is no reason to be silent for ever
	}
	return zone
}

// nextInterval is the next time of an interval.
func (s Schedule) nextInterval(t, since time.Time) (time.Time, bool) {
	step := time.Duration(s.IntervalSeconds) * time.Second
	if step <= 0 {
		return time.Time{}, false
	}
	if s.WindowStart == "" {
		return tick(t, since, step).In(t.Location()), true
	}
	for d := dayOf(t).AddDate(0, 0, -1); ; d = d.AddDate(0, 0, 1) {
		opens, closes := s.window(d, t.Location())
		due := opens
		if !due.After(t) {
			due = tick(t, opens, step)
		}
		if due.After(t) && !due.After(closes) {
			return due, true
		}
	}
}

// tick is the first of since, since+step, … that is after t.
func tick(t, since time.Time, step time.Duration) time.Time {
	if t.Before(since) {
		return since
	}
	// In whole seconds: a Duration holds no more than 292 years.
	gone := (t.Unix() - since.Unix()) / int64(step/time.Second)
	due := since.Add(time.Duration(gone) * step)
	for !due.After(t) {
		due = due.Add(step)
	}
	return due
}

// window is when s may run that begins on d.
func (s Schedule) window(d time.Time, loc *time.Location) (opens, closes time.Time) {
	from, _ := parseClock(s.WindowStart) // Validate has seen to both
	until, _ := parseClock(s.WindowEnd)
	opens = clockShows(d, from, loc)
	if until <= from {
		d = d.AddDate(0, 0, 1)
	}
	return opens, clockShows(d, until, loc)
}

// dayOf is the day of t, as its midnight in UTC.
func dayOf(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// parseClock reads a time of day, in minutes since midnight.
func parseClock(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, fmt.Errorf("time of day: %w", err)
	}
	return t.Hour()*60 + t.Minute(), nil
}

// clockShows is when the clocks of loc show c on the day d: for the first time if they show it
// twice, and when they go forward if they never do.
func clockShows(d time.Time, c int, loc *time.Location) time.Time {
	wall := d.Add(time.Duration(c) * time.Minute)
	by := func(near time.Time) (t time.Time, shows bool) { // by the offset of a moment near it
		_, offset := near.In(loc).Zone()
		t = wall.Add(-time.Duration(offset) * time.Second).In(loc)
		_, now := t.Zone()
		return t, now == offset
	}
	before, ok := by(wall.Add(-day))
	if ok {
		return before
	}
	if after, ok := by(wall.Add(day)); ok {
		return after
	}
	change, _ := before.ZoneBounds()
	return change
}

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseCron(text string) (*cron.SpecSchedule, error) {
	if strings.Contains(text, "=") { // the library's own way to give a zone; it panics on some
		return nil, errors.New("the zone does not belong in it: give zone beside it")
	}
	parsed, err := cronParser.Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New(`"@every" is an interval: use schedule_type interval`)
	}
	return spec, nil
}

// nextCron is the first time of spec after t, by what clocks show: the library does not when they change.
func nextCron(spec *cron.SpecSchedule, t time.Time) (time.Time, bool) {
	d := dayOf(t)
	for wall := spec.Next(d.AddDate(0, 0, -1)); !wall.IsZero(); wall = spec.Next(wall) {
		if due := clockShows(dayOf(wall), wall.Hour()*60+wall.Minute(), t.Location()); due.After(t) {
			return due, true
		}
	}
	return time.Time{}, false
}
