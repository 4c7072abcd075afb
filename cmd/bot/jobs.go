package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"reverie/internal/chat"
	"reverie/internal/llm"
	"reverie/internal/session"
	"reverie/internal/task"
)

// TasksConfig bounds the tasks that the model works on by itself.
type TasksConfig struct {
	PerRoom    int `yaml:"per_room"`     // active ones in a room
	PerPerson  int `yaml:"per_person"`   // active ones of a person, over all rooms
	RunsPerDay int `yaml:"runs_per_day"` // in 24 hours, over all rooms
}

// jobs ties the scheduler to the sessions: what falls due enters by the door of
// messages, and what came of it goes back.
type jobs struct{ *task.Scheduler }

// Done tells what a person stopped, and what had no model to work with, from what failed.
func (j jobs) Done(ctx context.Context, id, answer string, failed error) error {
	switch {
	case session.Stopped(failed):
		failed = task.ErrStopped
	case outage(failed):
		failed = fmt.Errorf("%w: %w", task.ErrOutage, failed)
	}
	return j.Scheduler.Done(ctx, id, answer, failed)
}

// outage reports whether failed says that a model did not answer, rather than what
// it answered.
func outage(failed error) bool {
	var model *llm.Error
	return errors.As(failed, &model) && slices.Contains([]llm.Kind{llm.Unreachable, llm.RateLimited, llm.TimedOut}, model.Kind)
}

// deliverJobs has what is due worked on by m. directWith is as in session.Config; nil
// means that every room is private.
func (b *bot) deliverJobs(m *session.Manager, directWith func(ctx context.Context, room string) (string, error)) {
	b.scheduler.Deliver = func(ctx context.Context, r task.Run) error {
		alone := true
		if directWith != nil {
			with, err := directWith(ctx, r.Task.Room)
			if err != nil {
				return err
			}
			alone = with == b.jobPerson(r)
		}
		return m.Deliver(ctx, b.jobEvent(ctx, r, alone))
	}
}

// jobPerson is whom r is for.
func (b *bot) jobPerson(r task.Run) string { return cmp.Or(r.Task.User, b.cfg.owner()) }

// jobEvent is r as an event of its room; alone tells that nobody else is there.
func (b *bot) jobEvent(ctx context.Context, r task.Run, alone bool) chat.Inbound {
	mode := r.Task.Mode()
	return chat.Inbound{
		ID: r.ID, Room: r.Task.Room, Sender: cmp.Or(r.Task.Label.Readers.Person(), b.jobPerson(r)), Label: r.Task.Label,
		Text: b.tasks.Text(r, alone, b.messages.For(ctx, r.Task.Room)), At: r.Due,
		Event: chat.ScheduledTask, Verbatim: r.Notice || mode == task.Reminder, Silent: !r.Notice && mode == task.Silent,
		Mention: !r.Notice && mode == task.Reminder && r.Task.User != "",
	}
}
