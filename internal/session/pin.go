package session

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/task"
)

// pinEvery is after how many rounds of a turn the model reads again what it is
// working on: by then what it did stands between.
const pinEvery = 8

// taskID is how people, results of the task tool and what falls due name a task.
var taskID = regexp.MustCompile(`\btask_[a-z2-7]{8}\b`)

// pinned is the task that past is about: the active one that was named last, by
// itself, by a person, by the program or by the task tool. A list names none, and a
// reminder is no work until it is due. Empty = there is none.
func (s *Session) pinned(ctx context.Context, past []history.Message) (string, error) {
	tasks, err := s.cfg.Tasks.List(ctx, s.room, "")
	if err != nil || len(tasks) == 0 {
		return "", err
	}
	for _, m := range slices.Backward(past) {
		if m.Role != llm.User && m.Role != llm.Tool {
			continue
		}
		ids := taskID.FindAllString(m.Text, -1)
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) != 1 {
			continue
		}
		for _, t := range tasks {
			if t.ID == ids[0] && t.Status == task.Active && (t.Schedule == nil || t.Mode() != task.Reminder) {
				return t.Line(), nil
			}
		}
	}
	return "", nil
}

// progress is a note on the turn that past ends with, another after each pinEvery
// rounds and empty before.
func progress(past []history.Message) string {
	rounds := 0
	for _, m := range slices.Backward(past) {
		if m.Role == llm.User {
			break
		}
		if m.Role == llm.Assistant && len(m.Calls) > 0 {
			rounds++
		}
	}
	if rounds < pinEvery {
		return ""
	}
	return fmt.Sprintf(" — %d rounds of tools so far: go on with this, or say what is left of it", rounds-rounds%pinEvery)
}
