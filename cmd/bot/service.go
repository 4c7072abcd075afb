package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/manner"
	"reverie/internal/memory"
	"reverie/internal/metrics"
	"reverie/internal/questions"
	"reverie/internal/session"
	"reverie/internal/store"
	"reverie/internal/subsession"
	"reverie/internal/task"
	"reverie/internal/tool"
	"reverie/internal/web"
)

// connection connects the sessions to a transport. The zero value suits commands that only read.
type connection struct {
	transport            chat.Transport
	rooms                chat.Rooms
	onlyRoom, exceptRoom string                                   // rooms whose tasks run: only onlyRoom unless empty, and never exceptRoom
	activeRooms          func(context.Context) ([]string, error)  // rooms where their memories may be asked about; nil = none
	status               func(context.Context, i18n.Say) []string // lines for !status; may be nil
	verify               func(ctx context.Context, person, room, args string) (string, error)
	inspector            *web.Server // nil = it is off
}

// service is the bot with a connection: sessions, tasks and questions. It implements matrix.Handler.
type service struct {
	*bot
	*session.Manager
	connection
	watched   *metrics.Transport // the transport, counting
	scheduler *task.Scheduler
	asker     *questions.Asker
}

func (b *bot) connect(c connection) *service {
	s := &service{bot: b, connection: c, watched: b.counted.Watch(c.transport)}
	s.asker = questions.New(questions.Config{
		Store: questions.Store{DB: b.db, Memory: b.memory}, Messages: b.messages, Owner: b.cfg.Owner(), Location: b.cfg.Zone,
		MaxPerNight: b.cfg.Dreaming.Questions, Rooms: c.rooms, ActiveRooms: c.activeRooms,
	})
	s.scheduler = task.NewScheduler(b.tasks, task.SchedulerConfig{
		OnlyRoom: c.onlyRoom, ExceptRoom: c.exceptRoom, Log: b.log,
		Rooms: session.TaskRooms{Rooms: c.rooms, Transport: c.transport, Messages: b.messages},
	})
	sessionConfig := session.Config{
		Config: command.Config{
			Models: b.models, History: b.history, Memory: b.memory, Tasks: b.tasks, Skills: b.skills, Messages: b.messages,
			Manner: manner.Store{DB: b.db}, Voice: b.cfg.Voice, Profiles: b.profiles(),
			Verify: c.verify, Status: s.statusLines, Dreams: b.dreamHooks(), Usage: b.usage,
		},
		DB: b.db, Prompt: b.prompt, Tools: b.tools, Media: b.media,
		Limits:     session.Limits{Parallel: b.cfg.LLM.Parallel, FileText: b.cfg.Files().Text, SubSessions: subsession.Limits(b.cfg.Subs)},
		Background: b.background, Waiting: b.waiting, Transport: s.watched, Rooms: c.rooms, WindowInputs: b.window.Inputs,
		Isolation: memory.Isolation(b.cfg.Memory.Isolation), Owners: b.cfg.Owners(), Log: b.log,
		Events: map[chat.EventKind]session.Source{chat.ScheduledTask: taskSource{s.scheduler, b.db}, chat.MemoryQuestion: s.asker},
	}
	if c.inspector != nil {
		sessionConfig.Inspector = c.inspector.Link
	}
	if b.cfg.Harvest.Enabled {
		sessionConfig.BeforeEvict, sessionConfig.ObjectiveRole = b.harvester.Wake, "harvest"
	}
	s.Manager = session.New(sessionConfig)
	return s
}

// backgroundLoops returns what runs beside the sessions until its context ends.
func (s *service) backgroundLoops() []func(context.Context) error {
	nightly := func(ctx context.Context) error {
		s.askQuestions(ctx) // those of earlier dreams
		return s.nightly.Run(ctx, s.reportDream)
	}
	loops := []func(context.Context) error{s.models.Run, s.usage.Run, s.window.Run, s.runVectors, nightly, s.runTasks,
		func(ctx context.Context) error { return tool.RunBackground(ctx, s.tools) }}
	if s.cfg.Harvest.Enabled {
		loops = append(loops, s.harvester.Run)
	}
	if k := openKeeper(s.bot); k != nil {
		loops = append(loops, k.Run)
	}
	if s.mcp != nil {
		loops = append(loops, s.mcp.Run)
	}
	if s.inspector != nil {
		loops = append(loops, func(ctx context.Context) error { return s.inspector.Run(ctx, s.inspectorConfig(s.Deliver)) })
	}
	return loops
}

// Deliver implements matrix.Handler.
func (s *service) Deliver(ctx context.Context, in chat.Inbound) error {
	if m, ok := in.(chat.Message); ok {
		_, _, isCommand := command.Parse(m.Text)
		s.watched.Received(m.ID, isCommand && !command.IsRetry(m.Text))
	}
	return s.Manager.Deliver(ctx, in)
}

func (s *service) statusLines(ctx context.Context, say i18n.Say) (lines []string) {
	if s.status != nil {
		lines = s.status(ctx, say)
	}
	return slices.Concat(lines, s.vectorLines(ctx, say), backupLines(ctx, s.bot, say))
}

// runTasks delivers due tasks to their sessions until ctx ends.
func (s *service) runTasks(ctx context.Context) error {
	return s.scheduler.Run(ctx, func(ctx context.Context, r task.Run) error {
		person, err := s.rooms.DirectWith(ctx, r.Task.Room)
		if err != nil {
			return err
		}
		alone := s.rooms.UserID() == "" || person == s.jobPerson(r) // a terminal has one person
		return s.Deliver(ctx, s.jobEvent(ctx, r, alone))
	})
}

// askQuestions sends open questions about memories to people.
func (s *service) askQuestions(ctx context.Context) {
	if err := s.asker.Ask(ctx, s.Deliver); err != nil && ctx.Err() == nil && !errors.Is(err, chat.ErrStopping) {
		s.log.Warn("cannot ask the open questions; will retry after the next dream", "err", err)
	}
}

func (b *bot) jobPerson(r task.Run) string { return cmp.Or(r.Task.User, b.cfg.Owner()) }

// jobEvent converts r to an event of its room. alone means that only that person is there.
func (b *bot) jobEvent(ctx context.Context, r task.Run, alone bool) chat.Event {
	mode := r.Task.Mode()
	return chat.Event{
		Head: chat.Head{ID: r.ID, Room: r.Task.Room, Sender: cmp.Or(r.Task.Label.Readers.Person(), b.jobPerson(r)), At: r.Due},
		Kind: chat.ScheduledTask, Text: b.tasks.RunText(r, alone, b.messages.For(ctx, r.Task.Room)), Label: r.Task.Label,
		Verbatim: r.Notice || mode == task.Reminder, Silent: !r.Notice && mode == task.Silent,
		Mention: !r.Notice && mode == task.Reminder && r.Task.User != "",
	}
}

// taskSource feeds due tasks to the sessions as events. It passes their results back to the
// scheduler.
type taskSource struct {
	*task.Scheduler
	db *store.DB
}

// Wanted implements session.Source. A run that was answered before the data folder was restored is done.
func (j taskSource) Wanted(ctx context.Context, id string) (bool, error) {
	state, err := delivery.InboxState(ctx, j.db, id) // no run is in the inbox otherwise
	switch {
	case err != nil:
		return false, err
	case state == "done":
		return false, j.Scheduler.Done(ctx, id, "", nil)
	}
	return j.Scheduler.Wanted(ctx, id)
}

// Done maps stopped runs and model outages to the scheduler's errors.
func (j taskSource) Done(ctx context.Context, id, answer string, failed error) error {
	switch {
	case errors.Is(failed, agent.ErrStopped):
		failed = task.ErrStopped
	case isOutage(failed):
		failed = fmt.Errorf("%w: %w", task.ErrOutage, failed)
	}
	return j.Scheduler.Done(ctx, id, answer, failed)
}

// isOutage reports whether a model did not answer at all.
func isOutage(failed error) bool {
	var model *llm.Error
	return errors.As(failed, &model) && slices.Contains([]llm.Kind{llm.Unreachable, llm.RateLimited, llm.TimedOut}, model.Kind)
}
