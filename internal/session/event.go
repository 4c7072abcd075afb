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
	"reverie/internal/trace"
	"reverie/internal/trust"
)

// Source provides the events of a kind. It keeps them until Done, and at the next start delivers the
// rest again under the same IDs.
type Source interface {
	// Wanted reports whether the event id still has to be handled.
	Wanted(ctx context.Context, id string) (bool, error)
	// Done records the outcome of the event id: the answer (may be empty) or the error. It is durable
	// when it returns, and a successful event is not delivered again.
	Done(ctx context.Context, id string, answer string, failed error) error
}

// handleEvent handles one system event. Events are never part of a burst, and a failure is not reported
// in the room.
func (s *Session) handleEvent(work context.Context, in chat.Event) {
	log := s.log.With("event", in.ID, "kind", in.Kind)
	source := s.cfg.Events[in.Kind]
	if source == nil {
		log.Error("system event without a source ignored")
		return
	}
	var answer string
	var failed error
	s.retryUntilDone(work, log, func() error {
		var turn context.Context
		turn, failed = s.runCancellable(work, log, "", true, []string{in.ID, chat.ReplyID(in.ID)}, func(turn context.Context) (err error) {
			if answer, err = s.runEvent(turn, in); err != nil || in.Verbatim {
				return err
			}
			l, _, err := s.cfg.History.LabelOf(turn, s.room, chat.ReplyID(in.ID))
			if l.Integrity < trust.User { // the task's next run would read it as trusted text
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
	s.retryUntilDone(work, log, func() error { return source.Done(work, in.ID, answer, failed) })
}

// runEvent answers a system event.
func (s *Session) runEvent(ctx context.Context, in chat.Event) (answer string, err error) {
	if in.Private, err = s.Private(ctx, s.room, in.Sender); err != nil {
		return "", err
	}
	if err := s.splitOnNewReaders(ctx, s.place(in.Head).Readers()); err != nil {
		return "", err
	}
	if wanted, err := s.stillWanted(ctx, eventItem(in)); err != nil || !wanted {
		return "", err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return "", err
	}
	if said, ok, err := s.cfg.History.Find(ctx, s.talk, chat.ReplyID(in.ID)); err != nil || ok { // answered before an interruption
		if err == nil && !in.Silent && !agent.ChoseSilence(past) {
			err = s.sendAnswer(ctx, eventItem(in), said.Text)
		}
		return said.Text, err
	}
	if in.Verbatim { // the text is stored as the model's message
		label := trust.Label{Integrity: in.Label.Integrity, Readers: s.place(in.Head).Readers()}
		if err := s.appendOnce(ctx, s.ownMessage(chat.ReplyID(in.ID), in.Text, label)); err != nil {
			return "", err
		}
		return in.Text, s.sendAnswer(ctx, eventItem(in), in.Text)
	}
	if err := s.appendEvent(ctx, in, past); err != nil {
		return "", err
	}
	return s.answerEvent(ctx, in)
}

// appendEvent appends the event to the history, unless it is the last message. An event that an
// interruption left further up is appended again, because the model answers the last message.
func (s *Session) appendEvent(ctx context.Context, in chat.Event, past []history.Message) error {
	if err := agent.CloseCalls(ctx, s.cfg.History, s.talk, past, s.cfg.Now()); err != nil {
		return err
	}
	for i, m := range slices.Backward(past) {
		if m.Role != llm.User {
			continue
		}
		if m.EventID == in.ID || m.EventID == repeatID(in.ID) || i == len(past)-1 && m.Sender == "" && m.Text == in.Text {
			return nil
		}
		break
	}
	now, readers := s.cfg.Now(), s.place(in.Head).Readers()
	row := history.Message{Room: s.talk, Role: llm.User, EventID: in.ID, Text: in.Text, At: now, // without a sender
		// No text of a person can look like this header, see prompt.plain.
		Header: s.cfg.Prompt.Header(now.In(s.cfg.Profiles.PersonalOrUsualZone(readers)), "system event: "+string(in.Kind), true),
		Label:  trust.Label{Integrity: in.Label.Integrity, Readers: readers}}
	err := s.cfg.History.Append(ctx, &row)
	if errors.Is(err, history.ErrDuplicate) {
		row.EventID = repeatID(in.ID)
		if err = s.cfg.History.Append(ctx, &row); errors.Is(err, history.ErrDuplicate) {
			return fmt.Errorf("session: event %s was interrupted twice", in.ID)
		}
	}
	return err
}

func repeatID(id string) string { return id + " (again)" }

// answerEvent asks the model for an answer to the event. It sends the answer unless the event is silent
// or the model chose silence.
func (s *Session) answerEvent(ctx context.Context, in chat.Event) (_ string, err error) {
	ctx, span := trace.Start(ctx, trace.Turn, "reverie")
	defer func() { span.End(trace.Failure(err)) }()
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	t := &turn{Session: s, in: eventItem(in), stopProgress: func() {}}
	answer, err := t.rounds(ctx)
	if err != nil {
		return "", err
	}
	if err := s.appendOnce(ctx, &answer); err != nil {
		return "", err
	}
	if err := s.openApprovals(ctx, in.ID); err != nil {
		return "", err
	}
	if err := s.applyMarkers(ctx, s.markerCaller(t.in), answer); err != nil {
		return "", err
	}
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil || in.Silent || agent.ChoseSilence(past) {
		return answer.Text, err
	}
	return answer.Text, s.sendAnswer(ctx, t.in, answer.Text)
}

// ownMessage makes a message of ours for the history.
func (s *Session) ownMessage(id, text string, label trust.Label) *history.Message {
	return &history.Message{Room: s.talk, Role: llm.Assistant, EventID: id, Text: text, At: s.cfg.Now(), Label: label}
}

// appendOnce appends m to the history, unless its event ID is stored.
func (s *Session) appendOnce(ctx context.Context, m *history.Message) error {
	if err := s.cfg.History.Append(ctx, m); !errors.Is(err, history.ErrDuplicate) {
		return err
	}
	return nil
}

// stillWanted reports whether in still needs an answer. Its source or the transport decides.
func (s *Session) stillWanted(ctx context.Context, in item) (bool, error) {
	if in.event.Kind != "" {
		return s.cfg.Events[in.event.Kind].Wanted(ctx, in.ID)
	}
	gone, err := s.cfg.Transport.MessageCancelled(ctx, in.ID)
	return !gone, err
}

// Private reports whether a room is a direct chat with person now. Events do not carry that, and others may
// have joined since the task was made.
func (m *Manager) Private(ctx context.Context, room, person string) (bool, error) {
	with, err := m.cfg.Rooms.DirectWith(ctx, room)
	return err == nil && with != "" && with == person, err
}

// lastPlace returns a room's current place for the person who wrote there last.
func (m *Manager) lastPlace(ctx context.Context, room string) (trust.Place, error) {
	in, known, err := offlineRooms{db: m.cfg.DB}.lastHead(ctx, room)
	if err != nil || !known {
		return trust.Place{Room: room}, err
	}
	in.Private, err = m.Private(ctx, room, in.Sender)
	return trust.Place{Room: room, Person: in.Sender, Private: in.Private}, err
}

// Readers returns who reads a room now, for the person who wrote there last.
func (m *Manager) Readers(ctx context.Context, room string) (trust.Readers, error) {
	at, err := m.lastPlace(ctx, room)
	return at.Readers(), err
}
