package web

import (
	"context"
	"errors"

	"reverie/internal/i18n"
	"reverie/internal/task"
)

// tasks lists tasks and their last runs.
func tasks(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Tasks.InRoom(ctx, "", task.All)
	list := block{Head: []string{"Task", "State", "Next", "Runs", "Room"}, Empty: "There are no tasks."}
	for _, t := range all {
		if v.sees(t.Label.Readers) && len(list.Rows) < 200 {
			list.Rows = append(list.Rows, v.row(long(t.Line(i18n.English)), t.Status, t.NextDue, t.Runs, t.Room))
		}
	}
	runs, err2 := v.cfg.Tasks.Runs(ctx, "", "", 200)
	past := block{Title: "Runs", Head: []string{"Due", "Task", "State", "Attempt", "Result"}, Empty: "Nothing was due yet."}
	for _, r := range runs {
		if v.sees(r.Task.Label.Readers) {
			past.Rows = append(past.Rows, v.row(r.Due, long(r.Task.Content), r.State, r.Attempt, long(r.Result.In(i18n.English))))
		}
	}
	return view{Title: "Tasks", Blocks: []block{list, past}}, errors.Join(err, err2)
}
