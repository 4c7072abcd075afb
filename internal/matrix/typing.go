package matrix

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/id"

	"reverie/internal/matrix/retry"
)

const (
	typingFor     = 30 * time.Second
	typingRefresh = 20 * time.Second
	offTimeout    = 2 * time.Second // to say that nobody types any more
)

// typing keeps typing notices as they should be: they run out by themselves
// after typingFor, so they are refreshed before, and at the end all are off.
type typing struct {
	cli  *mautrix.Client
	log  *slog.Logger
	now  func() time.Time
	wake chan struct{}

	mu    sync.Mutex
	rooms map[string]*typingNotice
}

// typingNotice is what a room is shown, and what it should be shown.
type typingNotice struct {
	want, shown bool
	refresh     time.Time
}

func newTyping(cli *mautrix.Client, log *slog.Logger, now func() time.Time) *typing {
	return &typing{cli: cli, log: log, now: now, wake: make(chan struct{}, 1), rooms: map[string]*typingNotice{}}
}

// Typing shows or hides that an answer is being written, see chat.Transport.
func (c *Client) Typing(_ context.Context, room string, on bool) { c.typing.set(room, on) }

func (t *typing) set(room string, on bool) {
	t.mu.Lock()
	n := t.rooms[room]
	if n == nil {
		n = &typingNotice{}
		t.rooms[room] = n
	}
	n.want = on
	t.mu.Unlock()
	retry.Wake(t.wake)
}

func (t *typing) run(ctx context.Context) error {
	defer t.show(ctx, true)
	return retry.Loop(ctx, t.now, t.wake, func(ctx context.Context) time.Time { return t.show(ctx, false) })
}

func (t *typing) show(ctx context.Context, end bool) (next time.Time) {
	now := t.now()
	next = now.Add(time.Hour)
	todo := map[string]bool{}
	t.mu.Lock()
	for room, n := range t.rooms {
		want := n.want && !end
		if want != n.shown || want && !n.refresh.After(now) {
			todo[room] = want
		}
		n.shown = want
		if !want {
			delete(t.rooms, room)
			continue
		}
		if todo[room] {
			n.refresh = now.Add(typingRefresh)
		}
		next = retry.Earlier(next, n.refresh)
	}
	t.mu.Unlock()
	for room, on := range todo {
		rctx, cancel := context.WithTimeout(ctx, smallTimeout)
		if !on { // the end of the program must not cut it off: nobody would say it again
			cancel()
			rctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), offTimeout)
		}
		_, err := t.cli.UserTyping(rctx, id.RoomID(room), on, typingFor)
		cancel()
		if err != nil && ctx.Err() == nil {
			t.log.Debug("matrix: typing notice not sent", "room", room, "err", err)
		}
	}
	return next
}
