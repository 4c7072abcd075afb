// Package task stores tasks and runs them when they are due.
//
// A task has a priority, a state and perhaps a schedule, and belongs to one room. Scheduler sleeps
// until the next task.next_due. Each due time becomes a row of job_run, unique by task and time, in
// the transaction that advances next_due. Each row is handed to its room until Done is called, so a
// due time survives a crash and runs once. A task without ai_prompt is a reminder: its text is sent
// as it is. A failed run is retried after 1, 5, 30 and 30 minutes; five failures in a row pause the
// task. schedule.go parses schedules, phrases.go those in words.
package task

import (
	"context"
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

// The states of a task. All is a filter for List only.
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
	ID          string      `json:"id"`             // "task_" and eight characters; assigned by Add
	Room        string      `json:"room"`           // the only room it exists in
	User        string      `json:"user,omitempty"` // who asked for it
	Label       trust.Label `json:"-"`              // how far its text is trusted, and who may read it; Add requires readers
	SourceEvent string      `json:"-"`              // event ID of the message that asked for it, see DeleteFromMessages; only Add reads it
	Content     string      `json:"content"`        // one line
	Priority    int         `json:"priority"`       // 1 (most urgent) to 10; Add reads 0 as 5
	Status      Status      `json:"status"`
	Schedule    *Schedule   `json:"schedule,omitempty"`   // nil: none. Must not be modified in place
	Prompt      string      `json:"prompt,omitempty"`     // what the model is asked when it falls due; may be empty
	Background  bool        `json:"background,omitempty"` // with a Prompt: the answer is not sent to the room
	CatchUp     CatchUp     `json:"catch_up"`             // policy for missed times; Add reads "" as once
	Reason      i18n.Text   `json:"reason,omitempty"`     // why it was completed, or paused by the program

	Created   time.Time `json:"created"` // UTC, to the millisecond
	Updated   time.Time `json:"-"`
	Completed time.Time `json:"-"` // zero until completed

	NextDue   time.Time `json:"next_due,omitzero"` // zero: not scheduled, paused, or over
	Scheduled time.Time `json:"-"`                 // when the schedule was made; zero without one
	RunStats
}

// RunStats counts the runs of a task.
type RunStats struct {
	LastRun    time.Time `json:"last_run,omitzero"`     // when the last run ended; zero before the first
	Runs       int       `json:"runs"`                  // that succeeded
	Failures   int       `json:"failures"`              // in a row
	LastResult string    `json:"last_result,omitempty"` // of the last run
}

// CatchUp is the policy for due times missed while the program was down.
type CatchUp string

// The policies. At most maxCatchUp missed times run.
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
	notify   Mode = "autonomous_notify" // the model does what Prompt says, and answers in the room
	Silent   Mode = "autonomous_silent" // … and sends nothing
)

// Mode returns what happens when t falls due.
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
	Integrity     trust.Integrity // of the caller; it caps the task's integrity
	SourceEvent   string          // event ID of the message that asks; a change by another message keeps the task when its own is redacted
}

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

// normalize normalises the texts of t and validates its fields.
func normalize(t *Task) (err error) {
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

// Place returns the room and person that may read t.
func (t Task) Place() trust.Place {
	if person := t.Label.Readers.Person(); person != "" {
		return trust.Place{Room: t.Room, Person: person, Private: true}
	}
	return trust.Place{Room: t.Room, Person: t.User}
}

// Move assigns all tasks of the room from, completed ones included, to the room to. It is idempotent.
func (s *Store) Move(ctx context.Context, from, to string) error {
	return store.Exec(ctx, s.db, `UPDATE task SET room = ?2, `+trust.MovedReaders+` WHERE room = ?1`, from, to)
}
