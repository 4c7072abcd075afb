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
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/session"
	"reverie/internal/subsession"
	"reverie/internal/task"
)

// connection is what sessions talk through. The zero value is for who only looks.
type connection struct {
	transport     chat.Transport
	rooms         chat.Rooms
	only, without string                                   // whose tasks are worked on: only that room's unless empty, and not that one's
	talked        func(context.Context) ([]string, error)  // the rooms to ask in about what is known of them; nil = none
	status        func(context.Context, i18n.Say) []string // lines for !status; may be nil
	verify        func(ctx context.Context, person, room, args string) (string, error)
}

// service is the bot with a connection: sessions, and what comes to them by itself.
type service struct {
	*bot
	connection
	sessions  *session.Manager
	scheduler *task.Scheduler
	asking    *questions.Asker
}

// connect builds the sessions over a connection.
func (b *bot) connect(c connection) *service {
	s := &service{bot: b, connection: c}
	s.asking = questions.New(questions.Config{
		Store: questions.Store{DB: b.db, Memory: b.memory}, Messages: b.messages, Owner: b.cfg.Owner(), Location: b.cfg.Zone,
		Most: b.cfg.Dreaming.Questions, Rooms: c.rooms, Talked: c.talked,
	})
	s.scheduler = task.NewScheduler(b.tasks, task.SchedulerConfig{
		Room: c.only, Without: c.without, Log: b.log,
		Rooms: session.TaskRooms{Rooms: c.rooms, Transport: c.transport, Messages: b.messages},
	})
	how := session.Config{
		Stores: session.Stores{
			DB: b.db, Models: b.models, Prompt: b.prompt, Tools: b.tools, History: b.history, Memory: b.memory,
			Tasks: b.tasks, Skills: b.skills, Media: b.media, Messages: b.messages,
		},
		Limits:  session.Limits{FileText: b.cfg.Files().Text, SubSessions: subsession.Limits(b.cfg.Subs)},
		Program: session.Program{Hooks: command.Hooks{Verify: c.verify, Status: s.statusLines, Dreams: b.dreams()}},

		Background: b.background, Transport: c.transport, Rooms: c.rooms, WindowInputs: b.window.Inputs,
		Isolation: memory.Isolation(b.cfg.Memory.Isolation), Owners: b.cfg.Owners(), Location: b.cfg.Zone, Log: b.log,
		Events: map[chat.EventKind]session.Source{chat.ScheduledTask: jobs{s.scheduler}, chat.MemoryQuestion: s.asking},
	}
	if b.cfg.Harvest.Enabled {
		how.BeforeEvict, how.ObjectiveRole = b.harvester.Wake, "harvest"
	}
	s.sessions = session.New(how)
	return s
}

// runs is what works beside the sessions, each until its context ends.
func (s *service) runs() []func(context.Context) error {
	return []func(context.Context) error{s.models.Run, s.window.Run, s.runVectors, s.runHarvest, s.runNightly, s.runTasks}
}

// statusLines are lines for !status.
func (s *service) statusLines(ctx context.Context, say i18n.Say) (lines []string) {
	if s.status != nil {
		lines = s.status(ctx, say)
	}
	return append(lines, s.vectorLines(ctx, say)...)
}

// Deliver implements matrix.Handler.
func (s *service) Deliver(ctx context.Context, in chat.Inbound) error {
	return s.sessions.Deliver(ctx, in)
}

// RoomReplaced implements matrix.Handler.
func (s *service) RoomReplaced(ctx context.Context, from, to string) error {
	return s.sessions.Move(ctx, from, to)
}

// RoomLeft implements matrix.Handler.
func (s *service) RoomLeft(room string) { s.sessions.LeaveRoom(room) }

// Redacted implements matrix.Handler.
func (s *service) Redacted(ctx context.Context, event string) error { return s.takenBack(ctx, event) }

// runTasks has what falls due worked on until ctx ends.
func (s *service) runTasks(ctx context.Context) error {
	return s.scheduler.Run(ctx, func(ctx context.Context, r task.Run) error {
		with, err := s.rooms.DirectWith(ctx, r.Task.Room)
		if err != nil {
			return err
		}
		alone := s.rooms.UserID() == "" || with == s.jobPerson(r) // at a terminal sits one person
		return s.sessions.Deliver(ctx, s.jobEvent(ctx, r, alone))
	})
}

// runNightly asks what an earlier run was to ask, and dreams when it is time.
func (s *service) runNightly(ctx context.Context) error {
	s.askPeople(ctx)
	return s.nightly.Run(ctx, s.tellDream)
}

// askPeople asks people what only they can decide.
func (s *service) askPeople(ctx context.Context) {
	if err := s.asking.Ask(ctx, s.sessions.Deliver); err != nil && ctx.Err() == nil && !errors.Is(err, chat.ErrStopping) {
		s.log.Warn("people could not be asked what only they can decide; it is tried again after the next dream", "err", err)
	}
}

// jobPerson is whom r is for.
func (b *bot) jobPerson(r task.Run) string { return cmp.Or(r.Task.User, b.cfg.Owner()) }

// jobEvent is r as an event of its room; alone tells that nobody else is there.
func (b *bot) jobEvent(ctx context.Context, r task.Run, alone bool) chat.Event {
	mode := r.Task.Mode()
	return chat.Event{
		Head: chat.Head{ID: r.ID, Room: r.Task.Room, Sender: cmp.Or(r.Task.Label.Readers.Person(), b.jobPerson(r)), At: r.Due},
		Kind: chat.ScheduledTask, Text: b.tasks.Text(r, alone, b.messages.For(ctx, r.Task.Room)), Label: r.Task.Label,
		Verbatim: r.Notice || mode == task.Reminder, Silent: !r.Notice && mode == task.Silent,
		Mention: !r.Notice && mode == task.Reminder && r.Task.User != "",
	}
}

// jobs ties the scheduler to the sessions: what falls due enters by the door of
// messages, and what came of it goes back.
type jobs struct{ *task.Scheduler }

// Done tells what a person stopped, and what had no model to work with, from what failed.
func (j jobs) Done(ctx context.Context, id, answer string, failed error) error {
	switch {
	case errors.Is(failed, agent.ErrStopped):
		failed = task.ErrStopped
	case outage(failed):
		failed = fmt.Errorf("%w: %w", task.ErrOutage, failed)
	}
	return j.Scheduler.Done(ctx, id, answer, failed)
}

// outage reports whether failed says that a model did not answer, rather than what
// it answered.
func outage(failed error) bool {
	var model *llm.Error
	return errors.As(failed, &model) && slices.Contains([]llm.Kind{llm.Unreachable, llm.RateLimited, llm.TimedOut}, model.Kind)
}
