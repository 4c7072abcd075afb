package session

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/history"
	"reverie/internal/task"
)

// listTasks is the command !tasks.
func (s *Session) listTasks(ctx context.Context, in Inbound, _ string) (string, error) {
	tasks, err := s.cfg.Tasks.List(ctx, s.place(in), "")
	if err != nil {
		return "", err
	}
	if len(tasks) == 0 {
		return s.text(ctx, "tasks.none"), nil
	}
	var b strings.Builder
	say := s.cfg.Messages.For(ctx, s.room)
	for _, t := range tasks {
		line := t.LineIn(say)
		if !t.NextDue.IsZero() {
			line = say("tasks.next", "task", line, "at", s.cfg.Tasks.WhenIn(say, t, t.NextDue))
		}
		b.WriteString("- " + line + "\n")
	}
	return b.String(), nil
}

// mostRuns is how many runs !jobs shows.
const mostRuns = 10

// jobs is the command !jobs: what has started by itself here lately.
func (s *Session) jobs(ctx context.Context, in Inbound, _ string) (string, error) {
	runs, err := s.cfg.Tasks.Runs(ctx, s.place(in), mostRuns)
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return s.text(ctx, "jobs.none"), nil
	}
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "- %s: %s, %s\n", s.cfg.Tasks.WhenIn(s.cfg.Messages.For(ctx, s.room), r.Task, r.Due),
			history.OneLine(r.Task.Content, 80), s.runState(ctx, r))
	}
	return b.String(), nil
}

// runState is how a run went, for people. What failed is told to the operator.
func (s *Session) runState(ctx context.Context, r task.Run) string {
	switch {
	case r.State == task.RunClaimed && !r.Retry.IsZero():
		return s.text(ctx, "jobs.retry", "attempt", fmt.Sprint(r.Attempt), "time", r.Retry.In(s.cfg.Tasks.In(r.Task)).Format("15:04"))
	case r.State == task.RunClaimed:
		return s.text(ctx, "jobs.running")
	case r.State == task.RunFailed:
		return s.text(ctx, "jobs.failed")
	case r.State == task.RunSkipped:
		return s.text(ctx, "jobs.skipped", "why", r.Result.In(s.cfg.Messages.For(ctx, s.room)))
	case r.Task.Mode() == task.Reminder:
		return s.text(ctx, "jobs.reminded")
	case r.Result == "":
		return s.text(ctx, "jobs.done")
	}
	return s.text(ctx, "jobs.result", "result", history.OneLine(string(r.Result), 120))
}
