package matrix

import (
	"cmp"
	"context"
	"time"

	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/matrix/gate"
	"reverie/internal/settings"
	"reverie/internal/text"
)

// heardRunes is how much is kept of a line that is not for us, until we are asked something.
const heardRunes = 1_000

// hears keeps what was said in a room with others and not to us.
func (t *intake) hears(ctx context.Context, b *batch, evt *event.Event, msg *event.MessageEventContent, o gate.Opinion) error {
	if o.Heard == "" {
		return nil
	}
	line := &delivery.Line{Room: evt.RoomID.String(), Thread: msg.RelatesTo.GetThreadParent().String(), Quote: chat.Quote{
		ID: evt.ID.String(), Sender: evt.Sender.String(), At: time.UnixMilli(evt.Timestamp),
		Text: t.spoken(ctx, evt, msg, text.Clip(o.Heard, heardRunes))}}
	listening, err := t.listening(ctx, line.Room)
	if listening {
		b.In = append(b.In, delivery.Incoming{Line: line})
	}
	return err
}

// heardAnew takes in what edits something that was heard in a room with others.
func (t *intake) heardAnew(b *batch, evt *event.Event, msg *event.MessageEventContent, room gate.Room) {
	if msg.NewContent == nil || room.Pair() || room.Encrypted && !evt.Mautrix.WasEncrypted {
		return
	}
	text := text.Clip(text.Clean(gate.Said(msg.NewContent)), heardRunes)
	if command.Is(text) { // a command is no talk
		text = ""
	}
	b.In = append(b.In, delivery.Incoming{Line: &delivery.Line{Room: evt.RoomID.String(), Edit: true, Quote: chat.Quote{
		ID: msg.RelatesTo.GetReplaceID().String(), Sender: evt.Sender.String(), Text: text}}})
}

// spoken is text, the words of a message; what its sender does (/me) begins with who that is.
func (t *intake) spoken(ctx context.Context, evt *event.Event, msg *event.MessageEventContent, text string) string {
	if msg.MsgType != event.MsgEmote {
		return text
	}
	return "* " + cmp.Or(t.rooms.DisplayName(ctx, evt.RoomID, evt.Sender), evt.Sender.String()) + " " + text
}

// listening tells whether what is not for us is to be kept for the next question.
func (t *intake) listening(ctx context.Context, room string) (bool, error) {
	v, err := settings.Store{DB: t.cfg.DB}.Get(ctx, room, settings.Listen)
	return v == "on", err
}
