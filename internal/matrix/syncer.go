package matrix

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/matrix/e2ee"
	"reverie/internal/matrix/gate"
	"reverie/internal/matrix/retry"
	"reverie/internal/text"
)

// batch collects what the handlers find in one sync, to be stored in one
// transaction with the token. It belongs to one goroutine.
type batch struct {
	delivery.Batch
	last map[string]string // room → the newest event in it
	err  error             // something of ours failed: the same sync must be worked on again
}

// fail notes that the batch cannot be stored as it is. It is for faults of
// ours, such as a full disk; what is wrong with an event goes into Unreadable.
func (b *batch) fail(err error) { b.err = cmp.Or(b.err, err) }

// library takes the handlers of mautrix: those of its state store, its crypto machine and its
// verification. It leaves out what would take a whole sync, see e2ee.Store.Take, and the handler for
// encrypted events, which waits for missing keys in goroutines that a restart ends.
type library struct{ *mautrix.DefaultSyncer }

func (library) OnSync(mautrix.SyncHandler) {}

func (l library) OnEventType(t event.Type, h mautrix.EventHandler) {
	if t != event.EventEncrypted {
		l.DefaultSyncer.OnEventType(t, h)
	}
}

// takeAll hands the events of a sync to their handlers.
func (c *Client) takeAll(ctx context.Context, b *batch, res *mautrix.RespSync) {
	c.take(ctx, b, "", event.SourceToDevice, res.ToDevice.Events)
	c.take(ctx, b, "", event.SourceAccountData, res.AccountData.Events)
	for room, joined := range res.Rooms.Join {
		c.take(ctx, b, room, event.SourceJoin|event.SourceState, joined.State.Events)
		c.take(ctx, b, room, event.SourceJoin|event.SourceTimeline, joined.Timeline.Events)
	}
	for room, invited := range res.Rooms.Invite {
		c.take(ctx, b, room, event.SourceInvite|event.SourceState, invited.State.Events)
	}
	for room, left := range res.Rooms.Leave {
		c.take(ctx, b, room, event.SourceLeave|event.SourceState, left.State.Events)
		c.take(ctx, b, room, event.SourceLeave|event.SourceTimeline, left.Timeline.Events)
	}
}

func (c *Client) take(ctx context.Context, b *batch, room id.RoomID, source event.Source, events []*event.Event) {
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
		if err := evt.Content.ParseRaw(evt.Type); err == nil || c.takesUnparsed(ctx, b, evt, err) {
			c.route(ctx, b, evt, evt)
		}
	}
}

// route hands an event to mautrix's handlers, so that the state store is up to date, and then
// to ours. origin is the event as it came: evt may be what it was decrypted to.
func (c *Client) route(ctx context.Context, b *batch, evt, origin *event.Event) {
	c.guard(b, origin, func() { c.cli.Syncer.(library).Dispatch(ctx, evt) })
	c.guard(b, origin, func() { b.fail(c.handle(ctx, b, evt)) })
}

// handle takes what an event tells into the batch of its sync. An error is a fault of ours, such
// as a full disk: the batch cannot be stored as it is.
func (c *Client) handle(ctx context.Context, b *batch, evt *event.Event) error {
	if evt.Sender == c.cli.UserID && evt.Unsigned.TransactionID != "" && evt.StateKey == nil { // a message of ours comes back
		b.Echoes = append(b.Echoes, delivery.Echo{Txn: evt.Unsigned.TransactionID, Event: evt.ID.String()})
	}
	switch evt.Type {
	case event.StateEncryption:
		return c.Rooms.MarkEncrypted(ctx, evt.RoomID)
	case event.StateHistoryVisibility:
		return c.Rooms.Watch(ctx, evt)
	case event.StateMember:
		return c.members.OnMember(ctx, evt)
	case event.StateTombstone:
		return c.members.OnTombstone(ctx, evt)
	case event.AccountDataDirectChats:
		return c.Rooms.NoteDirect(ctx, *evt.Content.AsDirectChats())
	case event.EventRedaction:
		return c.onRedaction(ctx, b, evt)
	case event.EventMessage:
		return c.onMessage(ctx, b, evt)
	case event.EventReaction:
		return c.onReaction(ctx, b, evt)
	case event.EventUnstablePollResponse, pollVote:
		return c.onVote(ctx, b, evt)
	case event.EventEncrypted:
		return c.onEncrypted(ctx, b, evt)
	}
	return nil
}

// takesUnparsed says whether an event whose content could not be parsed is handled
// all the same. Of types that nobody knows it is; the rest makes no sense.
func (c *Client) takesUnparsed(ctx context.Context, b *batch, evt *event.Event, err error) bool {
	if errors.Is(err, event.ErrUnsupportedContentType) || errors.Is(err, event.ErrContentAlreadyParsed) {
		return true
	}
	if evt.StateKey != nil && evt.Type.Type == event.StateMember.Type && *evt.StateKey != c.cli.UserID.String() {
		b.fail(c.Rooms.Expose(ctx, evt.RoomID)) // somebody may be there all the same
	}
	c.cfg.Log.Warn("matrix: an event makes no sense and is ignored", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender,
		"type", text.Clip(evt.Type.Type, 60), "err", err)
	return false
}

// guard keeps a panic over one event away from the others of its sync. A
// message is stored and tried again; what a state event told is asked for anew
// before the next message to the room.
func (c *Client) guard(b *batch, evt *event.Event, f func()) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		c.cfg.Log.Error("matrix: an event could not be handled", "room", evt.RoomID, "event", evt.ID, "panic", r,
			"stack", string(debug.Stack()))
		if evt.StateKey != nil {
			c.Rooms.ForgetState(evt.RoomID)
			return
		}
		c.keep(b, evt, "", fmt.Errorf("panic: %v", r))
	}()
	f()
}

// process works through a sync and then stores its result and the next token
// in one transaction. It can be repeated with the same sync.
func (c *Client) process(ctx context.Context, res *mautrix.RespSync, pos position) error {
	b := &batch{last: map[string]string{}}
	if err := c.arrange(ctx, res, pos, b); err != nil {
		return err
	}
	// Once begun, a batch is finished: an Olm session that has stepped on while
	// the key it carried was not stored would lose that key for good.
	ctx = e2ee.WithFailures(context.WithoutCancel(ctx), b.fail)
	// The crypto machine fetches these lists at once, and forgets about one that it does not get.
	if err := c.machine().CryptoStore.MarkTrackedUsersOutdated(ctx, res.DeviceLists.Changed); err != nil {
		return fmt.Errorf("note that lists of devices have changed: %w", err)
	}
	c.Rooms.MembersIn(res)
	c.acc.Store.Take(ctx, func(evt *event.Event, f func()) { c.guard(b, evt, f) }, res, pos.token)
	c.takeAll(ctx, b, res)
	if b.err != nil {
		return b.err
	}
	if len(res.DeviceLists.Changed) > 0 {
		if err := c.changedKeys(ctx, b); err != nil {
			return err
		}
	}
	for _, u := range b.Unreadable {
		c.cfg.Log.Warn("matrix: a message cannot be read yet",
			"room", u.Room, "event", u.ID, "sender", u.Sender, "session", u.Session, "err", u.Err)
	}
	c.wasAway(ctx, b, pos.at)
	if err := c.commit(ctx, res.NextBatch, b); err != nil {
		return err
	}
	c.wake(b)
	return nil
}

// wake tells the loops that a batch has work for them.
func (c *Client) wake(b *batch) {
	if len(b.In)+len(b.Notices) > 0 {
		retry.Wake(c.inWake)
		retry.Wake(c.outWake) // also for a redaction: one part of an answer takes the others with it
	}
	if len(b.Unreadable) > 0 {
		retry.Wake(c.keys.wake)
	}
	if slices.ContainsFunc(b.In, func(s delivery.Incoming) bool { return s.Redacted != "" }) {
		retry.Wake(c.redactions.wake)
	}
}

// arrange makes the timelines what the handlers are to see: gaps are filled,
// and what was said before we came is left out.
func (c *Client) arrange(ctx context.Context, res *mautrix.RespSync, pos position, b *batch) error {
	if pos.token != "" && (c.sync.done.Load() == 0 || c.sync.failures.Load() > 0) {
		if err := c.lookBack(ctx, res); err != nil {
			return err
		}
	}
	for room, joined := range res.Rooms.Join {
		if n := len(joined.Timeline.Events); n > 0 {
			b.last[room.String()] = joined.Timeline.Events[n-1].ID.String()
		}
		missed := map[id.EventID]bool{}
		if pos.token != "" && joined.Timeline.Limited {
			events, err := c.missed(ctx, room, joined.Timeline)
			if err != nil {
				return err
			}
			if err := c.Rooms.WatchMissed(ctx, room, events); err != nil {
				return err
			}
			for _, evt := range events {
				missed[evt.ID] = true
			}
			joined.Timeline.Events = append(events, joined.Timeline.Events...)
		}
		if n := dropOld(joined, c.cli.UserID, pos.token == ""); n > 0 {
			c.cfg.Log.Debug("matrix: messages from before the bot came are left alone", "room", room, "events", n)
		}
		joined.Timeline.Events = slices.DeleteFunc(joined.Timeline.Events, func(evt *event.Event) bool {
			return evt.StateKey != nil && missed[evt.ID] // the sync tells of the newest state by itself
		})
	}
	return nil
}

// onRedaction takes back a message that is still waiting. That its sender may
// do so has been checked by the homeserver.
func (c *Client) onRedaction(ctx context.Context, b *batch, evt *event.Event) error {
	target := evt.Redacts
	if content, ok := evt.Content.Parsed.(*event.RedactionEventContent); ok && content.Redacts != "" {
		target = content.Redacts
	}
	if target == "" {
		return nil
	}
	s := delivery.Incoming{Redacted: target.String()}
	if evt.Sender != c.cli.UserID && evt.ID != "" { // our own redactions tell us nothing
		var err error
		if s.Inbound, err = c.gesture(ctx, evt); err != nil {
			return err
		}
		s.Change, s.Target = chat.TakenBack, target.String()
	}
	b.In = append(b.In, s)
	return nil
}

// onMessage judges a message, decrypted if need be, and takes it in.
func (c *Client) onMessage(ctx context.Context, b *batch, evt *event.Event) error {
	if evt.Mautrix.EventSource&event.SourceLeave != 0 || evt.StateKey != nil {
		return nil
	}
	if evt.Sender == c.cli.UserID { // each of our answers comes back: nothing needs to be known of its room
		c.cfg.Log.Debug("matrix: message not taken", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "because", gate.OwnMessage)
		return nil
	}
	room, err := c.Rooms.Facts(ctx, evt.RoomID)
	if err != nil {
		return err
	}
	var failed error
	room.Active = func(root string) bool {
		active, err := c.outbox.ActiveIn(ctx, evt.RoomID.String(), root)
		failed = cmp.Or(failed, err)
		return active
	}
	o := c.gate.Judge(evt, room, func(e id.EventID) bool {
		ours, err := c.outbox.Ours(ctx, e.String())
		failed = cmp.Or(failed, err)
		return ours
	})
	if failed != nil {
		return failed
	}
	if refused, err := c.fromUnsigned(ctx, b, evt, room, o); err != nil || refused {
		return err
	}
	if edits, err := c.onEdit(ctx, b, evt, room); err != nil || edits {
		c.heardAnew(b, evt, room)
		return err
	}
	if !o.Pass {
		c.cfg.Log.Debug("matrix: message not taken", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "because", o.Reason)
		return c.hears(ctx, b, evt, o)
	}
	m, err := c.inbound(ctx, evt, room)
	if err != nil {
		return err
	}
	m.SenderName, m.Text = c.Rooms.DisplayName(ctx, evt.RoomID, evt.Sender), o.Text
	if msg, ok := evt.Content.Parsed.(*event.MessageEventContent); ok {
		m.Thread, m.ReplyTo = gate.ThreadIn(msg.RelatesTo), msg.RelatesTo.GetNonFallbackReplyTo().String()
		m.Files = filesOf(msg, room.Encrypted, c.cfg.MaxFile)
	}
	if m.Branch, err = c.branchOf(ctx, m); err != nil {
		return err
	}
	if o.Emote {
		m.Text = emote(m.SenderName, m.Sender, o.Text)
	}
	listens := false
	if !m.Private && !command.Is(m.Text) {
		if listens, err = c.listening(ctx, m.Room); err != nil {
			return err
		}
	}
	c.tellUnproven(ctx, b, m, room)
	c.cfg.Log.Info("matrix: message", "room", m.Room, "event", m.ID, "sender", m.Sender, "encrypted", evt.Mautrix.WasEncrypted,
		"trust", evt.Mautrix.TrustState.String())
	b.In = append(b.In, delivery.Incoming{Inbound: m, Listens: listens})
	return nil
}

// inbound is what everything that somebody does in a room has in common.
func (c *Client) inbound(ctx context.Context, evt *event.Event, room gate.Room) (chat.Inbound, error) {
	unproven, err := c.acc.Devices.Unproven(ctx, room.Encrypted, evt.Sender)
	return chat.Inbound{
		ID: evt.ID.String(), Room: evt.RoomID.String(), Sender: evt.Sender.String(), At: time.UnixMilli(evt.Timestamp),
		Private: room.Private(evt.Sender.String()), Unproven: unproven,
	}, err
}
