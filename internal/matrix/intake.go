package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/room"
	"reverie/internal/text"
)

// intake turns the events of a sync into rows of its batch.
type intake struct {
	cfg     Config
	cli     *mautrix.Client
	devices *e2ee.Devices
	gate    *gate.Gate
	rooms   *room.Rooms
	outbox  *delivery.Outbox
}

// routeSyncEvents passes all events of a sync to their handlers.
func (t *intake) routeSyncEvents(ctx context.Context, b *batch, res *mautrix.RespSync) {
	t.parseAndRouteEvents(ctx, b, "", event.SourceToDevice, res.ToDevice.Events)
	t.parseAndRouteEvents(ctx, b, "", event.SourceAccountData, res.AccountData.Events)
	for room, joined := range res.Rooms.Join {
		t.parseAndRouteEvents(ctx, b, room, event.SourceJoin|event.SourceState, joined.State.Events)
		t.parseAndRouteEvents(ctx, b, room, event.SourceJoin|event.SourceTimeline, joined.Timeline.Events)
	}
	for room, invited := range res.Rooms.Invite {
		t.parseAndRouteEvents(ctx, b, room, event.SourceInvite|event.SourceState, invited.State.Events)
	}
	for room, left := range res.Rooms.Leave {
		t.parseAndRouteEvents(ctx, b, room, event.SourceLeave|event.SourceState, left.State.Events)
		t.parseAndRouteEvents(ctx, b, room, event.SourceLeave|event.SourceTimeline, left.Timeline.Events)
	}
}

func (t *intake) parseAndRouteEvents(ctx context.Context, b *batch, room id.RoomID, source event.Source, events []*event.Event) {
	var accepted []*event.Event
	for _, evt := range events {
		evt.RoomID, evt.Mautrix.EventSource = room, source
		switch {
		case evt.StateKey != nil:
			evt.Type.Class = event.StateEventType
		case source == event.SourceAccountData:
			evt.Type.Class = event.AccountDataEventType
		case source == event.SourceToDevice:
			evt.Type.Class = event.ToDeviceEventType
		default:
			evt.Type.Class = event.MessageEventType
		}
		if err := evt.Content.ParseRaw(evt.Type); err == nil || t.acceptUnparsedEvent(ctx, b, evt, err) {
			accepted = append(accepted, evt)
		}
	}
	for len(accepted) > 0 {
		n := leadingStates(accepted)
		if n > 0 {
			t.routeStates(ctx, b, accepted[:n])
		} else {
			t.routeEvent(ctx, b, accepted[0], accepted[0])
			n = 1
		}
		accepted = accepted[n:]
	}
}

// leadingStates counts the state events at the beginning of events, up to the second one for the same state: it
// must not hide the first.
func leadingStates(events []*event.Event) int {
	seen := map[[2]string]bool{}
	for i, evt := range events {
		if evt.StateKey == nil || seen[[2]string{evt.Type.Type, *evt.StateKey}] {
			return i
		}
		seen[[2]string{evt.Type.Type, *evt.StateKey}] = true
	}
	return len(events)
}

// routeStates is routeEvent for state events. The state store takes them in one transaction.
func (t *intake) routeStates(ctx context.Context, b *batch, events []*event.Event) {
	b.recordFirstError(t.rooms.InTx(ctx, func(ctx context.Context) error {
		for _, evt := range events {
			t.callAndRecoverPanic(b, evt, func() { t.cli.Syncer.(mautrixSyncer).Dispatch(ctx, evt) })
		}
		return nil
	}))
	for _, evt := range events {
		t.callAndRecoverPanic(b, evt, func() { b.recordFirstError(t.dispatchEventByType(ctx, b, evt)) })
	}
}

// routeEvent passes an event first to mautrix, and then to dispatchEventByType. mautrix updates the
// state store. origin is the event as received; evt may be its decrypted form.
func (t *intake) routeEvent(ctx context.Context, b *batch, evt, origin *event.Event) {
	t.callAndRecoverPanic(b, origin, func() { t.cli.Syncer.(mautrixSyncer).Dispatch(ctx, evt) })
	t.callAndRecoverPanic(b, origin, func() { b.recordFirstError(t.dispatchEventByType(ctx, b, evt)) })
}

// dispatchEventByType passes an event to the function for its type, which may add it to the batch. An
// error is a local fault, such as a full disk: the batch cannot be stored.
func (t *intake) dispatchEventByType(ctx context.Context, b *batch, evt *event.Event) error {
	if evt.Sender == t.cli.UserID && evt.Unsigned.TransactionID != "" && evt.StateKey == nil { // the echo of our own message
		b.Echoes = append(b.Echoes, delivery.Echo{Txn: evt.Unsigned.TransactionID, Event: evt.ID.String()})
	}
	switch evt.Type {
	case event.StateEncryption:
		return t.rooms.MarkEncrypted(ctx, evt.RoomID)
	case event.StateHistoryVisibility:
		return t.rooms.CheckState(ctx, evt)
	case event.StateMember:
		return b.members.OnMember(ctx, evt)
	case event.StateTombstone:
		return b.members.OnTombstone(ctx, evt)
	case event.AccountDataDirectChats:
		return t.rooms.StoreDirect(ctx, *evt.Content.AsDirectChats())
	case event.EventRedaction:
		return t.addRedactionToBatch(ctx, b, evt)
	case event.EventReaction:
		return t.addReactionToBatch(ctx, b, evt)
	case event.EventUnstablePollResponse, pollVote:
		return t.addVoteToBatch(ctx, b, evt)
	case event.EventEncrypted:
		return t.decryptAndRouteEvent(ctx, b, evt)
	}
	if msg := gate.ContentOf(evt); msg != nil && evt.Mautrix.EventSource&event.SourceLeave == 0 {
		return t.addMessageToBatch(ctx, b, evt, msg)
	}
	return nil
}

// acceptUnparsedEvent reports whether to handle an event whose content cannot be parsed. It accepts
// unknown event types and logs and rejects malformed content.
func (t *intake) acceptUnparsedEvent(ctx context.Context, b *batch, evt *event.Event, err error) bool {
	if errors.Is(err, event.ErrUnsupportedContentType) || errors.Is(err, event.ErrContentAlreadyParsed) {
		return true
	}
	if evt.StateKey != nil && evt.Type.Type == event.StateMember.Type && *evt.StateKey != t.cli.UserID.String() {
		b.recordFirstError(t.rooms.Expose(ctx, evt.RoomID)) // another person may have joined
	}
	t.cfg.Log.Warn("matrix: an event makes no sense and is ignored", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender,
		"type", text.Clip(evt.Type.Type, 60), "err", err)
	return false
}

// callAndRecoverPanic calls f and keeps a panic over one event from stopping the whole sync. A message
// is stored and retried. For a state event the room state is fetched again before the next send.
func (t *intake) callAndRecoverPanic(b *batch, evt *event.Event, f func()) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		t.cfg.Log.Error("matrix: an event could not be handled", "room", evt.RoomID, "event", evt.ID, "panic", r,
			"stack", string(debug.Stack()))
		if evt.StateKey != nil {
			t.rooms.ForgetState(evt.RoomID)
			return
		}
		t.addUnreadableToBatch(b, evt, "", fmt.Errorf("panic: %v", r))
	}()
	f()
}

// addRedactionToBatch adds a redaction to the batch. The homeserver has checked that its sender may
// redact.
func (t *intake) addRedactionToBatch(ctx context.Context, b *batch, evt *event.Event) error {
	target := evt.Redacts
	if content, ok := evt.Content.Parsed.(*event.RedactionEventContent); ok && content.Redacts != "" {
		target = content.Redacts
	}
	if target == "" {
		return nil
	}
	redaction := chat.Redaction{Change: chat.Change{Target: target.String()}}
	if evt.Sender != t.cli.UserID && evt.ID != "" { // our own redactions need no handling
		var err error
		if redaction.Head, err = t.lookUpRoomAndBuildHead(ctx, evt); err != nil {
			return err
		}
	}
	b.In = append(b.In, delivery.Incoming{Event: redaction})
	return nil
}

// addMessageToBatch checks a message, decrypted if needed, and adds it to the batch.
func (t *intake) addMessageToBatch(ctx context.Context, b *batch, evt *event.Event, msg *event.MessageEventContent) error {
	if evt.Sender == t.cli.UserID { // the echo of our own message
		return t.logIgnoredEvent(evt, "own message")
	}
	room, err := t.rooms.Facts(ctx, evt.RoomID)
	if err != nil {
		return err
	}
	var failed error
	room.Active = func(root string) bool {
		active, err := t.outbox.ActiveInThread(ctx, evt.RoomID.String(), root)
		failed = cmp.Or(failed, err)
		return active
	}
	o := t.gate.Check(evt, room, func(e id.EventID) bool {
		ours, err := t.outbox.IsOwnEvent(ctx, e.String())
		failed = cmp.Or(failed, err)
		return ours
	})
	if failed != nil {
		return failed
	}
	if refused, err := t.warnOrRefuseIfDeviceUnsigned(ctx, b, evt, room, o); err != nil || refused {
		return err
	}
	if msg.RelatesTo != nil && msg.RelatesTo.Type == event.RelReplace {
		err := t.addEditToBatch(ctx, b, evt, msg, room)
		t.addContextEditToBatch(b, evt, msg, room)
		return err
	}
	if !o.Pass {
		_ = t.logIgnoredEvent(evt, o.Reason)
		if o.Context != "" {
			t.addGroupContextToBatch(ctx, b, evt, msg, o.Context)
		}
		return nil
	}
	head, err := t.buildHeadInRoom(ctx, evt, room)
	if err != nil {
		return err
	}
	m := chat.Message{Head: head, Text: o.Text, Thread: gate.ThreadRoot(msg.RelatesTo),
		ReplyTo: msg.RelatesTo.GetNonFallbackReplyTo().String(), Files: filesOfMessage(msg, room.Encrypted, t.cfg.MaxFile)}
	m.Branch = command.AnswerThread(room.Threads, m)
	m.Text = t.prefixEmoteSender(ctx, evt, msg, o.Text)
	t.addUnencryptedRoomNotice(ctx, b, m, room)
	t.cfg.Log.Info("matrix: message", "room", m.Room, "event", m.ID, "sender", m.Sender, "encrypted", evt.Mautrix.WasEncrypted,
		"trust", evt.Mautrix.TrustState.String())
	b.In = append(b.In, delivery.Incoming{Event: m, WithContext: room.Listens && !m.Private && !command.Is(m.Text)})
	return nil
}

// logIgnoredEvent logs why an event is ignored.
func (t *intake) logIgnoredEvent(evt *event.Event, reason string) error {
	t.cfg.Log.Debug("matrix: event not taken", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "because", reason)
	return nil
}

// buildHeadInRoom returns the fields that all kinds of inbound events share.
func (t *intake) buildHeadInRoom(ctx context.Context, evt *event.Event, room gate.Room) (chat.Head, error) {
	unproven, err := t.devices.Unproven(ctx, room.Encrypted, evt.Sender)
	return chat.Head{
		ID: evt.ID.String(), Room: evt.RoomID.String(), Sender: evt.Sender.String(), At: time.UnixMilli(evt.Timestamp),
		Private: room.Private(evt.Sender.String()), Unproven: unproven,
	}, err
}

// decryptAndRouteEvent decrypts an event and hands it to the handlers.
func (t *intake) decryptAndRouteEvent(ctx context.Context, b *batch, evt *event.Event) error {
	content, ok := evt.Content.Parsed.(*event.EncryptedEventContent)
	if !ok || content.Algorithm == "" || evt.StateKey != nil || evt.Unsigned.RedactedBecause != nil {
		return nil
	}
	plain, err := t.devices.Decrypt(ctx, evt)
	switch {
	case err == nil:
		t.routeEvent(ctx, b, plain, evt)
	case errors.Is(err, crypto.ErrDuplicateMessageIndex): // a replay of an earlier message
		t.cfg.Log.Warn("matrix: a repeated encrypted message is ignored", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender,
			"err", err)
	case errors.Is(err, crypto.ErrNoSessionFound), errors.Is(err, crypto.ErrGroupSessionWithheld),
		errors.Is(err, olm.ErrUnknownMessageIndex):
		t.addUnreadableToBatch(b, evt, content.SessionID, err)
	default:
		t.addUnreadableToBatch(b, evt, "", err)
	}
	return nil
}

// addUnreadableToBatch adds an event that cannot be read yet to the batch. Its sender must be allowed.
func (t *intake) addUnreadableToBatch(b *batch, evt *event.Event, missing id.SessionID, cause error) {
	if !gate.MayBeMessage(evt) || evt.Mautrix.EventSource&event.SourceLeave != 0 || !t.gate.Allows(evt.Sender.String()) {
		t.cfg.Log.Debug("matrix: an event that cannot be read is dropped", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender,
			"err", cause)
		return
	}
	u := delivery.Unreadable{
		ID: evt.ID.String(), Room: evt.RoomID.String(), Sender: evt.Sender.String(), SentAt: time.UnixMilli(evt.Timestamp),
		Raw: marshalEvent(evt), Session: missing.String(), Tries: 1, Wait: t.cfg.timings.retry, Err: cause,
	}
	if missing != "" {
		u.Tries, u.Wait = 0, t.cfg.timings.askKey
	}
	b.Unreadable = append(b.Unreadable, u)
}

// maxContextLine limits the runes of a stored line that is not addressed to the bot.
const maxContextLine = 1_000

// addGroupContextToBatch stores a group message that is not addressed to the bot, as later context.
func (t *intake) addGroupContextToBatch(
	ctx context.Context, b *batch, evt *event.Event, msg *event.MessageEventContent, words string,
) {
	line := &delivery.Line{Room: evt.RoomID.String(), Thread: msg.RelatesTo.GetThreadParent().String(), Quote: chat.Quote{
		ID: evt.ID.String(), Sender: evt.Sender.String(), At: time.UnixMilli(evt.Timestamp),
		Text: t.prefixEmoteSender(ctx, evt, msg, text.Clip(words, maxContextLine))}}
	b.In = append(b.In, delivery.Incoming{Line: line})
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
