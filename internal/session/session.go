package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// Session owns one conversation, of a room or of a thread in it: it alone appends to its
// history, and it works on one message at a time.
type Session struct {
	*Manager
	talk   history.Talk // the conversation: what was said, its summary and its prompt are its own
	room   string       // where it is held; everything else belongs to the room
	thread string       // in which thread of it, by its root; empty = in none
	log    *slog.Logger

	mail *mailbox

	meanwhile *meanwhile    // of the answer that is worked on; nil = nobody waits for one
	taken     int64         // up to this message of ours, its markers are known to be taken in
	along     storing       // what is stored with the next transaction of the turn; nil = nothing
	readBy    trust.Readers // who reads the conversation, as separate found it

	newest  chat.Head     // of what was worked on
	counted int64         // the answer whose use of memories was counted last
	sent    []llm.Message // what the model had before it, the last time

	usage usage
	paces map[string]*pace // by sender
}

func newSession(m *Manager, talk history.Talk) *Session {
	s := &Session{Manager: m, talk: talk, room: talk.Room(), thread: talk.Thread(), log: m.cfg.Log.With("room", talk.Room()),
		mail: newMailbox(), paces: map[string]*pace{}}
	if s.thread != "" {
		s.log = s.log.With("thread", s.thread)
	}
	return s
}

// Run answers the room's messages one after the other until ctx ends. The message in hand is
// worked on under work, which outlives ctx by the grace period.
func (s *Session) Run(ctx, work context.Context) {
	quiet := time.NewTimer(time.Hour)
	defer quiet.Stop()
	kept := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.mail.ready:
		case <-quiet.C: // keeping a talk costs more than a turn, and nobody waits for it
			if kept && s.rest() {
				return
			}
			if !kept {
				s.recallable(work)
				kept = s.findObjective(ctx)
			}
			switch {
			case !kept:
				quiet.Reset(s.cfg.Quiet)
			case s.thread != "":
				quiet.Reset(branchRest)
			}
			continue
		}
		kept = false
		for ctx.Err() == nil {
			burst := s.mail.next()
			if len(burst) == 0 {
				quiet.Reset(s.cfg.Quiet)
				break
			}
			if s.handle(work, burst) {
				s.cfg.Background.Handled(len(burst), s.cfg.Now())
			}
			if work.Err() != nil {
				s.log.Info("interrupted by the end of the program; it will be taken up again at the next start")
			}
		}
	}
}

// handle works on an event, a change, or a burst: one message, or several of one person. Whatever goes wrong, the
// person hears of it; what the end of the program interrupts is taken up again at the next start. It returns false
// if a burst is to be worked on once more.
func (s *Session) handle(ctx context.Context, came []chat.Inbound) bool {
	var burst []chat.Message
	for _, in := range came {
		switch in := in.(type) {
		case chat.Message:
			burst = append(burst, in)
		case chat.Event:
			s.handleEvent(ctx, in)
			return true
		default:
			s.handleChange(ctx, in)
			return true
		}
	}
	newest := burst[len(burst)-1]
	log := s.log.With("message", newest.ID, "sender", newest.Sender, "burst", len(burst))
	changed := false
	s.insist(ctx, log, func() error {
		changed = false
		turn, err := s.attempt(ctx, log, newest.Sender, false, named(burst), func(turn context.Context) error {
			return s.dispatch(turn, burst)
		})
		switch {
		case err == nil || ctx.Err() != nil || store.Passing(err):
			return err
		case context.Cause(turn) == agent.ErrStopped: //nolint:errorlint // our own value
			log.Info("stopped by a person")
			return errors.Join(s.approvals.Void(ctx, s.room, named(burst)...), s.sayStopped(ctx, newest.Head))
		case disturbed(turn):
			log.Info("changed while it was being answered")
			changed = true
			return s.approvals.Void(ctx, s.room, named(burst)...)
		case withdrawn(turn, err):
			log.Info("taken back while it was being answered")
			return nil
		}
		ref := reference()
		log.Error("message not answered", "err", err, "reference", ref)
		return s.notice(ctx, newest.ID, s.calm(ctx, err, ref))
	})
	s.newest = newest.Head
	if changed && ctx.Err() == nil {
		s.mail.putBack(burst)
		return false
	}
	for _, in := range burst {
		s.insist(ctx, log, func() error { return s.cfg.Transport.Ack(ctx, in.ID) })
	}
	return true
}

// insist calls f until it succeeds, or ctx ends: what could not be stored, because the disk
// is full or another program holds the database, is tried again.
func (s *Session) insist(ctx context.Context, log *slog.Logger, f func() error) {
	for wait := s.cfg.Again; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
		err := f()
		if err == nil || ctx.Err() != nil {
			return
		}
		log.Error("what became of a message cannot be stored; trying again", "in", wait, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// dispatch decides what becomes of a burst: a notice, a command, or a turn.
func (s *Session) dispatch(ctx context.Context, burst []chat.Message) error {
	newest := burst[len(burst)-1]
	if err := s.separate(ctx, s.place(newest.Head).Readers()); err != nil {
		return err
	}
	s.along = func(ctx context.Context, tx *sql.Tx) error { return s.rememberIn(ctx, tx, newest.Head) }
	burst, err := s.standing(ctx, burst)
	if err != nil {
		return err
	}
	if len(burst) == 0 {
		return s.together(ctx, nil)
	}
	if burst, err = s.listen(ctx, burst); err != nil {
		return err
	}
	newest = burst[len(burst)-1]
	text := s.unopened(ctx, burst)
	name, args, command := command.Parse(newest.Text)
	if text != "" || command { // the room is known before anything is done in it
		if err := s.together(ctx, nil); err != nil {
			return err
		}
	}
	switch {
	case text != "":
		return s.notice(ctx, newest.ID, text)
	case command:
		return s.command(ctx, newest, name, args)
	}
	answer, err := s.paced(ctx, burst)
	if err != nil {
		return err
	}
	if !answer {
		return s.together(ctx, nil)
	}
	err = s.answerAll(ctx, burst)
	s.hasAnswered(newest.Sender)
	return err
}

// standing leaves out what its sender has taken back while it waited.
func (s *Session) standing(ctx context.Context, burst []chat.Message) ([]chat.Message, error) {
	var left []chat.Message
	for _, in := range burst {
		gone, err := s.cfg.Transport.Cancelled(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		if gone {
			s.log.Info("withdrawn before it was answered", "message", in.ID)
			continue
		}
		left = append(left, in)
	}
	return left, nil
}

// notice says text as a status line that answers the message id.
func (s *Session) notice(ctx context.Context, id, text string) error {
	return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{Thread: s.thread, ID: replyID(id), Text: text, Notice: true, ReplyTo: id})
}

// replyID names the one reply to the message id: the same message always gets
// the same name, so that saying it twice is saying it once.
func replyID(id string) string { return "re:" + id }

// scopes is the one place that decides whose memory a turn may see and write.
func (s *Session) scopes(in chat.Head) []memory.Scope {
	return s.cfg.Isolation.Visible(s.room, in.Sender, in.Private)
}

func (s *Session) toolScope(in item, now settings.Current) tool.Scope {
	scope := tool.Scope{Room: s.room, User: in.Sender, Private: in.Private, Memory: s.scopes(in.Head),
		Now: s.cfg.Now().In(s.cfg.Location), Policy: policyOf(now.Mode), System: in.event.Kind != ""}
	if s.helpers != nil {
		scope.Spawner = s.helpers
	}
	return scope
}

// callScope is toolScope for a call that is made to answer in, and the conversation.
func (s *Session) callScope(ctx context.Context, in item) (scope tool.Scope, past []history.Message, err error) {
	now, err := s.mode(ctx)
	if err != nil {
		return scope, nil, err
	}
	if past, err = s.cfg.History.Load(ctx, s.talk); err != nil {
		return scope, nil, err
	}
	scope = s.toolScope(in, now)
	scope.Event, scope.Quote, scope.At, scope.Files = in.ID, in.Text, in.At, came(past)
	return scope, past, nil
}

// attempt does f for person under a context that !stop ends, and what people do to the messages ids.
// heard is whether the history has these.
func (s *Session) attempt(
	ctx context.Context, log *slog.Logger, person string, heard bool, ids []string, f func(context.Context) error,
) (turn context.Context, err error) {
	turn, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mail.begin(person, cancel)
	s.mail.concerns(heard, ids...)
	err = agent.CatchPanic(log, func() error { return f(turn) })
	s.mail.begin("", nil)
	return turn, err
}

// Stop answers !stop. What runs was stopped when the message came, see push.
func (s *Session) Stop(ctx context.Context, in chat.Message) (string, error) {
	helpers := ""
	if s.helpers != nil {
		n, err := s.helpers.Stop(ctx, s.talk)
		if err != nil {
			return "", err
		}
		if n > 0 {
			helpers = s.text(ctx, "helpers.stopped", "count", fmt.Sprint(n))
		}
	}
	left, err := s.approvals.Stop(ctx, s.talk)
	if err != nil {
		return "", err
	}
	stopped := s.mail.wasStopped() || left
	if !stopped && s.thread == "" {
		stopped = s.stopBranches(in.Sender)
	}
	if !stopped && helpers != "" {
		return helpers, nil
	}
	if !stopped {
		return s.text(ctx, "stop.nothing"), nil
	}
	return i18n.Sentences(s.text(ctx, "stop.done"), helpers), nil
}

// sayStopped says that in is not answered any more: in the room, and in the history, so that
// what is asked after it is not answered on its behalf.
func (s *Session) sayStopped(ctx context.Context, in chat.Head) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = agent.CloseCalls(ctx, s.cfg.History, s.talk, past, s.cfg.Now())
	}
	if err != nil {
		return err
	}
	text := s.text(ctx, "stop.ended")
	if n := len(past); n > 0 && (past[n-1].Role != llm.Assistant || len(past[n-1].Calls) > 0) {
		if err := s.note(ctx, s.ours(replyID(in.ID), text, programs(s.place(in).Readers()))); err != nil {
			return err
		}
	}
	return s.notice(ctx, in.ID, text)
}
