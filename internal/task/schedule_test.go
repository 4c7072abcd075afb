package task

import (
	"strings"
	"testing"
	"time"
)

func berlin(t testing.TB) *time.Location {
	t.Helper()
	loc := must(time.LoadLocation("Europe/Berlin"))(t)
	return loc
}

// at is now in the tests: a Saturday.
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
		if again, err := got.Validate(at(t), time.UTC); err != nil || again != got {
			t.Errorf("the final form changes: %+v, %v", again, err)
		}
	}
}

// TestScheduleRefuses: an error must teach, so each says what is wrong and shows
// how it is right.
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
