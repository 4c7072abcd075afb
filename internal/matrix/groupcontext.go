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

// maxContextLine limits the runes of a stored line that is not addressed to the bot.
const maxContextLine = 1_000

// addGroupContextToBatch stores a group message that is not addressed to the bot, as later context.
func (t *intake) addGroupContextToBatch(
	ctx context.Context, b *batch, evt *event.Event, msg *event.MessageEventContent, o gate.Decision,
) error {
	if o.Context == "" {
		return nil
	}
	line := &delivery.Line{Room: evt.RoomID.String(), Thread: msg.RelatesTo.GetThreadParent().String(), Quote: chat.Quote{
		ID: evt.ID.String(), Sender: evt.Sender.String(), At: time.UnixMilli(evt.Timestamp),
		Text: t.prefixEmoteSender(ctx, evt, msg, text.Clip(o.Context, maxContextLine))}}
	listening, err := t.roomStoresGroupContext(ctx, line.Room)
	if listening {
		b.In = append(b.In, delivery.Incoming{Line: line})
	}
	return err
}

// addContextEditToBatch applies an edit to a stored line of group context.
func (t *intake) addContextEditToBatch(b *batch, evt *event.Event, msg *event.MessageEventContent, room gate.Room) {
	if msg.NewContent == nil || room.DirectPair() || room.Encrypted && !evt.Mautrix.WasEncrypted {
		return
	}
	text := text.Clip(text.Clean(gate.BodyOrCaption(msg.NewContent)), maxContextLine)
	if command.Is(text) { // a command is no group context
		text = ""
	}
	b.In = append(b.In, delivery.Incoming{Line: &delivery.Line{Room: evt.RoomID.String(), Edit: true, Quote: chat.Quote{
		ID: msg.RelatesTo.GetReplaceID().String(), Sender: evt.Sender.String(), Text: text}}})
}

// prefixEmoteSender returns text; for an emote (/me) it prefixes the sender's display name.
func (t *intake) prefixEmoteSender(ctx context.Context, evt *event.Event, msg *event.MessageEventContent, text string) string {
	if msg.MsgType != event.MsgEmote {
		return text
	}
	return "* " + cmp.Or(t.rooms.DisplayName(ctx, evt.RoomID, evt.Sender), evt.Sender.String()) + " " + text
}

// roomStoresGroupContext reports whether room stores messages that are not addressed to the bot.
func (t *intake) roomStoresGroupContext(ctx context.Context, room string) (bool, error) {
	v, err := settings.Store{DB: t.cfg.DB}.Get(ctx, room, settings.Listen)
	return v == "on", err
}
