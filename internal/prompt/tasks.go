package prompt

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/task"
	"reverie/internal/trust"
)

// taskKey names the tasks that may be read at a place.
type taskKey struct {
	room    string
	readers trust.Readers
}

// taskCache holds the tasks of a place as they were last.
type taskCache struct {
	tasks   []task.Task
	content *content
}

// gatherTasks gathers the open tasks that may be read where the answer is, most urgent first.
func gatherTasks(_ context.Context, q *question) (*content, error) {
	tasks, err := q.tasks()
	if err != nil {
		return nil, err
	}
	a := q.a
	a.mu.Lock()
	defer a.mu.Unlock()
	key := taskKey{q.turn.Room, q.turn.Place().Readers()}
	c := a.tasks[key]
	if c == nil || !sameTasks(c.tasks, tasks) {
		c = &taskCache{tasks: tasks, content: taskContent(tasks)}
		a.tasks[key] = c
	}
	return c.content, nil
}

// sameTasks reports whether a and b are the same slice, which the store never changes,
// or read the same.
func sameTasks(a, b []task.Task) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] || slices.EqualFunc(a, b, sameTask)
}

// sameTask reports whether two tasks read the same and are labelled the same.
func sameTask(a, b task.Task) bool {
	return a.ID == b.ID && a.Content == b.Content && a.Priority == b.Priority && a.Status == b.Status && a.Updated.Equal(b.Updated) && a.Label == b.Label &&
		(a.Schedule == nil) == (b.Schedule == nil) && (a.Schedule == nil || *a.Schedule == *b.Schedule)
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
