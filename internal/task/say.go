package task

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"reverie/internal/i18n"
)

// Text is what r says: to people, in the language of say, if its task is a reminder or
// it is a notice, and to the model otherwise. To alone, the person is not called by name.
func (s *Store) Text(r Run, alone bool, say i18n.Say) string {
	name := ""
	if !alone && r.Task.User != "" {
		name = " " + say("task.for", "person", r.Task.User)
	}
	switch {
	case r.Notice && strings.HasPrefix(string(r.Result), gaveUp):
		return s.outageText(r, name, say)
	case r.Notice && strings.HasPrefix(string(r.Result), putOff):
		return s.putOffText(r, name, say)
	case r.Notice:
		return say("task.gave_up", "who", name, "count", strconv.Itoa(maxFailed), "task", r.Task.Content)
	case r.Task.Mode() == Reminder:
		late := ""
		if r.Late() {
			late = " " + say("task.late", "at", s.WhenIn(say, r.Task, r.Due))
		}
		return say("task.reminder", "who", name, "task", r.Task.Content, "late", late)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "A task of this room is due%s:\n%s\n\nDo this now: %s\n", s.late(r), r.Task.Line(), r.Task.Prompt)
	if r.Task.LastResult != "" {
		fmt.Fprintf(&b, "\nThe last time (%s) it came to this:\n%s\n", s.When(r.Task, r.Task.LastRun), r.Task.LastResult)
	}
	if r.Task.Mode() == Silent {
		b.WriteString("\nNothing of it is said in the room. End with a line on how it went; it is kept for the next time.")
	} else {
		b.WriteString("\nEnd with what people here should read; call stay_silent if there is nothing that they need to know.")
	}
	return b.String()
}

// late is a remark for a run that began long after its time.
func (s *Store) late(r Run) string {
	if !r.Late() {
		return ""
	}
	return " (it was due on " + s.When(r.Task, r.Due) + ")"
}

// When tells the model and the log of a time of t, in its zone.
func (s *Store) When(t Task, at time.Time) string { return s.WhenIn(i18n.English, t, at) }
