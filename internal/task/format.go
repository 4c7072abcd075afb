package task

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/i18n"
)

// formatTime formats a time for people, with weekday and zone.
func formatTime(say i18n.Say, at time.Time) string {
	day := at.Format("Mon")
	if names := strings.Fields(say("time.days_short")); len(names) == len(weekdays) {
		day = names[(int(at.Weekday())+6)%7]
	}
	return say("time.moment", "day", day, "date", at.Format(time.DateOnly), "time", at.Format("15:04"), "zone", at.Format("MST"))
}

// FormatTime formats a time of t for people, in the zone of t.
func (s *Store) FormatTime(say i18n.Say, t Task, at time.Time) string {
	return formatTime(say, at.In(s.locationOf(t)))
}

// Line formats the task for prompts and lists:
//
//	[P2] #task_abcdefgh: Fix auth bug [daily at 09:00]
func (t Task) Line(say i18n.Say) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[P%d] #%s: %s", t.Priority, t.ID, t.Content)
	if t.Status == Paused || t.Status == Completed || t.Status == Deleted {
		b.WriteString(" [" + t.Status.text().In(say) + "]")
	}
	if t.Background {
		b.WriteString(" [" + say("tasks.background") + "]")
	}
	if t.Schedule != nil {
		b.WriteString(" [" + t.Schedule.format(say) + "]")
	}
	return b.String()
}

func (s Schedule) format(say i18n.Say) string {
	if s.Zone != "" {
		return s.formatTimes(say) + " (" + s.Zone + ")"
	}
	return s.formatTimes(say)
}

func (s Schedule) formatTimes(say i18n.Say) string {
	switch s.Type {
	case once:
		if t, err := time.Parse(time.RFC3339, s.At); err == nil {
			return say("schedule.once", "date", t.Format(time.DateOnly), "time", t.Format("15:04"))
		}
	case daily:
		return say("schedule.daily", "time", s.At)
	case weekly:
		day := s.DayOfWeek
		if i, names := slices.Index(weekdays, day), strings.Fields(say("time.weekdays")); i >= 0 && len(names) == len(weekdays) {
			day = names[i]
		}
		return say("schedule.weekly", "day", day, "time", s.At)
	case monthly:
		return say("schedule.monthly", "day", strconv.Itoa(s.DayOfMonth), "time", s.At)
	case interval:
		text := formatInterval(say, s.IntervalSeconds)
		if s.WindowStart != "" {
			text = say("schedule.window", "every", text, "from", s.WindowStart, "to", s.WindowEnd)
		}
		return text
	case byCron:
		return "cron " + s.Expression
	}
	return s.Type
}

// formatInterval returns an interval in the largest unit that divides it.
func formatInterval(say i18n.Say, seconds int) string {
	count := func(size int) string { return strconv.Itoa(seconds / size) }
	switch {
	case seconds > 0 && seconds%86400 == 0:
		return say("schedule.days", "count", count(86400))
	case seconds > 0 && seconds%3600 == 0:
		return say("schedule.hours", "count", count(3600))
	case seconds > 0 && seconds%60 == 0:
		return say("schedule.minutes", "count", count(60))
	}
	return say("schedule.seconds", "count", count(1))
}

// RunText returns the text of r. For a reminder or notice it is what people read, in the language
// of say; otherwise it is the prompt for the model. With alone, the person is not named.
func (s *Store) RunText(r Run, alone bool, say i18n.Say) string {
	name := ""
	if !alone && r.Task.User != "" {
		name = " " + say("task.for", "person", r.Task.User)
	}
	switch {
	case r.Notice:
		return say("task.gave_up", "who", name, "count", strconv.Itoa(maxFailed), "task", r.Task.Content)
	case r.Task.Mode() == Reminder:
		late := ""
		if r.late() {
			late = " " + say("task.late", "at", s.FormatTime(say, r.Task, r.Due))
		}
		return say("task.reminder", "who", name, "task", r.Task.Content, "late", late)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A task of this room is due%s:\n%s\n\nDo this now: %s\n", s.lateRemark(r), r.Task.Line(i18n.English), r.Task.Prompt)
	if r.Task.LastResult != "" {
		last := s.FormatTime(i18n.English, r.Task, r.Task.LastRun)
		fmt.Fprintf(&b, "\nThe last time (%s) it came to this:\n%s\n", last, r.Task.LastResult)
	}
	if r.Task.Mode() == Silent {
		b.WriteString("\nNothing of it is said in the room. End with a line on how it went; it is kept for the next time.")
	} else {
		b.WriteString("\nEnd with what people here should read; call stay_silent if there is nothing that they need to know.")
	}
	return b.String()
}

// lateRemark returns a remark for the model on a run that began late.
func (s *Store) lateRemark(r Run) string {
	if !r.late() {
		return ""
	}
	return " (it was due on " + s.FormatTime(i18n.English, r.Task, r.Due) + ")"
}
