package matrix

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/crypto"
	"maunium.net/go/mautrix/crypto/olm"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"reverie/internal/session"
)

// poisonTries is how often a sync that cannot be processed is tried before it
// is skipped, so that one event cannot stop the bot for ever.
const poisonTries = 3

// tokenStore gives mautrix the sync token. Saving is left to syncer: mautrix
// saves before it processes, and would lose a batch whose processing is cut off.
type tokenStore struct{ c *Client }

func (s *tokenStore) LoadNextBatch(ctx context.Context, user id.UserID) (string, error) {
	return s.c.q.token(ctx, user.String(), s.c.acc.DeviceID.String())
}
func (*tokenStore) SaveNextBatch(context.Context, id.UserID, string) error  { return nil }
func (*tokenStore) SaveFilterID(context.Context, id.UserID, string) error   { return nil }
func (*tokenStore) LoadFilterID(context.Context, id.UserID) (string, error) { return "", nil }

// batch collects what the handlers find in one sync.
type batch struct {
	mu     sync.Mutex
	closed bool
	in     []session.Inbound
	echoes []echo
}

type batchKey struct{}

func batchOf(ctx context.Context) *batch {
	b, _ := ctx.Value(batchKey{}).(*batch)
	return b
}

// add takes a message into the batch; false when the batch is stored already,
// as for a message whose key came late.
func (b *batch) add(m session.Inbound) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.in = append(b.in, m)
	return true
}

func (b *batch) close() ([]session.Inbound, []echo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.in, b.echoes
}

// syncer processes a sync and then stores its result and the token in one
// transaction. Embedding keeps the interfaces that the crypto helper needs.
type syncer struct {
	*mautrix.DefaultSyncer
	c *Client
}

func (s *syncer) GetFilterJSON(id.UserID) *mautrix.Filter {
	none := &mautrix.FilterPart{NotTypes: []event.Type{{Type: "*"}}}
	return &mautrix.Filter{
		Presence: none,
		Room:     &mautrix.RoomFilter{Timeline: &mautrix.FilterPart{Limit: 100}, Ephemeral: none},
	}
}

// ProcessResponse is called by the sync loop only.
func (s *syncer) ProcessResponse(ctx context.Context, res *mautrix.RespSync, since string) error {
	c := s.c
	// Once begun, a batch is finished: an Olm session that has stepped on while
	// the key it carried was not stored would lose that key for good.
	ctx = context.WithoutCancel(ctx)
	for room, joined := range res.Rooms.Join {
		if n := dropOld(joined, c.cli.UserID, since == ""); n > 0 {
			c.log.Debug("matrix: messages from before the bot came are left alone", "room", room, "events", n)
		}
	}
	b := &batch{}
	err := s.DefaultSyncer.ProcessResponse(context.WithValue(ctx, batchKey{}, b), res, since)
	in, echoes := b.close()
	if err != nil && !c.skip(since, err) {
		return err
	}
	if err := c.q.take(ctx, c.acc.UserID.String(), c.acc.DeviceID.String(), res.NextBatch, in, echoes); err != nil {
		return err
	}
	c.badSince, c.badTries = "", 0
	c.failures.Store(0)
	c.lastSync.Store(c.now().UnixMilli())
	c.setProblem("")
	c.syncedOnce.Do(func() {
		c.log.Info("matrix: first sync done")
		close(c.synced)
		poke(c.outWake)
	})
	if len(in) > 0 {
		poke(c.inWake)
	}
	return nil
}

// skip tells whether a sync that cannot be processed has been tried often
// enough and is to be left behind.
func (c *Client) skip(since string, err error) bool {
	if c.badSince != since {
		c.badSince, c.badTries = since, 0
	}
	c.badTries++
	if c.badTries < poisonTries {
		return false
	}
	c.log.Error("matrix: a sync cannot be processed and is skipped; messages in it may be lost", "tries", c.badTries, "err", err)
	return true
}

// dropOld removes messages that are not meant for us from the timeline of a
// room, and keeps all state. On a fresh store all messages are old. In the
// batch in which we join, those before our invitation are: what was asked
// between the invitation and our joining waits for an answer.
func dropOld(room *mautrix.SyncJoinedRoom, self id.UserID, fresh bool) (dropped int) {
	events := room.Timeline.Events
	from := 0
	if fresh {
		from = len(events)
	} else if joined := lastJoin(events, self); joined >= 0 {
		from = joined
		for i := joined - 1; i >= 0; i-- {
			if m := ownMembership(events[i], self); m != "" {
				if m == string(event.MembershipInvite) {
					from = i
				}
				break
			}
		}
	}
	kept := events[:0:0]
	for i, evt := range events {
		if i >= from || evt.StateKey != nil {
			kept = append(kept, evt)
		}
	}
	room.Timeline.Events = kept
	return len(events) - len(kept)
}

// lastJoin finds where we came into the room; -1 when that is not in events.
// A changed name or picture of ours is no joining.
func lastJoin(events []*event.Event, self id.UserID) int {
	for i := len(events) - 1; i >= 0; i-- {
		if ownMembership(events[i], self) != string(event.MembershipJoin) {
			continue
		}
		if prev := events[i].Unsigned.PrevContent; prev != nil {
			if m, _ := prev.Raw["membership"].(string); m == string(event.MembershipJoin) {
				continue
			}
		}
		return i
	}
	return -1
}

func ownMembership(evt *event.Event, self id.UserID) string {
	if evt.Type.Type != event.StateMember.Type || evt.StateKey == nil || *evt.StateKey != self.String() {
		return ""
	}
	m, _ := evt.Content.Raw["membership"].(string)
	return m
}

// OnFailedSync says how long to wait before the next try.
func (s *syncer) OnFailedSync(_ *mautrix.RespSync, err error) (time.Duration, error) {
	v, wait := judge(err, int(s.c.failures.Add(1))-1)
	switch v {
	case again:
		s.c.setProblem(err.Error())
		s.c.log.Warn("matrix: sync failed; trying again", "in", wait.Round(time.Second), "err", err)
		return wait, nil
	case fine, logout, never:
	}
	return 0, err
}

// runSync keeps the sync loop going.
func (c *Client) runSync(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.cli.SyncWithContext(ctx)
		if ctx.Err() != nil || err == nil {
			break
		}
		c.setProblem(err.Error())
		if errors.Is(err, mautrix.MUnknownToken) {
			if err := c.relogin(ctx); err != nil {
				return err
			}
			if err := c.persist(ctx, "checking this device's keys", func() error { return c.republish(ctx) }); err != nil {
				c.log.Error("matrix: after logging in again", "err", err)
			}
			continue
		}
		var h mautrix.HTTPError
		if errors.As(err, &h) && (errors.Is(err, mautrix.MUserDeactivated) || errors.Is(err, mautrix.MForbidden)) {
			return fmt.Errorf("matrix: the homeserver refuses this account: %w", err)
		}
		wait := backoff(int(c.failures.Add(1)) - 1)
		c.log.Error("matrix: the sync loop stopped; starting it again", "in", wait.Round(time.Second), "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}

func (c *Client) setProblem(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = s
}

// register connects the handlers. The crypto helper has registered its own
// before, so that the state store is up to date when ours run.
func (c *Client) register() {
	s := c.cli.Syncer.(*syncer)
	s.OnEvent(c.guard(c.onEcho))
	s.OnEventType(event.StateMember, c.guard(c.onMember))
	s.OnEventType(event.StateEncryption, c.guard(c.onEncryption))
	s.OnEventType(event.AccountDataDirectChats, c.guard(c.onDirectChats))
	s.OnEventType(event.EventMessage, c.guard(c.onMessage))
}

// guard keeps a panic over one event away from the others of its sync.
func (c *Client) guard(h mautrix.EventHandler) mautrix.EventHandler {
	return func(ctx context.Context, evt *event.Event) {
		defer func() {
			if r := recover(); r != nil {
				c.log.Error("matrix: an event could not be handled and is skipped", "room", evt.RoomID, "event", evt.ID, "panic", r, "stack", string(debug.Stack()))
			}
		}()
		h(ctx, evt)
	}
}

// onEcho notices our own messages coming back.
func (c *Client) onEcho(ctx context.Context, evt *event.Event) {
	if evt.Sender != c.cli.UserID || evt.Unsigned.TransactionID == "" || evt.StateKey != nil {
		return
	}
	if b := batchOf(ctx); b != nil {
		b.mu.Lock()
		b.echoes = append(b.echoes, echo{txn: evt.Unsigned.TransactionID, event: evt.ID.String()})
		b.mu.Unlock()
	}
}

// onMessage judges a message, decrypted if need be, and takes it in.
func (c *Client) onMessage(ctx context.Context, evt *event.Event) {
	if evt.Mautrix.EventSource&event.SourceLeave != 0 || evt.StateKey != nil {
		return
	}
	room := c.facts(ctx, evt.RoomID)
	o := c.gate.judge(evt, room, func(e id.EventID) bool { return c.q.ours(ctx, e.String()) })
	if !o.pass {
		c.log.Debug("matrix: message not taken", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "because", o.reason)
		return
	}
	m := session.Inbound{
		ID: evt.ID.String(), Room: evt.RoomID.String(), Sender: evt.Sender.String(),
		SenderName: c.displayName(ctx, evt.RoomID, evt.Sender),
		Text:       o.text, Private: o.private, At: time.UnixMilli(evt.Timestamp),
	}
	c.log.Info("matrix: message", "room", m.Room, "event", m.ID, "sender", m.Sender, "encrypted", evt.Mautrix.WasEncrypted, "trust", evt.Mautrix.TrustState.String())
	if batchOf(ctx).add(m) {
		return
	}
	if err := c.q.takeLate(ctx, m); err != nil {
		c.log.Error("matrix: a message that could be read only later is lost", "room", m.Room, "event", m.ID, "err", err)
		return
	}
	poke(c.inWake)
}

// undecrypted is called for a message that cannot be read, after the key was
// waited for and asked for. The sender is told once for each session key.
func (c *Client) undecrypted(evt *event.Event, cause error) {
	if evt.Sender == c.cli.UserID || evt.Mautrix.EventSource&event.SourceLeave != 0 {
		return
	}
	c.undecryptable.Add(1)
	enc, _ := evt.Content.Parsed.(*event.EncryptedEventContent)
	var key id.SessionID
	if enc != nil {
		key = enc.SessionID
	}
	c.log.Warn("matrix: a message cannot be decrypted", "room", evt.RoomID, "event", evt.ID, "sender", evt.Sender, "session", key, "err", cause)
	missing := errors.Is(cause, crypto.ErrNoSessionFound) || errors.Is(cause, crypto.ErrGroupSessionWithheld) || errors.Is(cause, olm.ErrUnknownMessageIndex)
	if !missing || key == "" || !c.gate.allows(evt.Sender.String()) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // mautrix gives none
	defer cancel()
	added, err := c.q.once(ctx, "unreadable-"+key.String(), evt.RoomID.String(), unreadable, evt.ID.String())
	if err != nil {
		c.log.Error("matrix: nobody is told about a message that cannot be read", "room", evt.RoomID, "event", evt.ID, "err", err)
	}
	if added {
		poke(c.outWake)
	}
}

const unreadable = "I cannot read this message: its encryption key has not reached me. I have asked for the key. " +
	"If nothing happens, please send the message again; if that does not help either, leave this room and write to me in a new one."
