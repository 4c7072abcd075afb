package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// Source is where the events of a kind come from: it keeps them until they are worked on, and
// delivers those that are left again at the next start, under the same ID.
type Source interface {
	// Wanted tells whether the event id is still to be worked on.
	Wanted(ctx context.Context, id string) (bool, error)
	// Done records what came of the event id: the answer, empty if there is none, or why there
	// is none. It is durable when it returns, and id is not delivered again.
	Done(ctx context.Context, id string, answer string, failed error) error
}

// handleEvent works on one system event. It is never part of a burst, says nothing
// in the room when it fails, and is not a person's message in anything.
func (s *Session) handleEvent(work context.Context, in chat.Event) {
	log := s.log.With("event", in.ID, "kind", in.Kind)
	source := s.cfg.Events[in.Kind]
	if source == nil {
		log.Error("a system event from nowhere is not worked on")
		return
	}
	var answer string
	var failed error
	s.insist(work, log, func() error {
		var turn context.Context
		turn, failed = s.attempt(work, log, "", true, []string{in.ID, replyID(in.ID)}, func(turn context.Context) (err error) {
			if answer, err = s.event(turn, in); err != nil || in.Verbatim {
				return err
			}
			l, _, err := s.cfg.History.LabelOf(turn, s.room, replyID(in.ID))
			if l.Integrity < trust.User { // the next run reads it as the task's own words
				answer = ""
			}
			return err
		})
		if failed != nil && context.Cause(turn) == agent.ErrStopped { //nolint:errorlint // our own value
			failed = agent.ErrStopped
		}
		if work.Err() != nil || store.IsTransient(failed) {
			return failed
		}
		return nil
	})
	if work.Err() != nil {
		return
	}
	if failed != nil {
		log.Error("system event not answered", "err", failed)
	}
	s.insist(work, log, func() error { return source.Done(work, in.ID, answer, failed) })
}

// event works on a system event and returns what came of it.
func (s *Session) event(ctx context.Context, in chat.Event) (answer string, err error) {
	if in.Private, err = s.private(ctx, in.Sender); err != nil {
		return "", err
	}
	if err := s.separate(ctx, s.place(in.Head).Readers()); err != nil {
		return "", err
	}
	if wanted, err := s.wanted(ctx, asEvent(in)); err != nil || !wanted {
		return "", err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return "", err
	}
	if said, ok, err := s.cfg.History.Find(ctx, s.talk, replyID(in.ID)); err != nil || ok { // before an interruption
		if err == nil && !in.Silent && !keptSilent(past) {
			err = s.say(ctx, asEvent(in), said.Text)
		}
		return said.Text, err
	}
	if in.Verbatim {
		return in.Text, s.sayVerbatim(ctx, in)
	}
	if err := s.report(ctx, in, past); err != nil {
		return "", err
	}
	return s.answerEvent(ctx, in)
}

// report puts the event at the end of the history, unless it is there. One that stands further up, from
// before an interruption, is told once more: the model answers what it reads last.
func (s *Session) report(ctx context.Context, in chat.Event, past []history.Message) error {
	if err := agent.CloseCalls(ctx, s.cfg.History, s.talk, past, s.cfg.Now()); err != nil {
		return err
	}
	for i, m := range slices.Backward(past) {
		if m.Role != llm.User {
			continue
		}
		if m.EventID == in.ID || m.EventID == again(in.ID) || i == len(past)-1 && m.Sender == "" && m.Text == in.Text {
			return nil
		}
		break
	}
	now := s.cfg.Now()
	told := history.Message{Room: s.talk, Role: llm.User, EventID: in.ID, Text: in.Text, At: now, // nobody has sent it
		// It looks as no text of a person can, see prompt.plain.
		Header: s.cfg.Prompt.Header(now.In(s.cfg.Location), "system event: "+string(in.Kind), true),
		Label:  trust.Label{Integrity: in.Label.Integrity, Readers: s.place(in.Head).Readers()}}
	err := s.cfg.History.Append(ctx, &told)
	if errors.Is(err, history.ErrDuplicate) {
		told.EventID = again(in.ID)
		if err = s.cfg.History.Append(ctx, &told); errors.Is(err, history.ErrDuplicate) {
			return fmt.Errorf("session: event %s was interrupted again and again", in.ID)
		}
	}
	return err
}

func again(id string) string { return id + " (again)" }

// answerEvent has the model work on what it was told, and says the answer in the
// room unless the event is silent or the model wants nothing said.
func (s *Session) answerEvent(ctx context.Context, in chat.Event) (string, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	t := &turn{Session: s, in: asEvent(in), begun: func() {}}
	reply, err := t.rounds(ctx)
	if err != nil {
		return "", err
	}
	answer := *s.ours(replyID(in.ID), reply.Text, t.label)
	if err := s.note(ctx, &answer); err != nil {
		return "", err
	}
	if err := s.askGathered(ctx, in.ID); err != nil {
		return "", err
	}
	if err := s.takeIn(ctx, s.reporter(t.in), answer); err != nil {
		return "", err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil || in.Silent || keptSilent(past) {
		return reply.Text, err
	}
	return reply.Text, s.say(ctx, t.in, reply.Text)
}

// sayVerbatim says the event's text as it is, and lets the model know that it did.
func (s *Session) sayVerbatim(ctx context.Context, in chat.Event) error {
	label := trust.Label{Integrity: in.Label.Integrity, Readers: s.place(in.Head).Readers()}
	if err := s.note(ctx, s.ours(replyID(in.ID), in.Text, label)); err != nil {
		return err
	}
	return s.say(ctx, asEvent(in), in.Text)
}

// ours is a message of ours, as the history keeps it.
func (s *Session) ours(id, text string, label trust.Label) *history.Message {
	return &history.Message{Room: s.talk, Role: llm.Assistant, EventID: id, Text: text, At: s.cfg.Now(), Label: label}
}

// note keeps m in the history, once.
func (s *Session) note(ctx context.Context, m *history.Message) error {
	if err := s.cfg.History.Append(ctx, m); !errors.Is(err, history.ErrDuplicate) {
		return err
	}
	return nil
}

// keptSilent reports whether the model said, by its tool, that it wants nothing said of the event
// that past ends with. A call that the tool refused says nothing.
func keptSilent(past []history.Message) bool {
	refused := map[string]bool{}
	for _, m := range slices.Backward(past) {
		switch {
		case m.Role == llm.User:
			return false
		case m.Role == llm.Tool && m.Failed:
			refused[m.CallID] = true
		case slices.ContainsFunc(m.Calls, func(c llm.ToolCall) bool { return c.Name == tool.StaySilent && !refused[c.ID] }):
			return true
		}
	}
	return false
}

// wanted asks whoever knows whether in is still to be worked on.
func (s *Session) wanted(ctx context.Context, in item) (bool, error) {
	if in.event.Kind != "" {
		return s.cfg.Events[in.event.Kind].Wanted(ctx, in.ID)
	}
	gone, err := s.cfg.Transport.Cancelled(ctx, in.ID)
	return !gone, err
}

// private reports whether the room is a direct chat with person now: an event has no
// message that would say so, and others may have come in since the task was made.
func (s *Session) private(ctx context.Context, person string) (bool, error) {
	with, err := s.cfg.Rooms.DirectWith(ctx, s.room)
	return err == nil && with != "" && with == person, err
}

// lastPlace is the room as it is now, for who wrote there last.
func (s *Session) lastPlace(ctx context.Context) (trust.Place, error) {
	in, known, err := lastWritten{db: s.cfg.DB}.in(ctx, s.room)
	if err != nil || !known {
		return trust.Place{Room: s.room}, err
	}
	in.Private, err = s.private(ctx, in.Sender)
	return s.place(in), err
}

// Private reports whether a room is a direct chat with person now.
func (m *Manager) Private(ctx context.Context, room, person string) (bool, error) {
	return newSession(m, history.Timeline(room)).private(ctx, person)
}

// Readers is who reads what is said in a room, as it was when somebody wrote there last.
func (m *Manager) Readers(ctx context.Context, room string) (trust.Readers, error) {
	at, err := newSession(m, history.Timeline(room)).lastPlace(ctx)
	return at.Readers(), err
}
