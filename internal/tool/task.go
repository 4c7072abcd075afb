package tool

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
	"reverie/internal/task"
	"reverie/internal/trust"
)

type taskArgs struct {
	Action          string `json:"action" must:"add,update,complete,pause,resume,delete,list" doc:"What to do."`
	Content         string `json:"content" doc:"What is to be done."`
	TaskID          string `json:"task_id" doc:"Such as task_ab12cd34."`
	Reason          string `json:"reason" doc:"complete: what shows that it is done."`
	Priority        int    `json:"priority" rule:"min=1,max=10" doc:"1 is the most urgent; 5 if left out." brief:"-"`
	Status          string `json:"status" enum:"active,paused,completed,all" doc:"list: which; active and paused if left out." brief:"-"`
	ScheduleType    string `json:"schedule_type" enum:"once,daily,weekly,monthly,interval,cron,none" doc:"none removes it." brief:"-"`
	At              string `json:"at" doc:"English words: in 20 minutes, every Monday at 9. With schedule_type HH:MM or 2026-12-24 18:00."`
	DayOfWeek       string `json:"day_of_week" doc:"mon, tue, wed, thu, fri, sat or sun." brief:"-"`
	DayOfMonth      int    `json:"day_of_month" rule:"min=1,max=31" doc:"1 to 31." brief:"-"`
	IntervalSeconds int    `json:"interval_seconds" rule:"min=60" doc:"Between two times." brief:"-"`
	WindowStart     string `json:"window_start" doc:"Not before, HH:MM." brief:"-"`
	WindowEnd       string `json:"window_end" doc:"Not after, HH:MM." brief:"-"`
	Cron            string `json:"cron" doc:"Such as 30 7 * * mon-fri." brief:"-"`
	Zone            string `json:"zone" doc:"Such as Asia/Tokyo." brief:"-"`
	CatchUp         string `json:"catch_up" enum:"once,skip,all" doc:"Of missed times, run one late (default), none or all." brief:"-"`
	Prompt          string `json:"ai_prompt" doc:"What you are to do then; without it, the person is reminded." brief:"-"`
	Background      *bool  `json:"background" doc:"With ai_prompt: say nothing in the room." brief:"-"`
}

// scheduleArgs are the arguments of a schedule.
var scheduleArgs = []string{"schedule_type", "at", "day_of_week", "day_of_month", "interval_seconds",
	"window_start", "window_end", "cron", "zone"}

// taskDone names the effect of an action.
var taskDone = map[string]string{"add": "Added", "update": "Changed", "complete": "Completed", "pause": "Paused",
	"resume": "Active again", "delete": "Deleted"}

// task changes or lists the tasks that may be read in this place; it hides all others.
func (s *Set) task(ctx context.Context, scope Scope, a taskArgs) (string, error) {
	schedule, err := s.checkTask(scope, a)
	if err != nil {
		return "", err
	}
	by := scope.caller()
	var t task.Task
	if a.TaskID != "" { // the result shows the previous text
		if was, err := s.cfg.Tasks.Get(ctx, by.Place, a.TaskID); err == nil {
			scope.MarkShown(was.Label.Integrity)
		}
	}
	switch a.Action {
	case "list":
		return s.listTasks(ctx, scope, a.Status)
	case "add":
		t = task.Task{Room: scope.Room, User: scope.User, Label: by.Label(), Content: a.Content, Priority: a.Priority, Schedule: schedule,
			Prompt: a.Prompt, CatchUp: task.CatchUp(a.CatchUp), SourceEvent: scope.causeID(),
			Background: a.Background != nil && *a.Background}
		if scope.Key != "" {
			t.ID = "task_" + scope.Key
		}
		t, err = s.cfg.Tasks.Add(ctx, t)
	case "update":
		t, err = s.cfg.Tasks.Update(ctx, by.Place, a.TaskID, a.patch(schedule, by.Integrity, scope.causeID()))
	case "complete":
		if t, err = s.cfg.Tasks.Get(ctx, by.Place, a.TaskID); err == nil {
			err = task.CheckReason(a.Reason, t.Content)
		}
		if err == nil {
			t, err = s.cfg.Tasks.Complete(ctx, by, a.TaskID, a.Reason)
		}
	case "pause":
		t, err = s.cfg.Tasks.Pause(ctx, by.Place, a.TaskID)
	case "resume":
		t, err = s.cfg.Tasks.Resume(ctx, by.Place, a.TaskID)
	case "delete":
		t, err = s.cfg.Tasks.Delete(ctx, by.Place, a.TaskID)
	}
	if err != nil {
		return "", err
	}
	text := taskDone[a.Action] + ": " + t.Line(i18n.English)
	if !t.NextDue.IsZero() && a.Action != "pause" {
		text += "\nDue next: " + s.cfg.Tasks.FormatTime(i18n.English, t, t.NextDue)
	}
	return text, nil
}

// caller returns who asks for a change of a task or goal.
func (s Scope) caller() trust.Caller {
	return trust.Caller{Place: s.Place(), Integrity: s.Label.Integrity}
}

// checkTask reports everything missing for an action, and parses the schedule; nil = none given.
func (s *Set) checkTask(scope Scope, a taskArgs) (*task.Schedule, error) {
	var found faults
	given := sentNames(a)
	if a.Action == "add" && a.Content == "" {
		found.add("content: is missing; send what is to be done")
	}
	if a.Action != "add" && a.Action != "list" && a.TaskID == "" {
		found.add("task_id: is missing; send the id of the task, such as task_ab12cd34 (action list shows them)")
	}
	if a.Action == "complete" && a.Reason == "" {
		found.add("reason: is missing; send a sentence that says how it ended")
	}
	if a.Action == "update" && len(given) <= 2 { // the action and the task only
		found.add("update needs something to change: content, priority, ai_prompt, background or a schedule")
	}
	var schedule *task.Schedule
	if a.Action == "add" || a.Action == "update" {
		switch parts := slices.DeleteFunc(given, func(name string) bool { return !slices.Contains(scheduleArgs[1:], name) }); {
		case a.ScheduleType == "" && len(parts) > 0 && !a.inWords(parts):
			found.add("schedule_type: is missing, and %s alone is no schedule; send the whole schedule", strings.Join(parts, ", "))
		case a.ScheduleType == "none" && len(parts) > 0:
			found.add("schedule_type: none means no schedule, but there is %s; remove one of the two", strings.Join(parts, ", "))
		case a.ScheduleType != "none" && a.ScheduleType+a.At != "":
			plan := a.schedule()
			if zone := scope.Now.Location(); zone != s.cfg.Location && plan.Zone == "" {
				plan.Zone = zone.String() // the task keeps the person's zone
			}
			valid, err := plan.Validate(scope.Now, s.cfg.Location)
			if err != nil {
				found.add("%v", err)
			}
			schedule = &valid
		}
	}
	if len(found) > 0 {
		return nil, found
	}
	return schedule, nil
}

// inWords reports whether at may hold the whole schedule, as in "every Monday at 9".
func (a taskArgs) inWords(parts []string) bool {
	more := slices.ContainsFunc(parts, func(name string) bool { return name != "at" && name != "zone" })
	return a.At != "" && !more && !clock().MatchString(strings.TrimSpace(a.At))
}

// clock is a time of day. Alone it is ambiguous: once, or every day.
var clock = lazyregexp.New(`^[0-9]{1,2}:[0-9]{2}$`)

func (a taskArgs) schedule() task.Schedule {
	return task.Schedule{
		Type: a.ScheduleType, At: a.At, DayOfWeek: a.DayOfWeek, DayOfMonth: a.DayOfMonth,
		IntervalSeconds: a.IntervalSeconds, WindowStart: a.WindowStart, WindowEnd: a.WindowEnd,
		Expression: a.Cron, Zone: a.Zone,
	}
}

func (a taskArgs) patch(schedule *task.Schedule, by trust.Integrity, asked string) task.Patch {
	return task.Patch{Integrity: by, SourceEvent: asked, Schedule: schedule, ClearSchedule: a.ScheduleType == "none",
		Background: a.Background,
		Content:    ifSent(a.Content), Priority: ifSent(a.Priority), Prompt: ifSent(a.Prompt), CatchUp: ifSent(task.CatchUp(a.CatchUp))}
}

// ifSent returns a pointer to an argument that was sent; nil = it was not.
func ifSent[T comparable](argument T) *T {
	var none T
	if argument == none {
		return nil
	}
	return &argument
}

func (s *Set) listTasks(ctx context.Context, scope Scope, status string) (string, error) {
	tasks, err := s.cfg.Tasks.List(ctx, scope.Place(), task.Status(status))
	if err != nil {
		return "", err
	}
	var lines []string
	for _, t := range tasks {
		line := t.Line(i18n.English)
		scope.MarkShown(t.Label.Integrity)
		if t.Prompt != "" {
			line += " → " + t.Prompt
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return "There are no such tasks in this room.", nil
	}
	return strings.Join(lines, "\n"), nil
}
