package matrix

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"

	"reverie/internal/matrix/retry"
	"reverie/internal/matrix/room"
	"reverie/internal/store"
)

// pace is how long things may take. Tests are in more of a hurry.
type pace struct {
	poll    time.Duration // how long the homeserver may hold a sync back while nothing happens
	slack   time.Duration // how much longer a sync may take before it is taken for dead
	askKey  time.Duration // how long a key may be late before it is asked for
	keyWait time.Duration // … and before the sender is told
	again   time.Duration // between two tries to read an event; grows
	echo    time.Duration // how long the homeserver may take to show what it has taken
	restart time.Duration // … when it ended meanwhile
	fetch   time.Duration // how long what a message is completed with may take at most; 0 = as long as it says
	refuse  time.Duration // between refusing some invitations and some more
}

// The queues inside Dendrite hand out again what was in them when it ended, half a
// minute later: that is the restart here.
var normalPace = pace{
	poll: 30 * time.Second, slack: time.Minute, askKey: 3 * time.Second, keyWait: 30 * time.Second, again: 2 * time.Second,
	echo: time.Second, restart: 35 * time.Second, refuse: 2 * time.Second,
}

// syncState is how far the sync loop has come.
type syncState struct {
	hasty       atomic.Bool   // the next sync is to return at once
	begun, done atomic.Int64  // number of the newest sync that was begun, and that was processed
	failures    atomic.Int64  // syncs failed in a row
	lastSync    atomic.Int64  // Unix milliseconds
	synced      chan struct{} // closed after the first good sync of this process
	relogins    int           // since the last good sync; sync goroutine only
	once        sync.Once

	mu      sync.Mutex
	problem string                  // why the last sync failed; empty when it did not
	cutPoll context.CancelCauseFunc // ends the poll that is under way
}

// hurry makes the sync loop ask at once for what is new.
func (s *syncState) hurry() {
	s.hasty.Store(true)
	s.mu.Lock()
	cut := s.cutPoll
	s.mu.Unlock()
	if cut != nil {
		cut(errHurried)
	}
}

// numbers are those of the newest sync that was begun, and that was processed.
func (s *syncState) numbers() (begun, done int64) { return s.begun.Load(), s.done.Load() }

func (s *syncState) setProblem(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = problem
}

// status is why the last sync failed, and when the last good one was; the zero time = not yet.
func (s *syncState) status() (problem string, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.lastSync.Load(); at > 0 {
		last = time.UnixMilli(at)
	}
	return s.problem, last
}

// longestSync bounds a sync that is known to be slow: the first one, and one
// that follows a failure.
const longestSync = 170 * time.Second

// longestWaitForDisk is how long a disk that has room again goes unnoticed.
const longestWaitForDisk = 5 * time.Second

// errHurried ends a poll because somebody needs a fresh sync at once.
var errHurried = errors.New("matrix: a fresh sync is needed")

// runSync keeps up with the homeserver until ctx ends. This loop stands in for
// that of mautrix, which saves the token before it processes what came with
// it, waits for ever on a dead connection, and stops at the first panic.
func (c *Client) runSync(ctx context.Context, members *room.Memberships) error {
	var filter string
	c.sync.hasty.Store(true) // nothing is sent before the first sync
	for ctx.Err() == nil {
		if err := c.acc.CheckStale(ctx); err != nil {
			return err
		}
		err := c.syncOnce(ctx, &filter, members)
		if err == nil || ctx.Err() != nil || errors.Is(err, errHurried) {
			continue
		}
		if err := c.syncFailed(ctx, err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *Client) syncOnce(ctx context.Context, filter *string, members *room.Memberships) error {
	if *filter == "" {
		f, err := c.cli.CreateFilter(ctx, syncFilter())
		if err != nil {
			return err
		}
		*filter = f.FilterID
	}
	pos, err := c.position(ctx)
	if err != nil {
		return err
	}
	n := c.sync.begun.Add(1)
	res, err := c.poll(ctx, pos.token, *filter)
	if err != nil {
		return err
	}
	if err := c.process(ctx, res, pos, members); err != nil {
		return fmt.Errorf("process a sync: %w", err)
	}
	if c.sync.failures.Swap(0) > 0 {
		c.Back()
	}
	c.sync.done.Store(n)
	c.sync.relogins = 0
	c.sync.lastSync.Store(c.cfg.now().UnixMilli())
	c.sync.setProblem("")
	c.sync.once.Do(func() {
		c.cfg.Log.Info("matrix: first sync done")
		close(c.sync.synced)
	})
	retry.Wake(c.outWake) // a message may have waited to see whether it came through
	return nil
}

func syncFilter() *mautrix.Filter {
	none := &mautrix.FilterPart{NotTypes: []event.Type{{Type: "*"}}}
	return &mautrix.Filter{
		Presence: none,
		Room:     &mautrix.RoomFilter{Timeline: &mautrix.FilterPart{Limit: 100}, Ephemeral: none},
	}
}

// poll asks for what is new. A connection on which nothing comes any more, not
// even its end, is given up.
func (c *Client) poll(ctx context.Context, since, filter string) (*mautrix.RespSync, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	c.sync.mu.Lock()
	c.sync.cutPoll = cut
	c.sync.mu.Unlock()
	failures := c.sync.failures.Load()
	hold, limit := c.cfg.pace.poll, c.cfg.pace.poll+c.cfg.pace.slack
	if c.sync.hasty.Swap(false) || failures > 0 || since == "" {
		hold = 0
	}
	if failures > 0 || since == "" {
		limit = max(limit, longestSync)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	query := map[string]string{"timeout": strconv.FormatInt(hold.Milliseconds(), 10), "filter": filter}
	if since != "" {
		query["since"] = since
	}
	var raw json.RawMessage
	_, err := c.cli.MakeFullRequest(timed, mautrix.FullRequest{
		Method: http.MethodGet, URL: c.cli.BuildURLWithQuery(mautrix.ClientURLPath{"v3", "sync"}, query),
		ResponseJSON: &raw, MaxAttempts: 1,
	})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errHurried):
		c.sync.hasty.Store(true)
		return nil, errHurried
	case err != nil && timed.Err() != nil && ctx.Err() == nil:
		if t, ok := c.cfg.HTTP.(interface{ CloseIdleConnections() }); ok {
			t.CloseIdleConnections() // the next request must not use the dead one
		}
		return nil, fmt.Errorf("the homeserver has not answered a sync within %s: %w", limit, err)
	case err != nil:
		return nil, err
	}
	res := &mautrix.RespSync{}
	if err := c.decode(raw, res); err != nil {
		return nil, fmt.Errorf("read a sync: %w", err)
	}
	return res, nil
}

// decode reads an answer, and leaves out what is no event at all in it: one broken event must
// not hide the others.
func (c *Client) decode(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err == nil && !bytes.Contains(raw, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return err
	}
	if dropped := sift(doc); dropped > 0 {
		c.cfg.Log.Error("matrix: an answer contained what is no event; that is left out", "count", dropped)
		raw, _ = json.Marshal(doc) //nolint:errchkjson // it was JSON when it came
	}
	reflect.ValueOf(into).Elem().SetZero() // of the first attempt
	return json.Unmarshal(raw, into)
}

// sift takes out of all lists of events what is none.
func sift(v any) (dropped int) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			list, ok := child.([]any)
			if !ok || k != "events" && k != "chunk" {
				dropped += sift(child)
				continue
			}
			kept := slices.DeleteFunc(slices.Clone(list), func(e any) bool {
				raw, err := json.Marshal(e)
				return e == nil || err != nil || json.Unmarshal(raw, &event.Event{}) != nil
			})
			dropped += len(list) - len(kept)
			v[k] = kept
		}
	case []any:
		for _, child := range v {
			dropped += sift(child)
		}
	}
	return dropped
}

// syncFailed decides what a failure means: another login, the end, or waiting.
func (c *Client) syncFailed(ctx context.Context, err error) error {
	c.sync.setProblem(err.Error())
	if errors.Is(err, mautrix.MUnknownToken) {
		if c.sync.relogins++; c.sync.relogins > 1 {
			return fmt.Errorf("matrix: the homeserver lets device %s log in and then refuses it again; ask who runs the homeserver, "+
				"or see whether another program uses the same device: %w", c.cli.DeviceID, err)
		}
		if err := c.acc.LogInAgain(ctx); err != nil {
			return err
		}
		if err := c.acc.Persist(ctx, "checking this device's keys", func() error { return c.acc.Republish(ctx) }); err != nil {
			c.cfg.Log.Error("matrix: after logging in again", "err", err)
		}
		return nil
	}
	var h mautrix.HTTPError
	if errors.As(err, &h) && (errors.Is(err, mautrix.MUserDeactivated) || errors.Is(err, mautrix.MForbidden)) {
		return fmt.Errorf("matrix: the homeserver refuses this account: %w", err)
	}
	c.Lost(err)
	attempt := int(c.sync.failures.Add(1)) - 1
	if err := c.noteSyncFailed(ctx, int64(attempt)+1, err); err != nil && ctx.Err() == nil {
		c.cfg.Log.Warn("matrix: `bot doctor` will not see why syncs fail", "err", err)
	}
	v, wait := retry.Classify(err, attempt)
	if v != retry.Again {
		wait = retry.Backoff(attempt)
	}
	if store.IsTransient(err) { // it costs the homeserver nothing to look again soon
		wait = min(wait, longestWaitForDisk)
	}
	c.cfg.Log.Warn("matrix: sync failed; trying again", "in", wait.Round(time.Second), "err", err)
	_ = retry.Pause(ctx, nil, wait) // the next sync sees that ctx has ended
	return nil
}
