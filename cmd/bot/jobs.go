package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
