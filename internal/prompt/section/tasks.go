package section

import (
	"context"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/task"
)

// gatherTasks gathers the open tasks that may be read in this place. The most urgent is first.
func gatherTasks(_ context.Context, q *Question) (*Content, error) {
	tasks, err := q.tasks()
	if err != nil {
		return nil, err
	}
	c := Content{Source: "tasks", Rest: "the task tool lists them all", None: "There are no open tasks any more."}
	for _, t := range tasks {
		line := OneLine(t.Line(i18n.English), 500)
		if t.Status == task.Paused && !strings.Contains(line, "paused") {
			line += " (paused)"
		}
		c.Lines = append(c.Lines, Line{Text: line, from: t.Label.Integrity})
	}
	return NewContent(c), nil
}
