package prompt

import (
	"context"
	"strings"

	"reverie/internal/task"
)

// gatherTasks gathers the open tasks that may be read where the answer is, most urgent first.
func gatherTasks(_ context.Context, q *question) (*content, error) {
	tasks, err := q.tasks()
	if err != nil {
		return nil, err
	}
	return taskContent(tasks), nil
}

func taskContent(tasks []task.Task) *content {
	c := content{source: "tasks", rest: "the task tool lists them all", none: "There are no open tasks any more."}
	for _, t := range tasks {
		line := oneLine(t.Line(), 500)
		if t.Status == task.Paused && !strings.Contains(line, "paused") {
			line += " (paused)"
		}
		c.lines, c.from = append(c.lines, line), append(c.from, t.Label.Integrity)
	}
	return newContent(c)
}
