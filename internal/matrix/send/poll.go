package send

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
	"reverie/internal/matrix/render"
)

// A message with options is a poll (MSC3381). Its start event is sent from the outbox like every
// message. Clients still use the unstable names, so the start and end events have those.

// encodePoll returns the poll of m in the form of its row. For an ordinary message it returns "". A
// question too large for one event is an ordinary message: people must see all of it.
func encodePoll(m chat.Outgoing) (string, error) {
	if len(m.Options) == 0 {
		return "", nil
	}
	p := delivery.Poll{Question: m.Text, Options: m.Options}
	content, err := json.Marshal(pollStart(p, m.ID, &event.MessageEventContent{}))
	if err != nil || len(content) > render.MaxSize {
		return "", err
	}
	packed, err := json.Marshal(p)
	return string(packed), err
}

// pollStart returns the content of a poll's start event with that transaction id. The content has the
// relation and mentions of m.
func pollStart(p delivery.Poll, txn string, m *event.MessageEventContent) map[string]any {
	question := render.PlainBody(p.Question)
	var answers []map[string]any
	fallback := question
	for i, o := range p.Options {
		text := render.PlainBody(o.Text)
		answers = append(answers, map[string]any{"id": delivery.AnswerID(txn, o.ID), textKey: text})
		fallback += fmt.Sprintf("\n%d. %s", i+1, text)
	}
	return withRelation(m, map[string]any{
		event.EventUnstablePollStart.Type: map[string]any{
			"kind": "org.matrix.msc3381.poll.disclosed", "max_selections": 1, "answers": answers,
			"question": map[string]any{textKey: question, "body": question, "msgtype": event.MsgText},
		},
		textKey: fallback, "body": fallback,
	})
}

// textKey is the plain text key of extensible events (MSC1767).
const textKey = "org.matrix.msc1767.text"

// withRelation adds the relation and the mentions of m to content.
func withRelation(m *event.MessageEventContent, content map[string]any) map[string]any {
	content["m.mentions"] = cmp.Or(m.Mentions, &event.Mentions{})
	if m.RelatesTo != nil {
		content["m.relates_to"] = m.RelatesTo
	}
	return content
}

// transmitPoll is transmit for a poll. It sends the start event and, once closed, the end event.
func (s *Sender) transmitPoll(ctx context.Context, r delivery.OutboxRow) error {
	if r.EventID == "" {
		var p delivery.Poll
		if err := json.Unmarshal([]byte(r.Poll), &p); err != nil {
			return fmt.Errorf("matrix: read the poll %s: %w", r.ID, err)
		}
		m, err := s.content(ctx, r)
		if err != nil {
			return err
		}
		named, err := s.markOf(ctx, r)
		if err != nil {
			return err
		}
		started, err := s.send(ctx, r.Room, event.EventUnstablePollStart, pollStart(p, r.Txn, m), r.Txn, named)
		if err != nil {
			return err
		}
		if r.EventID, err = s.Outbox.MarkDelivered(ctx, r, started.String(), !r.Closed); err != nil {
			return err
		}
		s.Log.Info("matrix: poll sent", "room", r.Room, "event", r.EventID, "message", r.ID)
	}
	if r.Closed {
		txn := fmt.Sprintf("%s-end-%d", r.Txn, r.Revision)
		text := render.PlainBody(r.Text)
		start := &event.MessageEventContent{RelatesTo: &event.RelatesTo{Type: event.RelReference, EventID: id.EventID(r.EventID)}}
		content := withRelation(start, map[string]any{event.EventUnstablePollEnd.Type: map[string]any{}, textKey: text, "body": text})
		if _, err := s.send(ctx, r.Room, event.EventUnstablePollEnd, content, txn, nil); err != nil {
			return err
		}
		s.Log.Info("matrix: poll closed", "room", r.Room, "event", r.EventID, "message", r.ID)
	}
	return s.Outbox.MarkSent(ctx, r)
}
