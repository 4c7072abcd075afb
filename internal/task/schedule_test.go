package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"

	"reverie/internal/test/expect"
)

func berlin(t testing.TB) *time.Location {
	t.Helper()
	return expect.Must(time.LoadLocation("Europe/Berlin"))(t)
}

// at is the current time in tests: a Saturday.
func at(t testing.TB) time.Time { return time.Date(2026, 11, 21, 9, 14, 30, 5, berlin(t)) }

func TestScheduleOnce(t *testing.T) {
	for text, want := range map[string]string{
		"2026-12-24T18:00:00+01:00": "2026-12-24T18:00:00+01:00",
		"2026-12-24T18:00:00z":      "2026-12-24T18:00:00Z",
		"2026-12-24 18:00":          "2026-12-24T18:00:00+01:00",
		" 2026-12-24T18:00 ":        "2026-12-24T18:00:00+01:00",
		"2027-07-01 18:00:30":       "2027-07-01T18:00:30+02:00", // summer time
		"18:30":                     "2026-11-21T18:30:00+01:00",
		"9:14":                      "2026-11-22T09:14:00+01:00", // gone today
		"09:15":                     "2026-11-21T09:15:00+01:00",
		"in 20 minutes":             "2026-11-21T09:34:30+01:00",
		"in 200 days":               "2027-06-09T09:14:30+02:00", // the clock shows the same
		"tomorrow 7:05":             "2026-11-22T07:05:00+01:00",
	} {
		got, err := Schedule{Type: "once", At: text}.Validate(at(t), berlin(t))
		if err != nil || got.At != want {
			t.Errorf("%q: %q, %v; want %q", text, got.At, err, want)
		}
	}
}

func TestScheduleFinalForms(t *testing.T) {
	for _, tt := range []struct {
		in, want Schedule
		text     string
	}{
		{Schedule{Type: " Daily ", At: "9:00"}, Schedule{Type: "daily", At: "09:00"}, "daily at 09:00"},
		{Schedule{Type: "weekly", At: "23:59", DayOfWeek: "Monday"}, Schedule{Type: "weekly", At: "23:59", DayOfWeek: "mon"}, "weekly on Monday at 23:59"},
		{Schedule{Type: "weekly", At: "00:00", DayOfWeek: "SUN"}, Schedule{Type: "weekly", At: "00:00", DayOfWeek: "sun"}, "weekly on Sunday at 00:00"},
		{Schedule{Type: "monthly", At: "09:00", DayOfMonth: 31}, Schedule{Type: "monthly", At: "09:00", DayOfMonth: 31}, "monthly on day 31 at 09:00"},
		{Schedule{Type: "interval", IntervalSeconds: 3600}, Schedule{Type: "interval", IntervalSeconds: 3600}, "every hour"},
		{Schedule{Type: "interval", IntervalSeconds: 5400}, Schedule{Type: "interval", IntervalSeconds: 5400}, "every 90 minutes"},
		{Schedule{Type: "interval", IntervalSeconds: 61}, Schedule{Type: "interval", IntervalSeconds: 61}, "every 61 seconds"},
		{Schedule{Type: "interval", IntervalSeconds: 7200, WindowStart: "22:00", WindowEnd: "6:00"},
			Schedule{Type: "interval", IntervalSeconds: 7200, WindowStart: "22:00", WindowEnd: "06:00"}, "every 2 hours from 22:00 to 06:00"},
		{Schedule{Type: "once", At: "2026-12-24 18:00"}, Schedule{Type: "once", At: "2026-12-24T18:00:00+01:00"}, "once on 2026-12-24 at 18:00"},
	} {
		got, err := tt.in.Validate(at(t), berlin(t))
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("%+v: %+v %q, %v", tt.in, got, got, err)
			continue
		}
		expect.Equal(t, expect.Must(got.Validate(at(t), time.UTC))(t), got, "the final form")
	}
}

// TestScheduleRefuses: each error says what is wrong and gives a valid example.
// Holds T3.
func TestScheduleRefuses(t *testing.T) {
	for _, tt := range []struct {
		in   Schedule
		want string
	}{
		{Schedule{}, "schedule_type"},
		{Schedule{Type: "hourly"}, "once, daily, weekly, monthly, interval or cron"},
		{Schedule{Type: "daily"}, "at is missing"},
		{Schedule{Type: "daily", At: "7am"}, "HH:MM"},
		{Schedule{Type: "daily", At: "24:00"}, "HH:MM"},
		{Schedule{Type: "daily", At: "09:00", DayOfWeek: "mon"}, "day_of_week does not go with"},
		{Schedule{Type: "weekly", At: "09:00"}, "day_of_week is missing"},
		{Schedule{Type: "weekly", At: "09:00", DayOfWeek: "someday"}, "mon, tue, wed"},
		{Schedule{Type: "monthly", At: "09:00"}, "1 to 31"},
		{Schedule{Type: "monthly", At: "09:00", DayOfMonth: 32}, "1 to 31"},
		{Schedule{Type: "interval"}, "interval_seconds"},
		{Schedule{Type: "interval", IntervalSeconds: 59}, "from 60"},
		{Schedule{Type: "interval", IntervalSeconds: 3600, At: "09:00"}, "at does not go with"},
		{Schedule{Type: "interval", IntervalSeconds: 3600, WindowStart: "09:00"}, "both or none"},
		{Schedule{Type: "interval", IntervalSeconds: 3600, WindowStart: "9", WindowEnd: "10:00"}, "window_start"},
		{Schedule{Type: "interval", IntervalSeconds: 3600, WindowStart: "09:00", WindowEnd: "9:00"}, "no time"},
		{Schedule{Type: "once"}, "at is missing"},
		{Schedule{Type: "once", At: "soon"}, "not understood"},
		{Schedule{Type: "once", At: "tomorrow 25:00"}, "HH:MM"},
		{Schedule{Type: "once", At: "in 0 minutes"}, "above 0"},
		{Schedule{Type: "once", At: "in 999999 hours"}, "years away"},
		{Schedule{Type: "once", At: "in 99999999999999999999 days"}, "not understood"},
		{Schedule{Type: "once", At: "2026-11-21 09:14"}, "in the past"},
		{Schedule{Type: "once", At: "2026-02-30 09:00"}, "not understood"},
		{Schedule{Type: "once", At: "2027-03-28 02:30"}, "clocks go forward"},
		{Schedule{Type: "once", At: "2026-12-24 18:00", IntervalSeconds: 60}, "interval_seconds does not go with"},
	} {
		got, err := tt.in.Validate(at(t), berlin(t))
		if err == nil {
			t.Errorf("%+v became %+v", tt.in, got)
		} else if !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %q lacks %q", tt.in, err, tt.want)
		}
	}
}

func FuzzSchedule(f *testing.F) {
	f.Add("once", "in 20 minutes", "", 0, 0, "", "", "", "")
	f.Add("once", "2027-03-28 02:30", "", 0, 0, "", "", "", "")
	f.Add("once", "2026-12-24T18:00:00+01:00", "", 0, 0, "", "", "", "")
	f.Add("weekly", "9:00", "mon", 0, 0, "", "", "", "")
	f.Add("monthly", "09:00", "", 31, 0, "", "", "", "")
	f.Add("interval", "", "", 0, 90, "08:00", "20:00", "", "")
	f.Add("cron", "", "", 0, 0, "", "", "*/5 7-9 * * mon-fri", "Asia/Kolkata")
	f.Add("cron", "", "", 0, 0, "", "", "CRON_TZ=", "")
	f.Fuzz(func(t *testing.T, typ, when, day string, dom, secs int, from, to, cron, zone string) {
		in := Schedule{typ, when, day, dom, secs, from, to, cron, zone}
		out, err := in.Validate(at(t), berlin(t))
		if err != nil {
			if err.Error() == "" {
				t.Error("an empty error")
			}
			return
		}
		if again, err := out.Validate(at(t), time.UTC); err != nil || again != out {
			t.Errorf("%+v became %+v and then %+v, %v", in, out, again, err)
		}
		if next, ok := out.Next(at(t), at(t), berlin(t)); !ok || !next.After(at(t)) {
			t.Errorf("%+v is taken and never due: %v", out, next)
		}
		if out.Type == once {
			if due, err := time.Parse(time.RFC3339, out.At); err != nil || !due.After(at(t)) {
				t.Errorf("%+v is due %s, %v", in, out.At, err)
			}
		}
		if out.String() == "" || strings.ContainsAny(out.String(), "\n%") {
			t.Errorf("%+v reads %q", out, out)
		}
	})
}

// TestPhrases: at() is Saturday, 2026-11-21 09:14:30 in Berlin.
func TestPhrases(t *testing.T) {
	for _, tt := range []struct{ want, texts string }{
		{"once 2026-11-22T07:00:00+01:00", "tomorrow at 7|tomorrow 7am|Tomorrow at 7:00.|at 7 tomorrow|tomorrow morning at 7"},
		{"once 2026-11-22T07:30:00+01:00", "tomorrow at half past 7|tomorrow at 7.30"},
		{"once 2026-11-23T18:00:00+01:00", "the day after tomorrow at 6 pm|day after tomorrow at 6 in the evening"},
		{"once 2026-11-21T20:00:00+01:00", "today at 8 pm|tonight at 8|this evening at 8|at 8 p.m. today"},
		{"once 2026-11-21T09:34:30+01:00", "in 20 minutes|20 minutes from now|in twenty minutes"},
		{"once 2026-11-21T09:15:00+01:00", "in 30 seconds|30 seconds from now|in thirty secs"},
		{"once 2026-11-21T10:14:30+01:00", "in an hour|in 1 hour"},
		{"once 2026-11-21T09:44:30+01:00", "in half an hour"},
		{"once 2026-12-05T09:14:30+01:00", "in two weeks|in 14 days"},
		{"once 2026-11-23T09:00:00+01:00", "on Monday at 9|Monday at 9|at 9 on Monday"},
		{"once 2026-11-28T09:00:00+01:00", "on Saturday at 9"},
		{"once 2026-11-21T12:00:00+01:00", "today at noon"},
		{"daily 08:30", "every day at 8:30|daily at 8.30 am|at 8:30 every day|every morning at 8:30"},
		{"weekly mon 09:00", "every Monday at 9|each monday at 9am|every Monday morning at 9|at 9 every monday|on Mondays at 9"},
		{"weekly sun 20:00", "every Sunday at 8pm"},
		{"monthly 1 12:00", "every month on the 1st at noon|monthly on the 1st at 12:00|on the 1st of every month at 12"},
		{"cron 0 7 * * mon-fri", "on weekdays at 7|every weekday at 7am"},
		{"interval 1800", "every 30 minutes|every half hour|every thirty minutes"},
		{"interval 3600", "every hour|hourly"},
	} {
		for text := range strings.SplitSeq(tt.texts, "|") {
			s, err := parsePhrase(text, at(t), berlin(t))
			if got := brief(s); err != nil || got != tt.want {
				t.Errorf("%q: %s, %v; want %s", text, got, err, tt.want)
			}
		}
	}
}

// brief formats the set fields of a schedule.
func brief(s Schedule) string {
	parts := []string{s.Type, s.DayOfWeek}
	if s.DayOfMonth != 0 {
		parts = append(parts, strconv.Itoa(s.DayOfMonth))
	}
	parts = append(parts, s.At, s.Expression)
	if s.IntervalSeconds != 0 {
		parts = append(parts, strconv.Itoa(s.IntervalSeconds))
	}
	return strings.Join(strings.Fields(strings.Join(parts, " ")), " ")
}

// TestPhrasesRefuse: an incompletely understood or ambiguous phrase is an error.
// Holds T3.
func TestPhrasesRefuse(t *testing.T) {
	for _, text := range []string{
		"", "soon", "tomorrow", "tomorrow at", "tomorrow at 25", "tomorrow at 7:75", "tomorrow at 13 am", "at noonish", "next Monday at 9", "every other day at 9", "every second Monday at 9",
		"tomorrow at 7 or 8", "not tomorrow at 7", "tomorrow at 7 unless it rains", "in 0 minutes", "in minus 5 minutes", "in a few minutes", "in 1.5 hours", "every 5 seconds", "every second", "every 0 minutes",
		"today at 7", "tonight at 3", "this morning at 8", "every month on the 32nd at 9", "every monday", "tomorrow evening at 8 am",
		"morgen um 7", "mañana a las 7", "明天7点",
		"in 9999999999999999999999 minutes", "in 999999 weeks", strings.Repeat("tomorrow at 7 ", 100),
	} {
		if s, err := parsePhrase(text, at(t), berlin(t)); err == nil {
			t.Errorf("%q is read as %s", text, brief(s))
		}
	}
	_, err := parsePhrase("irgendwann", at(t), berlin(t))
	expect.ErrorContains(t, err, "for example", "no example")
	// A time skipped by a clock change is refused.
	spring := time.Date(2027, 3, 27, 12, 0, 0, 0, berlin(t))
	if s, err := parsePhrase("tomorrow at 2:30", spring, berlin(t)); err == nil {
		t.Errorf("a time that there is not is read as %s", brief(s))
	}
}

// FuzzPhrase: an understood phrase is in the future and normalised.
func FuzzPhrase(f *testing.F) {
	for _, s := range []string{"tomorrow at 7", "every Monday at 9", "in 20 minutes", "monthly on the 31st at 23:00", "half past 12 pm"} {
		f.Add(s)
	}
	loc, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Skip(err)
	}
	now := time.Date(2026, 11, 21, 9, 14, 30, 5, loc)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := parsePhrase(text, now, loc)
		if err != nil {
			return
		}
		if same, err := s.Validate(now, loc); err != nil || same != s {
			t.Errorf("%q: %+v is not in its final form: %v", text, s, err)
		}
		if next, ok := s.Next(now, now, loc); !ok || !next.After(now) {
			t.Errorf("%q: %+v never falls due", text, s)
		}
	})
}

// zones have daylight saving in the north, none, half an hour in the south, and an offset with minutes.
var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}

func inZone(t testing.TB, name string) *time.Location {
	t.Helper()
	return expect.Must(time.LoadLocation(name))(t)
}

// clocks are the clock times of a day.
var clocks = func() (all []string) {
	for m := range 24 * 60 {
		all = append(all, fmt.Sprintf("%02d:%02d", m/60, m%60))
	}
	return all
}()

// oracle lists when s is due from a to b by checking the wall clock once a minute. It knows nothing
// of offsets, days or clock changes.
func oracle(s Schedule, a, b, since time.Time, loc *time.Location) []time.Time {
	var due []time.Time
	today, late := "", "" // the day, and the latest time that the clock has shown on it before
	clock := ""
	// first reports whether the clock shows or has skipped one of times, for the first time that day.
	first := func(times ...string) bool {
		return slices.ContainsFunc(times, func(at string) bool { return late < at && at <= clock })
	}
	times := cronTimes(s.Expression)
	var open, last time.Time // of a window
	closing, closed := "", true
	day := ""
	for t := a.Add(-72 * time.Hour).In(loc); !t.After(b); t = t.Add(time.Minute) {
		if y, m, d := t.Date(); len(day) == 0 || day[8] != byte('0'+d/10) || day[9] != byte('0'+d%10) {
			day = fmt.Sprintf("%04d-%02d-%02d", y, m, d) // days that follow each other differ in the last two
		}
		if day != today {
			today, late = day, ""
		}
		h, m, _ := t.Clock()
		clock = clocks[h*60+m]
		hit := false
		switch s.Type {
		case once:
			hit = t.Format(time.RFC3339) == s.At
		case daily:
			hit = first(s.At)
		case weekly:
			hit = first(s.At) && strings.ToLower(t.Format("Mon")) == s.DayOfWeek
		case monthly:
			hit = first(s.At) && t.Day() == s.DayOfMonth
		case byCron:
			hit = first(times...) && cronDay(s.Expression, t)
		case interval:
			step := time.Duration(s.IntervalSeconds) * time.Second
			if s.WindowStart == "" {
				hit = !t.Before(since) && t.Sub(since)%step == 0
				break
			}
			if first(s.WindowStart) {
				open, last, closed, closing = t, t, false, day
				if s.WindowEnd <= s.WindowStart { // the day after, whatever its name
					closing = t.Add(time.Duration(36-t.Hour()) * time.Hour).Format("2006-01-02")
				}
			}
			// The minute of the end is the last one in it.
			ending := !closed && (day == closing && clock >= s.WindowEnd || day > closing)
			if hit = !closed && (t.Equal(open) || t.Sub(last) == step); hit {
				last = t
			}
			closed = closed || ending
		}
		if hit && t.After(a) && !t.Before(since) {
			due = append(due, t)
		}
		late = max(late, clock)
	}
	return due
}

// cronField understands numbers, lists and steps.
func cronField(text string, v int) bool {
	for part := range strings.SplitSeq(text, ",") {
		if part == "*" || part == strconv.Itoa(v) {
			return true
		}
		if step, ok := strings.CutPrefix(part, "*/"); ok {
			n, _ := strconv.Atoi(step)
			return v%n == 0
		}
	}
	return false
}

func cronDay(expr string, t time.Time) bool {
	f := strings.Fields(expr)
	dom, dow := cronField(f[2], t.Day()), cronField(f[4], int(t.Weekday()))
	if f[2] == "*" || f[4] == "*" {
		return cronField(f[3], int(t.Month())) && dom && dow
	}
	return cronField(f[3], int(t.Month())) && (dom || dow)
}

// cronTimes lists the times of day of an expression.
func cronTimes(expr string) []string {
	f := strings.Fields(expr)
	if len(f) == 0 {
		return nil
	}
	var times []string
	for h := range 24 {
		for m := range 60 {
			if cronField(f[1], h) && cronField(f[0], m) {
				times = append(times, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
	}
	return times
}

// TestNextOverTwoYears: each kind of schedule in each zone is due exactly when the wall clock says so.
// Holds T2.
func TestNextOverTwoYears(t *testing.T) {
	schedules := []Schedule{
		{Type: once, At: "2027-03-28T12:34:00Z"},
		{Type: daily, At: "02:30"}, // left out and repeated in most of the zones
		{Type: daily, At: "01:45"},
		{Type: daily, At: "00:00"},
		{Type: weekly, DayOfWeek: "sun", At: "02:15"},
		{Type: monthly, DayOfMonth: 31, At: "02:00"},
		{Type: monthly, DayOfMonth: 29, At: "23:59"},
		{Type: interval, IntervalSeconds: 5400},
		{Type: interval, IntervalSeconds: 1500, WindowStart: "22:00", WindowEnd: "03:00"},
		{Type: interval, IntervalSeconds: 3600, WindowStart: "01:30", WindowEnd: "06:00"},
		{Type: byCron, Expression: "30 2 * * *"},
		{Type: byCron, Expression: "0,30 1,2 * * 0"},
		{Type: byCron, Expression: "*/20 * * * 0"},
		{Type: byCron, Expression: "0 3 29 2 *"},
		{Type: byCron, Expression: "15 */6 13 * 5"},
	}
	a := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	b := a.AddDate(2, 0, 0) // with the 29th of February 2028
	since := a.Add(-1 * time.Hour)
	for _, name := range zones {
		loc := inZone(t, name)
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			t.Parallel()
			for _, s := range schedules {
				if s.Type == once {
					at, _ := time.Parse(time.RFC3339, s.At)
					s.At = at.In(loc).Format(time.RFC3339)
				}
				want := oracle(s, a, b, since, loc)
				var got []time.Time
				for at := a; ; {
					next, ok := s.Next(at, since, loc)
					if !ok || next.After(b) {
						break
					}
					got, at = append(got, next), next
				}
				if len(want) == 0 {
					t.Errorf("%s: never due", s)
				}
				for i := range max(len(got), len(want)) {
					if i >= len(got) || i >= len(want) || !got[i].Equal(want[i]) {
						t.Errorf("%s: number %d of %d or %d: %v, want %v", s, i, len(got), len(want), pick(got, i), pick(want, i))
						break
					}
				}
			}
		})
	}
}

func pick(times []time.Time, i int) string {
	if i >= len(times) {
		return "none"
	}
	return times[i].Format(time.RFC3339)
}

// TestNextAtChanges: due times in nights with clock changes.
func TestNextAtChanges(t *testing.T) {
	for _, tt := range []struct {
		zone  string
		s     Schedule
		after string
		want  string
	}{
		{"Europe/Berlin", Schedule{Type: daily, At: "02:30"}, "2027-03-27T12:00:00+01:00", "2027-03-28T03:00:00+02:00"},
		{"Europe/Berlin", Schedule{Type: daily, At: "02:30"}, "2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00"},
		{"Europe/Berlin", Schedule{Type: daily, At: "02:30"}, "2027-10-31T00:00:00+02:00", "2027-10-31T02:30:00+02:00"},
		{"Europe/Berlin", Schedule{Type: daily, At: "02:30"}, "2027-10-31T02:30:00+02:00", "2027-11-01T02:30:00+01:00"},
		{"Australia/Lord_Howe", Schedule{Type: daily, At: "02:15"}, "2027-10-02T12:00:00+10:30", "2027-10-03T02:30:00+11:00"},
		{"America/New_York", Schedule{Type: byCron, Expression: "0 * * * *"}, "2027-11-07T01:00:00-04:00", "2027-11-07T02:00:00-05:00"},
		{"America/New_York", Schedule{Type: byCron, Expression: "0 * * * *"}, "2027-03-14T01:30:00-05:00", "2027-03-14T03:00:00-04:00"},
		{"UTC", Schedule{Type: monthly, DayOfMonth: 31, At: "09:00"}, "2027-01-31T09:00:00Z", "2027-03-31T09:00:00Z"},
		{"UTC", Schedule{Type: byCron, Expression: "0 9 29 2 *"}, "2027-01-01T00:00:00Z", "2028-02-29T09:00:00Z"},
		{"UTC", Schedule{Type: daily, At: "09:00", Zone: "Asia/Kolkata"}, "2027-01-01T00:00:00Z", "2027-01-01T09:00:00+05:30"},
		{"Pacific/Apia", Schedule{Type: daily, At: "09:00"}, "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"}, // the 30th was left out
	} {
		loc := inZone(t, tt.zone)
		after := expect.Must(time.Parse(time.RFC3339, tt.after))(t)
		next, ok := tt.s.Next(after, after.AddDate(-1, 0, 0), loc)
		if got := next.Format(time.RFC3339); !ok || got != tt.want {
			t.Errorf("%s in %s after %s: %s, want %s", tt.s, tt.zone, tt.after, got, tt.want)
		}
	}
}

// TestNextIsNext: Next is after its argument, skips no due time, and is never before the schedule was made.
func TestNextIsNext(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loc := expect.Must(time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone")))(t)
		clock := rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("%02d:%02d", rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"))
		})
		s := rapid.SampledFrom([]Schedule{
			{Type: daily, At: clock.Draw(t, "at")},
			{Type: weekly, At: clock.Draw(t, "at"), DayOfWeek: rapid.SampledFrom(weekdays).Draw(t, "day")},
			{Type: monthly, At: clock.Draw(t, "at"), DayOfMonth: rapid.IntRange(1, 31).Draw(t, "day")},
			{Type: interval, IntervalSeconds: rapid.IntRange(60, 5*86400).Draw(t, "step")},
			{Type: interval, IntervalSeconds: rapid.IntRange(60, 86399).Draw(t, "step"), WindowStart: clock.Draw(t, "from"), WindowEnd: clock.Draw(t, "to")},
			{Type: byCron, Expression: fmt.Sprintf("%d */%d * * *", rapid.IntRange(0, 59).Draw(t, "minute"), rapid.IntRange(1, 12).Draw(t, "hours"))},
		}).Draw(t, "schedule")
		if s.Type == interval && s.WindowStart != "" && s.WindowStart == s.WindowEnd {
			t.Skip("refused")
		}
		since := time.Unix(rapid.Int64Range(1.7e9, 1.9e9).Draw(t, "since"), 0)
		at := since.Add(time.Duration(rapid.Int64Range(-1e6, 1e8).Draw(t, "after")) * time.Second)
		next, ok := s.Next(at, since, loc)
		if !ok || !next.After(at) || next.Before(since) {
			t.Fatalf("%s after %v, made %v: %v, %t", s, at, since, next, ok)
		}
		between := at.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(at)-1)).Draw(t, "between")))
		if again, ok := s.Next(between, since, loc); !ok || !again.Equal(next) {
			t.Fatalf("%s after %v: %v, but after %v: %v", s, at, next, between, again)
		}
	})
}

// TestScheduleCron: accepted and refused expressions and zones.
func TestScheduleCron(t *testing.T) {
	got, err := Schedule{Type: "cron", Expression: " 30  7 * * MON-FRI ", Zone: "Asia/Kolkata"}.Validate(at(t), berlin(t))
	want := Schedule{Type: "cron", Expression: "30 7 * * mon-fri", Zone: "Asia/Kolkata"}
	if err != nil || got != want || got.String() != "cron 30 7 * * mon-fri (Asia/Kolkata)" {
		t.Errorf("%+v %q, %v", got, got, err)
	}
	for _, tt := range []struct {
		s    Schedule
		want string
	}{
		{Schedule{Type: "cron"}, "cron is missing"},
		{Schedule{Type: "cron", Expression: "30 7 * *"}, "expected exactly 5 fields"},
		{Schedule{Type: "cron", Expression: "61 7 * * *"}, "above maximum"},
		{Schedule{Type: "cron", Expression: "0 0 30 2 *"}, "never falls due"},
		{Schedule{Type: "cron", Expression: "@every 1h"}, "schedule_type interval"},
		{Schedule{Type: "cron", Expression: "TZ=UTC"}, "give zone beside it"},
		{Schedule{Type: "cron", Expression: "@daily", At: "09:00"}, "at does not go with"},
		{Schedule{Type: "daily", At: "09:00", Zone: "Berlin"}, `zone "Berlin" is not known`},
		{Schedule{Type: "daily", At: "09:00", Zone: "Local"}, `zone "Local" is not known`},
		{Schedule{Type: "daily", At: "09:00", Zone: "../../etc/passwd"}, "is not known"},
	} {
		expect.ErrorContains(t, second(tt.s.Validate(at(t), berlin(t))), tt.want, "%+v", tt.s)
	}
	got, err = Schedule{Type: "once", At: "18:30", Zone: "Asia/Kolkata"}.Validate(at(t), berlin(t))
	if err != nil || got.At != "2026-11-21T18:30:00+05:30" {
		t.Errorf("%+v, %v", got, err)
	}
}
