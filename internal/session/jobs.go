package session

import (
	"context"
	"strings"
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
