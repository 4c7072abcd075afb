package session

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/task"
)

// listTasks is the command !tasks.
func (s *Session) listTasks(ctx context.Context, _ Inbound, _ string) (string, error) {
	tasks, err := s.cfg.Tasks.List(ctx, s.room, "")
	if err != nil {
		return "", err
	}
	if len(tasks) == 0 {
		return "No open tasks in this room.", nil
	}
	var b strings.Builder
	for _, t := range tasks {
		b.WriteString("- " + t.Line())
		if !t.NextDue.IsZero() {
			b.WriteString(", next " + s.cfg.Tasks.When(t, t.NextDue))
		}
		b.WriteString("\n")
	}
	return b.String(), nil
}

// mostRuns is how many runs !jobs shows.
const mostRuns = 10

// jobs is the command !jobs: what has started by itself here lately.
func (s *Session) jobs(ctx context.Context, _ Inbound, _ string) (string, error) {
	runs, err := s.cfg.Tasks.Runs(ctx, s.room, "", mostRuns)
	if err != nil {
		return "", err
	}
	if len(runs) == 0 {
		return "Nothing has started by itself in this room yet. `!tasks` shows what is due when.", nil
	}
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "- %s: %s, %s\n", s.cfg.Tasks.When(r.Task, r.Due), oneLine(r.Task.Content, 80), s.runState(r))
	}
	return b.String(), nil
}

// runState is how a run went, for people. What failed is told to the operator.
func (s *Session) runState(r task.Run) string {
	switch {
	case r.State == task.RunClaimed && !r.Retry.IsZero():
		return fmt.Sprintf("failed; attempt %d at %s", r.Attempt, r.Retry.In(s.cfg.Tasks.In(r.Task)).Format("15:04"))
	case r.State == task.RunClaimed:
		return "under way"
	case r.State == task.RunFailed:
		return "failed; the reason is in my log"
	case r.State == task.RunSkipped:
		return "left out: " + r.Result
	case r.Task.Mode() == task.Reminder:
		return "reminded"
	case r.Result == "":
		return "done"
	}
	return "done: " + oneLine(r.Result, 120)
}
