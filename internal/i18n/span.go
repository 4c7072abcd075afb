package i18n

import "time"

// Span is how long something takes, as exactly as people want to know it: in its two
// largest units, below ten seconds in tenths of them, without seconds from ten minutes on,
// in days alone from two days on. Less than nothing is nothing.
func Span(d time.Duration) Text {
	d = max(d, 0).Round(100 * time.Millisecond)
	if tenths := int(d / (100 * time.Millisecond)); tenths < 100 && tenths%10 != 0 {
		return New("time.seconds", "count", New("time.decimal", "whole", tenths/10, "tenths", tenths%10))
	}
	units := []struct {
		key  string
		size time.Duration
	}{{"time.days", 24 * time.Hour}, {"time.hours", time.Hour}, {"time.minutes", time.Minute}, {"time.seconds", time.Second}}
	switch {
	case d >= 48*time.Hour:
		d = d.Truncate(24 * time.Hour)
	case d >= 10*time.Minute:
		d = d.Truncate(time.Minute)
	}
	for len(units) > 1 && d < units[0].size {
		units = units[1:]
	}
	count := func(i int, d time.Duration) Text { return New(units[i].key, "count", int(d/units[i].size)) }
	rest := d % units[0].size
	if len(units) == 1 || rest < units[1].size {
		return count(0, d)
	}
	return New("time.two", "more", count(0, d), "less", count(1, rest))
}
