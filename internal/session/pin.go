package session

import (
	"context"
	"regexp"
	"slices"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// taskID is how people, results of the task tool and what falls due name a task.
var taskID = regexp.MustCompile(`\btask_[a-z2-7]{8}\b`)

// pinned is the task that past is about: the last that a person, the program or the task tool named by
// itself, else the one that is stored. preview stores nothing.
func (s *Session) pinned(ctx context.Context, at trust.Place, past []history.Message, preview bool) (worked, error) {
	tasks, err := s.cfg.Tasks.List(ctx, at, "")
	if err != nil || len(tasks) == 0 {
		return worked{}, err
	}
	if s.thread != "" { // what was said before it is not the thread's
		id, _ := taskNamed(past, tasks)
		return workedOn(tasks, id), nil
	}
	kept, err := s.readPin(ctx)
	if err != nil {
		return worked{}, err
	}
	found, _ := taskNamed(after(past, kept.asked), tasks)
	if found == "" {
		return workedOn(workable(tasks, speaker(past)), kept.id), nil
	}
	if found != kept.id && !preview {
		if err := s.pin(ctx, found); err != nil {
			return worked{}, err
		}
	}
	return workedOn(tasks, found), nil
}

// worked is a task that is worked on, as the model reads it.
type worked struct {
	line string // empty = none is
	from trust.Integrity
}

// pin keeps id as the task that is worked on in the room's own conversation; empty = none.
func (s *Session) pin(ctx context.Context, id string) error {
	if s.thread != "" {
		return nil
	}
	return s.notePin(ctx, `pin = ?`, id)
}

// taskNamed is the id of the one of tasks that past names last, and the message that does; empty = none.
func taskNamed(past []history.Message, tasks []task.Task) (id string, at int64) {
	for _, m := range slices.Backward(past) {
		if m.Role != llm.User && m.Role != llm.Tool {
			continue
		}
		ids := taskID.FindAllString(m.Text, -1)
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) == 1 && workedOn(tasks, ids[0]).line != "" {
			return ids[0], m.ID
		}
	}
	return "", 0
}

// workedOn is the line of the one of tasks with that id, if it is being worked on.
func workedOn(tasks []task.Task, id string) worked {
	for _, t := range tasks {
		if t.ID == id && isWork(t) {
			return worked{t.Line(i18n.English), t.Label.Integrity}
		}
	}
	return worked{}
}
