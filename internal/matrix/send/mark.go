package send

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/delivery"
)

// markKey is the key of a mark in the content of our events. It stands outside of the encryption, like
// relations: it must be readable when a room key is lost. It tells the homeserver no more than the
// transaction id does, and other servers which message is an answer to which.
const markKey = "reverie.message"

// mark names the message that an event carries. A bot that is restored from a backup reads from the
// marks in a room what was sent and answered since.
type mark struct {
	ID       string   `json:"id"`                 // of the outbox row
	Revision int      `json:"revision,omitempty"` // of its final text; 0 = a draft
	Notice   bool     `json:"notice,omitempty"`
	File     bool     `json:"file,omitempty"`
	Answers  []string `json:"answers,omitempty"` // the messages that it answers if it is final
}

// maxAnswers limits a mark.
const maxAnswers = 64

// markOf returns the mark of an event with the final text of r. The id of a reply ends with its question's.
func (s *Sender) markOf(ctx context.Context, r delivery.OutboxRow) (*mark, error) {
	m := draftMark(r)
	m.Revision, m.File = max(r.Revision, 1), r.File != ""
	if question, ok := strings.CutPrefix(r.ID, "re:"); ok {
		also, err := delivery.QuestionsOf(ctx, s.DB, r.ID)
		if err != nil {
			return nil, err
		}
		m.Answers = append([]string{question}, also[:min(len(also), maxAnswers)]...)
	}
	return m, nil
}

// draftMark returns the mark of an event with a draft of r.
func draftMark(r delivery.OutboxRow) *mark { return &mark{ID: r.ID, Notice: r.Kind == "notice"} }

// addMark returns the content of an event with m, outside of the encryption.
func addMark(content any, m *mark) (map[string]any, error) {
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	fields[markKey] = m
	return fields, nil
}

// Carried returns the rows that our events among events carry, as far as marks tell them. The events are
// of any device of ours, oldest first. answers are the messages that a row answers, by its id. No encrypted
// content is read.
func (s *Sender) Carried(room id.RoomID, events []*event.Event) (rows []delivery.OutboxRow, answers map[string][]chat.Head) {
	answers = map[string][]chat.Head{}
	known := map[string]*event.Event{}
	for _, evt := range events {
		known[evt.ID.String()] = evt
		var content struct {
			Mark    mark            `json:"reverie.message"`
			Relates event.RelatesTo `json:"m.relates_to"`
		}
		if evt.Sender != s.Client.UserID || evt.StateKey != nil || json.Unmarshal(evt.Content.VeryRaw, &content) != nil ||
			content.Mark.ID == "" {
			continue
		}
		m, relates := content.Mark, content.Relates
		r := delivery.OutboxRow{ID: m.ID, Room: room.String(), Kind: "text", EventID: evt.ID.String(), Revision: m.Revision,
			Thread: relates.GetThreadParent().String()}
		if m.Notice {
			r.Kind = "notice"
		}
		if m.File {
			r.File = "{}" // so that it is not taken for a text
		}
		if relates.Type == event.RelReplace {
			r.EventID = relates.EventID.String()
		}
		for _, question := range m.Answers[:min(len(m.Answers), maxAnswers+1)] {
			asked := chat.Head{ID: question, At: time.UnixMilli(evt.Timestamp)}
			if by := known[question]; by != nil {
				asked.Sender, asked.At = by.Sender.String(), time.UnixMilli(by.Timestamp)
			}
			answers[r.ID] = append(answers[r.ID], asked)
		}
		rows = append(rows, r)
	}
	return rows, answers
}
