package matrix

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"

	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/delivery"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

const self = "@reverie:example.org"

// newOffline returns a client that has only its database.
func newOffline(t *testing.T) *Client {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { db.Close() })
	c := &Client{cfg: Config{DB: db, now: time.Now}, cli: &mautrix.Client{UserID: "@b:b", DeviceID: "DEV"}}
	c.inbox, c.outbox = delivery.New(db, c.cfg.now, command.IsRetry)
	return c
}

func inbound(id string) chat.Message {
	return chat.Message{Head: chat.Head{ID: id, Room: "!r", Sender: "@me:b", Private: true, At: time.UnixMilli(1_700_000_000_000)}, Text: "text of " + id}
}

// Holds F8.
func TestInboxAndTokenGoTogether(t *testing.T) {
	c, ctx := newOffline(t), t.Context()
	expect.OK(t, c.commitBatchAndSyncToken(ctx, "s1", &batch{Batch: delivery.Batch{In: []delivery.Incoming{{Event: inbound("$1")}, {Event: inbound("$2")}}}}))
	rows := expect.Must(c.inbox.Waiting(ctx, nil, 100))(t)
	want := []delivery.InboxRow{{Seq: 1, Message: inbound("$1")}, {Seq: 2, Message: inbound("$2")}}
	expect.NoDiff(t, rows, want, "inbox")
	// A sync that cannot be stored completely leaves no rows and no token.
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.commitBatchAndSyncToken(cancelled, "s2", &batch{Batch: delivery.Batch{In: []delivery.Incoming{{Event: inbound("$3")}}}}); err == nil {
		t.Error("stored with a cancelled context")
	}
	expect.Must(c.cfg.DB.ExecContext(ctx, `CREATE TRIGGER fail BEFORE UPDATE ON matrix_sync BEGIN SELECT raise(ABORT, 'disk full'); END`))(t)
	if err := c.commitBatchAndSyncToken(ctx, "s2", &batch{Batch: delivery.Batch{In: []delivery.Incoming{{Event: inbound("$3")}}}}); err == nil {
		t.Error("stored without its token")
	}
	expect.Equal(t, len(expect.Must(c.inbox.Waiting(ctx, nil, 100))(t)), 2, "messages, none without its token")
	expect.Equal(t, expect.Must(c.storedSyncPosition(ctx))(t).token, "s1", "the token")
	c.cli.DeviceID = "OTHER"
	if p, err := c.storedSyncPosition(ctx); err != nil || !p.returning() {
		t.Errorf("another device's position %+v %v, want that of one that takes its place", p, err)
	}
	c.cli.UserID = "@other:b"
	if p, err := c.storedSyncPosition(ctx); err != nil || p.token != "" || !p.at.IsZero() {
		t.Errorf("another account's position %+v %v, want none", p, err)
	}
}

func member(who, membership, before string) *event.Event {
	e := &event.Event{Type: event.StateMember, StateKey: &who, Content: event.Content{Raw: map[string]any{"membership": membership}}}
	if before != "" {
		e.Unsigned.PrevContent = &event.Content{Raw: map[string]any{"membership": before}}
	}
	return e
}

// Holds F13.
func TestDropOld(t *testing.T) {
	text := func(id string) *event.Event {
		return &event.Event{ID: "$1", Type: event.EventMessage, Sender: "@me:b", RoomID: "!r", Content: event.Content{Raw: map[string]any{"body": id}}}
	}
	for _, c := range []struct {
		name   string
		fresh  bool
		events []*event.Event
		want   string
	}{
		{"running as usual", false, []*event.Event{text("a"), text("b")}, "a b "},
		{"fresh store", true, []*event.Event{text("a"), member(self, "join", "invite"), text("b")}, ""},
		{"joined in this batch", false, []*event.Event{text("old"), member(self, "join", ""), text("a")}, "a "},
		{"asked between invitation and joining", false, []*event.Event{text("old"), member(self, "invite", ""), text("a"), member(self, "join", "invite"), text("b")}, "a b "},
		{"left and came back", false, []*event.Event{member(self, "invite", ""), text("old"), member(self, "leave", "join"), text("old"), member(self, "join", "leave"), text("a")}, "a "},
		{"our name changed", false, []*event.Event{text("a"), member(self, "join", "join"), text("b")}, "a b "},
		{"joined, then our name changed", false, []*event.Event{text("old"), member(self, "join", "leave"), text("a"), member(self, "join", "join"), text("b")}, "a b "},
		{"somebody else joined", false, []*event.Event{text("a"), member("@x:b", "join", "")}, "a "},
	} {
		t.Run(c.name, func(t *testing.T) {
			room := &mautrix.SyncJoinedRoom{Timeline: mautrix.SyncTimeline{SyncEventsList: mautrix.SyncEventsList{Events: c.events}}}
			states := 0
			for _, e := range c.events {
				if e.StateKey != nil {
					states++
				}
			}
			dropped := dropMessagesBeforeJoin(room, self, c.fresh)
			got := ""
			for _, e := range room.Timeline.Events {
				if e.StateKey != nil {
					states--
					continue
				}
				got += e.Content.Raw["body"].(string) + " "
			}
			expect.Equal(t, got, c.want, "kept")
			expect.Equal(t, states, 0, "states that were dropped")
			expect.Equal(t, dropped, len(c.events)-len(room.Timeline.Events), "dropped, it says")
		})
	}
}
