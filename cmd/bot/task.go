package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/session"
	"reverie/internal/task"
	"reverie/internal/trust"
)

type taskCommand struct {
	List     *taskListCommand     `arg:"subcommand:list" help:"List the tasks."`
	Show     *taskShowCommand     `arg:"subcommand:show" help:"Show a task and its last runs."`
	Add      *taskAddCommand      `arg:"subcommand:add" help:"Add a task."`
	Complete *taskCompleteCommand `arg:"subcommand:complete" help:"Complete a task."`
	Pause    *taskPauseCommand    `arg:"subcommand:pause" help:"Pause a task."`
	Resume   *taskResumeCommand   `arg:"subcommand:resume" help:"Resume a paused task."`
	Delete   *taskDeleteCommand   `arg:"subcommand:delete" help:"Delete a task."`
	Runs     *taskRunsCommand     `arg:"subcommand:runs" help:"Show past runs of tasks, and how they went."`
}

func (b *bot) printRuns(c console, runs []task.Run) error {
	return printList(c, runs, "No task has run yet.", func(r task.Run) string {
		return fmt.Sprintf("%s  #%s  %s  %s", b.tasks.FormatTime(i18n.English, r.Task, r.Due), r.Task.ID, r.State,
			strings.Join(strings.Fields(r.Result.String()), " "))
	})
}

type taskListCommand struct {
	Room string `placeholder:"ROOM" help:"Only this room."`
	All  bool   `help:"Also the completed ones."`
}

func (l taskListCommand) Run(ctx context.Context, c console, b *bot) error {
	status := task.Status("")
	if l.All {
		status = task.All
	}
	tasks, err := b.tasks.InRoom(ctx, l.Room, status)
	if err != nil {
		return err
	}
	return printList(c, tasks, "There are no tasks.", func(t task.Task) string {
		why := ""
		if t.NextDue.IsZero() && t.Status == task.Paused && t.Reason != "" {
			why = ", because " + t.Reason.String()
		}
		return fmt.Sprintf("%s  %s%s", t.Room, b.formatTask(t), why)
	})
}

type taskShowCommand struct {
	ID string `arg:"positional,required" help:"The task."`
}

func (s taskShowCommand) Run(ctx context.Context, c console, b *bot) error {
	t, err := b.tasks.Find(ctx, s.ID)
	if err != nil {
		return err
	}
	runs, err := b.tasks.Runs(ctx, "", t.ID, 20)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, struct {
			task.Task
			Last []task.Run `json:"last"`
		}{t, runs})
	}
	fmt.Fprintf(c.out, "%s\nroom: %s\nmode: %s, catch up: %s\nruns: %d, failures in a row: %d\n", t.Line(i18n.English), t.Room, t.Mode(),
		t.CatchUp, t.Runs, t.Failures)
	for _, l := range [][2]string{{"asked by", t.User}, {"does", t.Prompt}, {"reason", t.Reason.String()}, {"last result", t.LastResult}} {
		if l[1] != "" {
			fmt.Fprintf(c.out, "%s: %s\n", l[0], l[1])
		}
	}
	if !t.NextDue.IsZero() {
		fmt.Fprintf(c.out, "next: %s\n", b.tasks.FormatTime(i18n.English, t, t.NextDue))
	}
	return b.printRuns(c, runs)
}

type taskAddCommand struct {
	Text     []string `arg:"positional,required" help:"What is to be done."`
	Room     string   `placeholder:"ROOM" help:"The room of the task; default: the room with the latest message."`
	When     string   `placeholder:"WORDS" help:"When, in English words: \"tomorrow at 7\", \"every Monday at 9\", \"in 20 minutes\"."`
	Prompt   string   `placeholder:"TEXT" help:"What the model does then; without it, the task is a reminder."`
	Silent   bool     `help:"With --prompt: send no message to the room."`
	Priority int      `default:"5" help:"1 (most urgent) to 10."`
}

// Run adds a task; a running bot sees it within ten seconds.
func (a taskAddCommand) Run(ctx context.Context, c console, b *bot) error {
	sessions := b.connect(connection{})
	t := task.Task{Room: a.Room, User: b.cfg.Owner(), Content: strings.Join(a.Text, " "), Priority: a.Priority, Prompt: a.Prompt,
		Background: a.Silent}
	if t.Room == "" {
		rooms, err := session.Rooms(ctx, b.db)
		if err != nil {
			return err
		}
		if b.cfg.Matrix == nil {
			rooms = append(rooms, terminalRoom)
		}
		if len(rooms) == 0 {
			return usageError{errors.New("nobody has written to the bot yet: give the room with --room")}
		}
		t.Room = rooms[0]
	}
	t.Label.Integrity = trust.Owner
	var err error
	if t.Label.Readers, err = sessions.Readers(ctx, t.Room); err != nil {
		return err
	}
	if t.Room == terminalRoom { // only the owner, even before the first message
		t.Label.Readers = trust.PersonReaders(b.cfg.Owner())
	}
	if t.Schedule, err = a.schedule(time.Now(), b.cfg.Zone); err != nil {
		return usageError{err}
	}
	if t, err = b.tasks.Add(ctx, t); err != nil {
		return usageError{err}
	}
	return b.printTask(c, "Added", t)
}

// schedule parses --when: a moment or a phrase.
func (a taskAddCommand) schedule(now time.Time, loc *time.Location) (*task.Schedule, error) {
	if a.When == "" {
		return nil, nil //nolint:nilnil // a task need not have a schedule
	}
	for _, kind := range []string{"once", ""} {
		if s, err := (task.Schedule{Type: kind, At: a.When}).Validate(now, loc); err == nil {
			return &s, nil
		}
	}
	return nil, fmt.Errorf(`--when %q is not understood: write English words such as "tomorrow at 7", "every Monday at 9" or `+
		`"in 20 minutes"`, a.When)
}

func (b *bot) printTask(c console, word string, t task.Task) error {
	return c.print(t, "%s: %s\n", word, b.formatTask(t))
}

// formatTask formats a task with its next due time.
func (b *bot) formatTask(t task.Task) string {
	if t.NextDue.IsZero() {
		return t.Line(i18n.English)
	}
	return t.Line(i18n.English) + ", next " + b.tasks.FormatTime(i18n.English, t, t.NextDue)
}

// oneTask is the argument of commands that change a task.
type oneTask struct {
	ID string `arg:"positional,required" help:"The task."`
}

// change applies do to the task and prints the result.
func (o oneTask) change(ctx context.Context, c console, b *bot, word string,
	do func(context.Context, trust.Place, string) (task.Task, error),
) error {
	t, err := b.tasks.Find(ctx, o.ID)
	if err != nil {
		return err
	}
	if t, err = do(ctx, t.Place(), t.ID); err != nil {
		return err
	}
	return b.printTask(c, word, t)
}

type taskCompleteCommand struct {
	oneTask
	Reason []string `arg:"positional,required" help:"What was achieved."`
}

func (t taskCompleteCommand) Run(ctx context.Context, c console, b *bot) error {
	return t.change(ctx, c, b, "Completed", func(ctx context.Context, at trust.Place, id string) (task.Task, error) {
		return b.tasks.Complete(ctx, trust.Caller{Place: at, Integrity: trust.Owner}, id, strings.Join(t.Reason, " "))
	})
}

type taskPauseCommand struct{ oneTask }

func (t taskPauseCommand) Run(ctx context.Context, c console, b *bot) error {
	return t.change(ctx, c, b, "Paused", b.tasks.Pause)
}

type taskResumeCommand struct{ oneTask }

func (t taskResumeCommand) Run(ctx context.Context, c console, b *bot) error {
	return t.change(ctx, c, b, "Active again", b.tasks.Resume)
}

type taskDeleteCommand struct{ oneTask }

func (t taskDeleteCommand) Run(ctx context.Context, c console, b *bot) error {
	return t.change(ctx, c, b, "Deleted", b.tasks.Delete)
}

type taskRunsCommand struct {
	ID    string `arg:"positional" help:"Only those of this task."`
	Room  string `placeholder:"ROOM" help:"Only those of this room."`
	Count int    `default:"20" help:"How many, latest first."`
}

func (r taskRunsCommand) Run(ctx context.Context, c console, b *bot) error {
	runs, err := b.tasks.Runs(ctx, r.Room, r.ID, r.Count)
	if err != nil {
		return err
	}
	return b.printRuns(c, runs)
}
