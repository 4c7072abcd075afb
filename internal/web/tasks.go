package web

import (
	"context"

	"reverie/internal/i18n"
	"reverie/internal/task"
)

// tasks lists tasks and their last runs.
func tasks(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Tasks.InRoom(ctx, "", task.All)
	if err != nil {
		return view{}, err
	}
	runs, err := v.cfg.Tasks.Runs(ctx, "", "", 200)
	if err != nil {
		return view{}, err
	}
	list := block{Head: []string{"Task", "State", "Next", "Runs", "Room"}, Empty: "There are no tasks."}
	for _, t := range all {
		if !v.sees(t.Label.Readers) || len(list.Rows) == 200 {
			continue
		}
		list.Rows = append(list.Rows, []cell{{Text: t.Line(i18n.English), Class: "text"}, {Text: string(t.Status)}, v.at(t.NextDue),
			count(t.Runs), {Text: t.Room}})
	}
	past := block{Title: "Runs", Head: []string{"Due", "Task", "State", "Attempt", "Result"}, Empty: "Nothing was due yet."}
	for _, r := range runs {
		if !v.sees(r.Task.Label.Readers) {
			continue
		}
		past.Rows = append(past.Rows, []cell{v.at(r.Due), {Text: r.Task.Content, Class: "text"}, {Text: string(r.State)},
			count(r.Attempt), {Text: r.Result.In(i18n.English), Class: "text"}})
	}
	return view{Title: "Tasks", Blocks: []block{list, past}}, nil
}
