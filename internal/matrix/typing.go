package matrix

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"reverie/internal/pace"
)

const (
	typingAfter   = 200 * time.Millisecond // a faster answer needs no notice
	typingFor     = 30 * time.Second
	typingRefresh = 20 * time.Second
	typingTimeout = 2 * time.Second // of one request
)

// typingNotices keeps the typing notices of the rooms up to date. It refreshes each before it times out
// after typingFor, and ends all when the program ends.
type typingNotices struct {
	cli  *mautrix.Client
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{}

	mu    sync.Mutex
	rooms map[string]typingNotice
}

// typingNotice is the notice of a room.
type typingNotice struct {
	due   time.Time // when it is sent; zero = it is to be ended
	shown bool
}

func newTypingNotices(cli *mautrix.Client, log *slog.Logger, now func() time.Time) *typingNotices {
	return &typingNotices{cli: cli, log: log, now: now, wake: make(chan struct{}, 1), rooms: map[string]typingNotice{}}
}

// ShowTyping shows or hides the typing notice of room, see chat.Transport.
func (c *Client) ShowTyping(_ context.Context, room string, on bool) {
	c.typing.setRoomTyping(room, on)
}

func (t *typingNotices) setRoomTyping(room string, on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch n := t.rooms[room]; {
	case on && n.due.IsZero():
		t.rooms[room] = typingNotice{t.now().Add(typingAfter), n.shown}
	case !on && n.shown:
		t.rooms[room] = typingNotice{shown: true}
	case !on:
		delete(t.rooms, room)
		return
	}
	pace.Wake(t.wake)
}

func (t *typingNotices) runTypingSender(ctx context.Context) error {
	defer t.sendDueNotices(ctx, true)
	return pace.RunWhenDue(ctx, t.now, t.wake, func(ctx context.Context) time.Time { return t.sendDueNotices(ctx, false) })
}

// sendDueNotices sends the notices that are due and returns when the next one is. With end it ends all.
func (t *typingNotices) sendDueNotices(ctx context.Context, end bool) (next time.Time) {
	now := t.now()
	next = now.Add(time.Hour)
	todo := map[string]bool{}
	t.mu.Lock()
	for room, n := range t.rooms {
		switch {
		case end || n.due.IsZero():
			todo[room] = false
			delete(t.rooms, room)
			continue
		case !n.due.After(now):
			todo[room] = true
			n = typingNotice{now.Add(typingRefresh), true}
			t.rooms[room] = n
		}
		next = pace.Earlier(next, n.due)
	}
	t.mu.Unlock()
	for room, on := range todo {
		// Without the parent's cancellation: the end of a notice must be sent at shutdown, too.
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), typingTimeout)
		_, err := t.cli.UserTyping(rctx, id.RoomID(room), on, typingFor)
		cancel()
		if err != nil && ctx.Err() == nil {
			t.log.Debug("matrix: typing notice not sent", "room", room, "err", err)
		}
	}
	return next
}
