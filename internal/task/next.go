package task

import (
	"errors"
	"fmt"
	"reverie/internal/store"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Next returns the first due time after t of s, which must come from Validate; false if there is
// none. Times of day are in s.Zone, or in loc. since is when the schedule was made: nothing is due
// before it, and intervals count from it, or from each opening of their window.
//
// A local time that a clock change skips is due at the change; one that occurs twice, at its first.
// A month without the day is skipped.
func (s Schedule) Next(t, since time.Time, loc *time.Location) (time.Time, bool) {
	loc = s.location(loc)
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
	e, err := parseCron(s.cronExpression())
	if err != nil {
		return time.Time{}, false
	}
	return nextCron(e, t)
}

// cronExpression converts s, which has a time of day, to a cron expression.
func (s Schedule) cronExpression() string {
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

// location returns the time zone of s, or loc.
func (s Schedule) location(loc *time.Location) *time.Location {
	if s.Zone == "" {
		return loc
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return loc // Validate checked it; a zone file that vanished must not silence the task
	}
	return zone
}

// nextInterval is Next for an interval, within its window.
func (s Schedule) nextInterval(t, since time.Time) (time.Time, bool) {
	step := time.Duration(s.IntervalSeconds) * time.Second
	if step <= 0 {
		return time.Time{}, false
	}
	if s.WindowStart == "" {
		return firstTickAfter(t, since, step).In(t.Location()), true
	}
	for d := dayOf(t).AddDate(0, 0, -1); ; d = d.AddDate(0, 0, 1) {
		opens, closes := s.windowOn(d, t.Location())
		due := opens
		if !due.After(t) {
			due = firstTickAfter(t, opens, step)
		}
		if due.After(t) && !due.After(closes) {
			return due, true
		}
	}
}

// firstTickAfter returns the first of since, since+step, … after t.
func firstTickAfter(t, since time.Time, step time.Duration) time.Time {
	if t.Before(since) {
		return since
	}
	// In whole seconds: a Duration holds no more than 292 years.
	steps := (t.Unix() - since.Unix()) / int64(step/time.Second)
	due := since.Add(time.Duration(steps) * step)
	for !due.After(t) {
		due = due.Add(step)
	}
	return due
}

// windowOn returns the window of s that opens on day d.
func (s Schedule) windowOn(d time.Time, loc *time.Location) (opens, closes time.Time) {
	from, _ := parseClock(s.WindowStart) // Validate checked both
	until, _ := parseClock(s.WindowEnd)
	opens = wallClockTime(d, from, loc)
	if until <= from {
		d = d.AddDate(0, 0, 1)
	}
	return opens, wallClockTime(d, until, loc)
}

// dayOf returns the day of t as midnight UTC.
func dayOf(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// parseClock parses a time of day into minutes since midnight.
func parseClock(text string) (int, error) {
	t, err := time.Parse("15:04", text)
	return t.Hour()*60 + t.Minute(), store.Wrap(err, "time of day")
}

// wallClockTime returns when clocks in loc show minute c of day d. It is the first of two such
// times, and the moment of the clock change if the time is skipped.
func wallClockTime(d time.Time, c int, loc *time.Location) time.Time {
	wall := d.Add(time.Duration(c) * time.Minute)
	withOffsetAt := func(near time.Time) (t time.Time, shows bool) { // with the zone offset that holds at near
		_, offset := near.In(loc).Zone()
		t = wall.Add(-time.Duration(offset) * time.Second).In(loc)
		_, now := t.Zone()
		return t, now == offset
	}
	before, ok := withOffsetAt(wall.Add(-day))
	if ok {
		return before
	}
	if after, ok := withOffsetAt(wall.Add(day)); ok {
		return after
	}
	change, _ := before.ZoneBounds()
	return change
}

var cronParser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

func parseCron(text string) (*cron.SpecSchedule, error) {
	if strings.Contains(text, "=") { // the library's zone syntax; it panics on some zones
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

// nextCron returns the first wall-clock time of spec after t. The library mishandles clock changes.
func nextCron(spec *cron.SpecSchedule, t time.Time) (time.Time, bool) {
	d := dayOf(t)
	for wall := spec.Next(d.AddDate(0, 0, -1)); !wall.IsZero(); wall = spec.Next(wall) {
		if due := wallClockTime(dayOf(wall), wall.Hour()*60+wall.Minute(), t.Location()); due.After(t) {
			return due, true
		}
	}
	return time.Time{}, false
}
