// Package task keeps what was promised: tasks with a priority, a state and
// perhaps a schedule, each belonging to one room.
//
// Scheduler sleeps until the next task.next_due. What is due becomes rows of job_run, unique by task
// and time, in the transaction that moves next_due on; each row is handed to its room until
// Done. A task without ai_prompt is a reminder, said as it is. A failure is tried again after 1, 5, 30
// and 30 minutes; five in a row pause the task. schedule.go reads schedules, phrases.go those in words.
package task

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Status is the state of a task.
type Status string

func (s Status) text() i18n.Text { return i18n.New("state." + string(s)) }

// The states of a task. All is for List only.
const (
	Active    Status = "active"
	Paused    Status = "paused"
	Completed Status = "completed"
	Deleted   Status = "deleted"
	All       Status = "all" // active, paused and completed
)

// The priorities, 1 being the most urgent.
const (
	minPriority     = 1
	maxPriority     = 10
	defaultPriority = 5
)

// Limits in characters.
const (
	maxContent = 1000
	maxReason  = 1000
	maxPrompt  = 8000
)

// Task is one thing to do or to be reminded of.
type Task struct {
	ID         string      `json:"id"`             // "task_" and eight characters; Add makes it
	Room       string      `json:"room"`           // the only room it exists in
	User       string      `json:"user,omitempty"` // who asked for it
	Label      trust.Label `json:"-"`              // how far its words are trusted, and who may read it; Add requires readers
	Asked      string      `json:"-"`              // the message it is made for, see TakeBack; only Add looks at it
	Content    string      `json:"content"`        // one line
	Priority   int         `json:"priority"`       // 1 (most urgent) to 10; Add reads 0 as 5
	Status     Status      `json:"status"`
	Schedule   *Schedule   `json:"schedule,omitempty"`   // nil: none. Not to be changed in place
	Prompt     string      `json:"prompt,omitempty"`     // what the model is asked when it falls due; may be empty
	Background bool        `json:"background,omitempty"` // with a Prompt: nothing is said in the room
	CatchUp    CatchUp     `json:"catch_up"`             // what becomes of times that were missed; Add reads "" as once
	Reason     i18n.Text   `json:"reason,omitempty"`     // why it was completed, or paused if no person did that

	Created   time.Time `json:"created"` // UTC, to the millisecond
	Updated   time.Time `json:"-"`
	Completed time.Time `json:"-"` // zero until completed

	NextDue   time.Time `json:"next_due,omitzero"` // zero: not scheduled, paused, or over
	Scheduled time.Time `json:"-"`                 // when the schedule was made; zero without one
	RunStats
}

// RunStats is how the runs of a task went.
type RunStats struct {
	LastRun    time.Time `json:"last_run,omitzero"`     // when the last run ended; zero before the first
	Runs       int       `json:"runs"`                  // that ended well
	Failures   int       `json:"failures"`              // in a row
	LastResult string    `json:"last_result,omitempty"` // of the last run
}

// CatchUp says what becomes of times at which a task fell due while nothing ran.
type CatchUp string

// The policies. However many times were missed, no more than maxCatchUp run.
const (
	catchOnce CatchUp = "once" // the latest of them runs, late
	catchSkip CatchUp = "skip" // none
	catchAll  CatchUp = "all"  // all, the oldest first
)

// Mode says what happens when a task falls due.
type Mode string

// The modes of a task.
const (
	Reminder Mode = "reminder"          // the person is reminded; no model is asked
	notify   Mode = "autonomous_notify" // the model does what Prompt says, and tells the room
	Silent   Mode = "autonomous_silent" // … and tells nobody
)

// Mode is what happens when t falls due.
func (t Task) Mode() Mode {
	switch {
	case t.Prompt == "":
		return Reminder
	case t.Background:
		return Silent
	}
	return notify
}

// Patch says what Update changes; a nil field stays as it is.
type Patch struct {
	Content       *string
	Priority      *int
	Schedule      *Schedule // replaces the whole schedule; must come out of Validate
	ClearSchedule bool      // removes the schedule; Schedule must be nil then
	Prompt        *string
	Background    *bool
	CatchUp       *CatchUp
	Integrity     trust.Integrity // of who asks: the task is trusted no further from then on
	Asked         string          // the message that asks for the change: a task that others had a say in stays when its own is taken back
}

// apply changes t as p says.
func (p Patch) apply(t *Task) {
	if p.Content != nil {
		t.Content = *p.Content
	}
	if p.Priority != nil {
		t.Priority = *p.Priority
	}
	if p.Schedule != nil || p.ClearSchedule {
		t.Schedule = p.Schedule
	}
	if p.Prompt != nil {
		t.Prompt = *p.Prompt
	}
	if p.Background != nil {
		t.Background = *p.Background
	}
	if p.CatchUp != nil {
		t.CatchUp = *p.CatchUp
	}
}

// check folds the texts of t, and says what is wrong with what people and models write of it.
func check(t *Task) (err error) {
	if t.Content, err = store.CheckLine("content", t.Content, maxContent); err != nil {
		return err
	}
	t.Prompt, err = store.CheckText("prompt", strings.TrimSpace(strings.ReplaceAll(t.Prompt, "\r\n", "\n")), maxPrompt)
	switch {
	case err != nil:
		return err
	case t.Content == "":
		return errors.New(`content is missing: say what is to be done, for example "Water the plants"`)
	case t.Priority < minPriority || t.Priority > maxPriority:
		return fmt.Errorf("priority %d is not allowed: use a whole number from %d (most urgent) to %d, for example %d",
			t.Priority, minPriority, maxPriority, defaultPriority)
	case t.CatchUp != catchOnce && t.CatchUp != catchSkip && t.CatchUp != catchAll:
		return fmt.Errorf("catch_up %q is not known: use once (run late), skip or all", t.CatchUp)
	}
	return nil
}
