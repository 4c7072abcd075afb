package send

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

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

// markOf returns the mark of an event with the final text of r.
func (s *Sender) markOf(ctx context.Context, r delivery.OutboxRow) (*mark, error) {
	answers, err := delivery.Answers(ctx, s.DB, r.ID)
	return &mark{ID: r.ID, Revision: max(r.Revision, 1), Notice: r.Kind == "notice", File: r.File != "",
		Answers: answers[:min(len(answers), maxAnswers)]}, err
}

// draftMark returns the mark of an event with a draft of r.
func draftMark(r delivery.OutboxRow) *mark { return &mark{ID: r.ID, Notice: r.Kind == "notice"} }

// addMark encrypts content if the room is encrypted, and adds m. It returns the content and the type to send.
func (s *Sender) addMark(ctx context.Context, room id.RoomID, kind event.Type, content any, m *mark) (any, event.Type, error) {
	encrypted, err := s.Client.StateStore.IsEncrypted(ctx, room)
	if err != nil {
		return nil, kind, fmt.Errorf("look up the encryption of the room: %w", err)
	}
	if encrypted {
		if content, err = s.Client.Crypto.Encrypt(ctx, room, kind, content); err != nil {
			return nil, kind, fmt.Errorf("encrypt the message: %w", err)
		}
		kind = event.EventEncrypted
	}
	raw, err := json.Marshal(content)
	if err != nil {
		return nil, kind, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, kind, err
	}
	fields[markKey] = m
	return fields, kind, nil
}

// Carried returns what our events among events carry, oldest first. It is for events of other devices
// of ours, and reads no encrypted content.
func (s *Sender) Carried(room id.RoomID, events []*event.Event) (all []delivery.Carried) {
	known := map[string]*event.Event{}
	for _, evt := range events {
		known[evt.ID.String()] = evt
		var content struct {
			Mark    mark            `json:"reverie.message"`
			Relates event.RelatesTo `json:"m.relates_to"`
		}
		if evt.Sender != s.Client.UserID || evt.StateKey != nil || json.Unmarshal(evt.Content.VeryRaw, &content) != nil || content.Mark.ID == "" {
			continue
		}
		m := content.Mark
		c := delivery.Carried{ID: m.ID, Room: room.String(), Event: evt.ID.String(), Revision: m.Revision, Notice: m.Notice, File: m.File,
			Thread: content.Relates.GetThreadParent().String(), At: time.UnixMilli(evt.Timestamp)}
		if t := content.Relates.Type; t == event.RelReplace || t == event.RelReference {
			c.Event = content.Relates.EventID.String()
		}
		for _, question := range m.Answers[:min(len(m.Answers), maxAnswers)] {
			a := delivery.Answered{ID: question, At: c.At}
			if asked := known[question]; asked != nil {
				a.Sender, a.At = asked.Sender.String(), time.UnixMilli(asked.Timestamp)
			}
			c.Answers = append(c.Answers, a)
		}
		all = append(all, c)
	}
	return all
}
