package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"reverie/internal/agent"
	"reverie/internal/attachment"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/recall"
	"reverie/internal/session/mailbox"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// Session owns one conversation, of a room or of a thread. Only it appends to the history, and it
// handles one message at a time.
type Session struct {
	*Manager
	talk   history.Timeline // names the conversation: history, summary and prompt epoch are its own
	room   string           // the room that holds it; memory, tasks and settings are the room's
	thread string           // event ID of the thread's root; empty = not in a thread
	log    *slog.Logger

	mail *mailbox.Mailbox

	progress     *progressNotice // of the current answer; nil outside of turns
	appliedUpTo  int64           // row of our newest message whose goal markers are applied
	pendingWrite txFunc          // stored with the turn's next transaction; nil = nothing
	readers      trust.Readers   // as splitOnNewReaders last saw them

	joined      []chat.Message // that a running turn took from the mailbox, see turn.join
	lastHandled chat.Head      // head of the message handled last
	lastCounted int64          // row of the last answer whose use of memories is counted
	lastRequest []llm.Message  // messages of the last request to the model

	usage         requestSize
	loopDetectors map[string]*loopDetector // by sender
}

func newSession(m *Manager, talk history.Timeline) *Session {
	s := &Session{Manager: m, talk: talk, room: talk.Room(), thread: talk.Thread(), log: m.cfg.Log.With("room", talk.Room()),
		mail: mailbox.New(), loopDetectors: map[string]*loopDetector{}}
	if s.thread != "" {
		s.log = s.log.With("thread", s.thread)
	}
	return s
}

// Run handles the conversation's messages in order until ctx ends. Each message is handled under work,
// which outlives ctx by the grace period.
func (s *Session) Run(ctx, work context.Context) {
	idleTimer := time.NewTimer(time.Hour)
	defer idleTimer.Stop()
	indexed, idleWorkDone := false, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.mail.Ready():
		case <-idleTimer.C: // indexing costs more than a turn, so it runs while the room is idle
			if idleWorkDone && s.stopIdleThread() {
				return
			}
			if !indexed && s.indexing.TryLock() { // one room at a time: what people wait for is written to the same database
				s.indexMessages(work)
				s.indexing.Unlock()
				indexed = true
			}
			if indexed && !idleWorkDone {
				idleWorkDone = s.askObjective(ctx)
			}
			switch {
			case !idleWorkDone:
				idleTimer.Reset(s.cfg.IdleAfter)
			case s.thread != "":
				idleTimer.Reset(threadIdle)
			}
			continue
		}
		indexed, idleWorkDone = false, false
		for ctx.Err() == nil {
			burst := s.mail.Next()
			if len(burst) == 0 {
				idleTimer.Reset(s.cfg.IdleAfter)
				break
			}
			if s.handle(work, burst) {
				s.cfg.Background.Handled(len(burst)+len(s.joined), s.cfg.Now())
			}
			if work.Err() != nil {
				s.log.Info("interrupted by the program's shutdown; the next start handles the message again")
			}
		}
	}
}

// handle handles an event, a change, or a burst: one or more messages of one person. It reports every
// failure to the person, except an interruption by shutdown: the next start handles that message again.
// It returns false if the burst was put back into the mailbox.
func (s *Session) handle(ctx context.Context, inbound []chat.Inbound) bool {
	var burst []chat.Message
	s.joined = nil
	for _, in := range inbound {
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
	s.retryUntilDone(ctx, log, func() error {
		changed = false
		turn, err := s.runCancellable(ctx, log, newest.Sender, false, burstIDs(burst), func(turn context.Context) error {
			return s.dispatch(turn, burst)
		})
		switch {
		case err == nil || ctx.Err() != nil || store.IsTransient(err):
			return err
		case context.Cause(turn) == agent.ErrStopped: //nolint:errorlint // our own value
			log.Info("stopped by a person")
			return errors.Join(s.approvals.Void(ctx, s.room, burstIDs(burst)...), s.reportStopped(ctx, newest.Head))
		case interruptedByChange(turn):
			log.Info("changed while it was being answered")
			changed = true
			return s.approvals.Void(ctx, s.room, burstIDs(burst)...)
		case cancelled(turn, err):
			log.Info("redacted or left while it was being answered")
			return nil
		}
		return s.sendNotice(ctx, newest.ID, agent.ErrorText(log, s.cfg.Messages.For(ctx, s.room), err))
	})
	s.lastHandled = newest.Head
	if changed && ctx.Err() == nil {
		s.mail.Requeue(append(burst, s.joined...))
		return false
	}
	s.ackAll(ctx, log, append(burst, s.joined...))
	return true
}

// ackAll tells the transport that messages need no more work.
func (s *Session) ackAll(ctx context.Context, log *slog.Logger, done []chat.Message) {
	for _, in := range done {
		s.retryUntilDone(ctx, log, func() error { return s.cfg.Transport.Ack(ctx, in.ID) })
	}
}

// retryUntilDone calls f until it succeeds or ctx ends. Writes fail while the disk is full, for example.
func (s *Session) retryUntilDone(ctx context.Context, log *slog.Logger, f func() error) {
	for wait := s.cfg.RetryDelay; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
		err := f()
		if err == nil || ctx.Err() != nil {
			return
		}
		log.Error("the outcome of a message cannot be stored; trying again", "in", wait, "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// dispatch handles a burst as a notice, a command, or a turn.
func (s *Session) dispatch(ctx context.Context, burst []chat.Message) error {
	newest := burst[len(burst)-1]
	if err := s.splitOnNewReaders(ctx, s.place(newest.Head).Readers()); err != nil {
		return err
	}
	s.pendingWrite = func(ctx context.Context, tx *sql.Tx) error { return s.recordRoom(ctx, tx, newest.Head) }
	burst, err := s.dropCancelled(ctx, burst)
	if err != nil {
		return err
	}
	if len(burst) == 0 {
		return s.commit(ctx, nil)
	}
	if burst, err = s.transcribeVoice(ctx, burst); err != nil {
		return err
	}
	newest = burst[len(burst)-1]
	text := s.unreadableNotice(ctx, burst)
	name, args, command := command.Parse(newest.Text)
	if text != "" || command { // record the room first
		if err := s.commit(ctx, nil); err != nil {
			return err
		}
	}
	switch {
	case text != "":
		return s.sendNotice(ctx, newest.ID, text)
	case command:
		return s.runCommand(ctx, newest, name, args)
	}
	answer, err := s.passesLoopDetector(ctx, burst)
	if err != nil {
		return err
	}
	if !answer {
		return s.commit(ctx, nil)
	}
	err = s.answerBurst(ctx, burst)
	if p := s.loopDetectors[newest.Sender]; p != nil {
		p.lastAt = s.cfg.Now()
	}
	return err
}

// dropCancelled returns burst without messages that were redacted, or whose room was left, meanwhile.
func (s *Session) dropCancelled(ctx context.Context, burst []chat.Message) ([]chat.Message, error) {
	var left []chat.Message
	for _, in := range burst {
		cancelled, err := s.cfg.Transport.MessageCancelled(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		if cancelled {
			s.log.Info("redacted or left before it was answered", "message", in.ID)
			continue
		}
		left = append(left, in)
	}
	return left, nil
}

// sendNotice sends text as a status line in reply to the message id.
func (s *Session) sendNotice(ctx context.Context, id, text string) error {
	return s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{Thread: s.thread, ID: chat.ReplyID(id), Text: text, Notice: true, ReplyTo: id})
}

// scopes returns the memory scopes that a turn may read and write. No other function decides that.
func (s *Session) scopes(in chat.Head) []memory.Scope {
	return s.cfg.Isolation.Visible(s.room, in.Sender, in.Private)
}

func (s *Session) toolScope(in item, now settings.RoomMode) tool.Scope {
	scope := tool.Scope{Room: s.room, User: in.Sender, Private: in.Private, Memory: s.scopes(in.Head), Policy: policyOf(now.Mode),
		Now: s.cfg.Now().In(s.cfg.Profiles.PersonalOrUsualZone(s.place(in.Head).Readers())), System: in.event.Kind != ""}
	if s.spawns() {
		scope.Spawner = s.subSessions
	}
	return scope
}

// callScope returns the scope of tool calls made to answer in, and the history.
func (s *Session) callScope(ctx context.Context, in item) (scope tool.Scope, past []history.Message, err error) {
	now, err := s.mode(ctx)
	if err != nil {
		return scope, nil, err
	}
	if past, err = s.cfg.History.Load(ctx, s.talk); err != nil {
		return scope, nil, err
	}
	scope = s.toolScope(in, now)
	scope.Event, scope.Quote, scope.At, scope.Files, scope.Web = in.ID, in.Text, in.At, attachment.Received(past), tool.WebResults(past)
	return scope, past, nil
}

// runCancellable runs f for person under the context turn. !stop cancels it, and so do edits and
// redactions of the messages ids. stored tells whether the history has these messages.
func (s *Session) runCancellable(
	ctx context.Context, log *slog.Logger, person string, stored bool, ids []string, f func(context.Context) error,
) (turn context.Context, err error) {
	turn, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mail.SetRunning(person, cancel)
	s.mail.AddSubjects(stored, ids...)
	err = agent.CatchPanic(log, func() error { return f(turn) })
	s.mail.SetRunning("", nil)
	return turn, err
}

// Stop is the command !stop. Mailbox.Put has already cancelled the running work.
func (s *Session) Stop(ctx context.Context, in chat.Message, _ string) (string, error) {
	n, err := s.subSessions.Stop(ctx, s.talk)
	if err != nil {
		return "", err
	}
	helpers := ""
	if n > 0 {
		helpers = s.text(ctx, "helpers.stopped", "count", fmt.Sprint(n))
	}
	voided, err := s.approvals.VoidApproved(ctx, s.talk)
	if err != nil {
		return "", err
	}
	asked, err := s.closeQuestion(ctx, "")
	if err == nil && asked != nil { // the model reads it, and a vote on its way does not count
		err = s.appendOnce(ctx, s.ownMessage(asked.ClosedID(), s.text(ctx, "ask.closed"), programLabel(s.place(in.Head).Readers())))
	}
	if err != nil {
		return "", err
	}
	switch {
	case s.mail.ClearStopped() || voided || asked != nil || s.thread == "" && s.stopThreads(in.Sender):
		return i18n.Sentences(s.text(ctx, "stop.done"), helpers), nil
	case helpers != "":
		return helpers, nil
	}
	return s.text(ctx, "stop.nothing"), nil
}

// reportStopped tells the room and the history that in gets no answer. Without the row in the
// history, the model would answer in together with the next message.
func (s *Session) reportStopped(ctx context.Context, in chat.Head) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = agent.CloseCalls(ctx, s.cfg.History, s.talk, past, s.cfg.Now())
	}
	if err != nil {
		return err
	}
	text := s.text(ctx, "stop.ended")
	if n := len(past); n > 0 && (past[n-1].Role != llm.Assistant || len(past[n-1].Calls) > 0) {
		if err := s.appendOnce(ctx, s.ownMessage(chat.ReplyID(in.ID), text, programLabel(s.place(in).Readers()))); err != nil {
			return err
		}
	}
	return s.sendNotice(ctx, in.ID, text)
}

// indexMessages adds new messages to the search index. It runs while the room is idle, and before
// messages leave the conversation. The next run retries what failed.
func (s *Session) indexMessages(ctx context.Context) {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = recall.IndexNew(ctx, s.cfg.History, s.cfg.Memory, s.talk, past)
	}
	if n := len(past); err == nil && n > 0 && past[n-1].EventID == chat.ReplyID(s.lastHandled.ID) && s.lastCounted < past[n-1].ID {
		s.lastCounted = past[n-1].ID
		err = recall.CountUse(ctx, s.cfg.Memory, s.scopes(s.lastHandled), past, s.lastRequest)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("messages not indexed for search; trying again after the next message", "err", err)
	}
}

// askObjective asks a model which task the room works on, if it is time. It returns false if it must be
// tried again later, because a person waits for an answer in some room.
func (s *Session) askObjective(ctx context.Context) bool {
	if s.cfg.ObjectiveRole == "" || s.thread != "" { // in a thread only a named task counts
		return true
	}
	background, done, ok := s.cfg.Background.Begin(ctx, s.cfg.Now(), 0)
	if !ok {
		return false
	}
	defer done()
	at, err := s.lastPlace(background, s.room)
	if err == nil {
		err = s.objective().Ask(background, at)
	}
	if err != nil && background.Err() == nil {
		s.log.Warn("current task not found", "err", err)
	}
	return true
}
