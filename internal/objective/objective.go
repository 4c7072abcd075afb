// Package objective says which task a room works on. The last message that names a task by its id
// decides; otherwise a model is asked once in four messages. It owns the table objective.
package objective

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// Every is after how many messages of people that name no task a model is asked.
const Every = 4

const (
	mostTasks = 30 // the most urgent ones
	askTime   = time.Minute
)

// Store keeps the task that each room works on.
type Store struct {
	DB      *sql.DB // migrated
	Tasks   *task.Store
	History *history.Store
	Models  *llm.Models
	Role    string // of the models that are asked
}

// taskID is how people, results of the task tool and what falls due name a task.
var taskID = regexp.MustCompile(`\btask_[a-z2-7]{8}\b`)

// Current is the task that past is about: the last that a person, the program or the task tool named by
// itself, else the one that is stored; without an ID, there is none. preview stores nothing.
func (s Store) Current(
	ctx context.Context, talk history.Timeline, where trust.Place, past []history.Message, preview bool,
) (task.Task, error) {
	tasks, err := s.Tasks.List(ctx, where, "")
	if err != nil || len(tasks) == 0 {
		return task.Task{}, err
	}
	if talk.Thread() != "" { // what was said before it is not the thread's
		t, _ := named(past, tasks)
		return t, nil
	}
	stored, asked, err := s.read(ctx, talk.Room())
	if err != nil {
		return task.Task{}, err
	}
	t, at := named(past, tasks)
	if at <= asked { // the model has read that, and what was said since
		return withID(workable(tasks, speaker(past)), stored), nil
	}
	if t.ID != stored && !preview {
		err = s.set(ctx, talk.Room(), "task", t.ID)
	}
	return t, err
}

// Clear forgets which task is worked on in talk: another conversation begins.
func (s Store) Clear(ctx context.Context, talk history.Timeline) error {
	if talk.Thread() != "" { // what is stored belongs to the room's own conversation
		return nil
	}
	return s.set(ctx, talk.Room(), "task", "")
}

// Ask has a model say which task the conversation of the room works on, and stores it, if it is time.
func (s Store) Ask(ctx context.Context, at trust.Place) error {
	tasks, err := s.Tasks.List(ctx, at, "")
	if err != nil || len(workable(tasks, "")) == 0 {
		return err
	}
	_, asked, err := s.read(ctx, at.Room)
	if err != nil {
		return err
	}
	past, err := s.History.Load(ctx, history.Timeline(at.Room))
	if err != nil {
		return err
	}
	choice := workable(tasks, speaker(past))
	choice = choice[:min(len(choice), mostTasks)]
	_, known := named(past, tasks) // up to there, nobody need be asked
	if len(choice) == 0 || peopleAfter(past, max(known, asked)) < Every {
		return nil
	}
	if err := s.set(ctx, at.Room, "asked", past[len(past)-1].ID); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var cold float32
	reply, err := s.Models.Complete(ctx, s.Role, llm.Request{Messages: []llm.Message{{Role: llm.User, Content: question(choice, past)}},
		Think: llm.ThinkOff, Temperature: &cold}, nil)
	if err != nil {
		return err
	}
	id, ok := chosen(reply.Text, choice)
	if !ok {
		return errors.New("the answer names no task of the room, nor none")
	}
	return s.set(ctx, at.Room, "task", id)
}

// Move gives the task of the room from to the room to, unless that has one.
func (s Store) Move(ctx context.Context, from, to string) error {
	_, err := s.DB.ExecContext(ctx, `INSERT INTO objective (room, task, asked) SELECT ?, task, asked FROM objective WHERE room = ?
		ON CONFLICT (room) DO NOTHING`, to, from)
	return store.Wrap(err, "objective: move what is worked on")
}

// read is the id that is stored of a room, and the newest message when a model was asked last.
func (s Store) read(ctx context.Context, room string) (id string, asked int64, err error) {
	err = s.DB.QueryRowContext(ctx, `SELECT task, asked FROM objective WHERE room = ?`, room).Scan(&id, &asked)
	if errors.Is(err, sql.ErrNoRows) {
		return "", 0, nil
	}
	return id, asked, store.Wrap(err, "objective: read what is worked on")
}

// set writes one column of a room's row.
func (s Store) set(ctx context.Context, room, column string, value any) error {
	_, err := s.DB.ExecContext(ctx, `INSERT INTO objective (room, `+column+`) VALUES (?, ?)
		ON CONFLICT (room) DO UPDATE SET `+column+` = excluded.`+column, room, value)
	return store.Wrap(err, "objective: store what is worked on")
}

// named is the one of tasks that past names last, and the message that does.
func named(past []history.Message, tasks []task.Task) (t task.Task, at int64) {
	for _, m := range slices.Backward(past) {
		if m.Role != llm.User && m.Role != llm.Tool {
			continue
		}
		ids := taskID.FindAllString(m.Text, -1)
		slices.Sort(ids)
		if ids = slices.Compact(ids); len(ids) == 1 {
			if t = withID(tasks, ids[0]); t.ID != "" {
				return t, m.ID
			}
		}
	}
	return task.Task{}, 0
}

// withID is the one of tasks with that id, if it can be worked on.
func withID(tasks []task.Task, id string) task.Task {
	for _, t := range tasks {
		if t.ID == id && isWork(t) {
			return t
		}
	}
	return task.Task{}
}

// isWork reports whether t can be worked on: a reminder is no work until it is due.
func isWork(t task.Task) bool {
	return t.Status == task.Active && (t.Schedule == nil || t.Mode() != task.Reminder)
}

// workable are those of tasks that person can be working on, the most urgent first: what another
// person wants is theirs. An empty person stands for all.
func workable(tasks []task.Task, person string) []task.Task {
	return slices.DeleteFunc(slices.Clone(tasks), func(t task.Task) bool {
		return !isWork(t) || t.User != "" && person != "" && t.User != person
	})
}

// speaker is who wrote last; empty = nobody has.
func speaker(past []history.Message) string {
	for _, m := range slices.Backward(past) {
		if m.Role == llm.User && m.Sender != "" {
			return m.Sender
		}
	}
	return ""
}

// peopleAfter is how many of past are of people, and newer than id.
func peopleAfter(past []history.Message, id int64) (n int) {
	for _, m := range past {
		if m.ID > id && m.Role == llm.User && m.Sender != "" && !history.IsRedacted(m) {
			n++
		}
	}
	return n
}
