package matrix

import (
	"bytes"
	"context"
	"database/sql"
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
	"reverie/internal/pace"
	"reverie/internal/store"
)

// timings are the delays and deadlines of the sync and the queues. Tests use shorter ones.
type timings struct {
	poll    time.Duration // timeout parameter of a sync request
	slack   time.Duration // added to poll: deadline of a sync request
	askKey  time.Duration // delay before a missing key is requested
	keyWait time.Duration // delay before the sender is told of a missing key
	retry   time.Duration // first delay between two tries to read an event
	echo    time.Duration // wait for the echo of a message
	restart time.Duration // the same after a restart of the homeserver
	fetch   time.Duration // limit of completing a message; 0 = the default of each part
	refuse  time.Duration // delay between two batches of refused invitations
}

// Half a minute after a restart, Dendrite repeats what was in its queues: hence restart.
var defaultTimings = timings{
	poll: 30 * time.Second, slack: time.Minute, askKey: 3 * time.Second, keyWait: 30 * time.Second, retry: 2 * time.Second,
	echo: time.Second, restart: 35 * time.Second, refuse: 2 * time.Second,
}

// syncState is the progress of the sync loop.
type syncState struct {
	hasty       atomic.Bool   // the next sync is to return at once
	begun, done atomic.Int64  // numbers of the last sync that was started, and that was processed
	passes      atomic.Int64  // of the sync loop, also failed ones; each minute of a wait counts as one
	failures    atomic.Int64  // failed syncs in a row
	lastSync    atomic.Int64  // Unix milliseconds
	synced      chan struct{} // closed after the first successful sync of this process
	relogins    int           // since the last successful sync; sync goroutine only
	once        sync.Once

	mu      sync.Mutex
	problem string                  // error of the last sync; empty = it succeeded
	cutPoll context.CancelCauseFunc // cancels the current poll
}

// syncNow makes the sync loop request new events at once.
func (s *syncState) syncNow() {
	s.hasty.Store(true)
	s.mu.Lock()
	cut := s.cutPoll
	s.mu.Unlock()
	if cut != nil {
		cut(errHurried)
	}
}

func (s *syncState) setProblem(problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.problem = problem
}

// problemAndLastSuccess returns the error of the last sync and the time of the last success. The zero
// time means never.
func (s *syncState) problemAndLastSuccess() (problem string, last time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.lastSync.Load(); at > 0 {
		last = time.UnixMilli(at)
	}
	return s.problem, last
}

// SyncProgress returns a number that grows while the sync loop is alive, also without a homeserver. synced
// reports whether this process has synced.
func (c *Client) SyncProgress() (passes int64, synced bool) {
	return c.sync.passes.Load(), c.sync.done.Load() > 0
}

// longestSync is the deadline of a sync that may be slow: the first one and one after a failure.
const longestSync = 170 * time.Second

// longestWaitForDisk limits the delay of a retry after a full disk.
const longestWaitForDisk = 5 * time.Second

// errHurried cancels a poll because a fresh sync is needed at once.
var errHurried = errors.New("matrix: a fresh sync is needed")

// runSyncLoop syncs with the homeserver until ctx ends. It replaces mautrix's loop, which stores the
// token before it processes the events, waits for ever on a dead connection, and stops at a panic.
func (c *Client) runSyncLoop(ctx context.Context, members *room.Memberships) error {
	var filter string
	c.sync.hasty.Store(true) // nothing is sent before the first sync
	for ctx.Err() == nil {
		c.sync.passes.Add(1)
		if err := c.acc.SetStaleKeysAsideAndFail(ctx); err != nil {
			return err
		}
		err := c.syncOnce(ctx, &filter, members)
		if err == nil || ctx.Err() != nil || errors.Is(err, errHurried) {
			continue
		}
		if err := c.recoverFromSyncError(ctx, err); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (c *Client) syncOnce(ctx context.Context, filter *string, members *room.Memberships) error {
	if *filter == "" {
		f, err := c.cli.CreateFilter(ctx, newSyncFilter())
		if err != nil {
			return err
		}
		*filter = f.FilterID
	}
	pos, err := c.storedSyncPosition(ctx)
	if err != nil {
		return err
	}
	n := c.sync.begun.Add(1)
	res, err := c.requestSync(ctx, pos.token, *filter)
	if err != nil {
		return err
	}
	if err := c.processAndStoreSync(ctx, res, pos, members); err != nil {
		return fmt.Errorf("process a sync: %w", err)
	}
	if c.sync.failures.Swap(0) > 0 {
		c.SyncRecovered()
	}
	c.sync.done.Store(n)
	c.sync.relogins = 0
	c.sync.lastSync.Store(c.cfg.now().UnixMilli())
	c.sync.setProblem("")
	c.sync.once.Do(func() {
		c.cfg.Log.Info("matrix: first sync done")
		close(c.sync.synced)
	})
	pace.Wake(c.outWake) // a message may wait for its echo
	return nil
}

func newSyncFilter() *mautrix.Filter {
	none := &mautrix.FilterPart{NotTypes: []event.Type{{Type: "*"}}}
	return &mautrix.Filter{
		Presence: none,
		Room:     &mautrix.RoomFilter{Timeline: &mautrix.FilterPart{Limit: 100}, Ephemeral: none},
	}
}

// requestSync requests one sync. It gives up a connection that delivers nothing any more.
func (c *Client) requestSync(ctx context.Context, since, filter string) (*mautrix.RespSync, error) {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	c.sync.mu.Lock()
	c.sync.cutPoll = cut
	c.sync.mu.Unlock()
	failures := c.sync.failures.Load()
	hold, limit := c.cfg.timings.poll, c.cfg.timings.poll+c.cfg.timings.slack
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
			t.CloseIdleConnections() // the next request must not reuse a dead connection
		}
		return nil, fmt.Errorf("the homeserver has not answered a sync within %s: %w", limit, err)
	case err != nil:
		return nil, err
	}
	res := &mautrix.RespSync{}
	return res, store.Wrap(c.decodeResponseDroppingBadEvents(raw, res), "read a sync")
}

// decodeResponseDroppingBadEvents unmarshals a response and drops malformed events. So one malformed
// event does not hide the others.
func (c *Client) decodeResponseDroppingBadEvents(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err == nil && !bytes.Contains(raw, []byte("null")) {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var doc any
	if err := d.Decode(&doc); err != nil {
		return err
	}
	if dropped := dropUnparsableEvents(doc); dropped > 0 {
		c.cfg.Log.Error("matrix: malformed events in a response were dropped", "count", dropped)
		raw, _ = json.Marshal(doc) //nolint:errchkjson // it was JSON when it came
	}
	reflect.ValueOf(into).Elem().SetZero() // undo the first attempt
	return json.Unmarshal(raw, into)
}

// dropUnparsableEvents removes list items that are no events from v. It returns their number.
func dropUnparsableEvents(v any) (dropped int) {
	switch v := v.(type) {
	case map[string]any:
		for k, child := range v {
			list, ok := child.([]any)
			if !ok || k != "events" && k != "chunk" {
				dropped += dropUnparsableEvents(child)
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
			dropped += dropUnparsableEvents(child)
		}
	}
	return dropped
}

// recoverFromSyncError handles a failed sync: it logs in again, gives up or waits for a retry.
func (c *Client) recoverFromSyncError(ctx context.Context, err error) error {
	c.sync.setProblem(err.Error())
	if errors.Is(err, mautrix.MUnknownToken) {
		if c.sync.relogins++; c.sync.relogins > 1 {
			return fmt.Errorf("matrix: the homeserver lets device %s log in and then refuses it again; ask who runs the homeserver, "+
				"or see whether another program uses the same device: %w", c.cli.DeviceID, err)
		}
		if err := c.acc.RenewAccessToken(ctx); err != nil {
			return err
		}
		reupload := func() error { return c.acc.ReuploadDeviceKeysIfLost(ctx) }
		if err := c.acc.RetryRequest(ctx, "checking this device's keys", reupload); err != nil {
			c.cfg.Log.Error("matrix: after logging in again", "err", err)
		}
		return nil
	}
	var h mautrix.HTTPError
	if errors.As(err, &h) && (errors.Is(err, mautrix.MUserDeactivated) || errors.Is(err, mautrix.MForbidden)) {
		return fmt.Errorf("matrix: the homeserver refuses this account: %w", err)
	}
	c.SyncFailed(err)
	attempt := int(c.sync.failures.Add(1)) - 1
	if err := c.storeSyncFailure(ctx, int64(attempt)+1, err); err != nil && ctx.Err() == nil {
		c.cfg.Log.Warn("matrix: cannot record a failed sync for `bot doctor`", "err", err)
	}
	v, wait := retry.Classify(err, attempt)
	if v != retry.Again {
		wait = retry.Backoff(attempt)
	}
	if store.IsTransient(err) { // a retry costs the homeserver nothing
		wait = min(wait, longestWaitForDisk)
	}
	c.cfg.Log.Warn("matrix: sync failed; trying again", "in", wait.Round(time.Second), "err", err)
	for ; wait > 0 && ctx.Err() == nil; wait -= time.Minute { // if ctx has ended, the next sync fails
		_ = pace.Pause(ctx, nil, min(wait, time.Minute))
		c.sync.passes.Add(1)
	}
	return nil
}

// position is the stored sync token and its time.
type position struct {
	token string    // of this device
	at    time.Time // of its last sync, or of that of an earlier device, by our clock; zero = never
}

// returning reports whether a new device takes the place of an earlier one.
func (p position) returning() bool { return p.token == "" && !p.at.IsZero() }

// storedSyncPosition returns the stored sync position of this device.
func (c *Client) storedSyncPosition(ctx context.Context) (p position, err error) {
	var at int64
	err = c.cfg.DB.QueryRowContext(ctx, `SELECT iif(device = ?2, next_batch, ''), at FROM matrix_sync WHERE user = ?1
		ORDER BY device = ?2 DESC, at DESC LIMIT 1`, c.cli.UserID.String(), c.cli.DeviceID.String()).Scan(&p.token, &at)
	if found, err := store.Found(err); !found {
		return position{}, store.Wrap(err, "matrix: read sync token")
	}
	p.at = time.UnixMilli(at)
	return p, nil
}

// commitBatchAndSyncToken stores the batch of a sync and the next sync token in one transaction.
func (c *Client) commitBatchAndSyncToken(ctx context.Context, next string, b *batch) error {
	return c.inbox.Commit(ctx, &b.Batch, func(tx *sql.Tx) error {
		if err := room.StoreLastEvents(ctx, tx, b.last); err != nil {
			return err
		}
		return store.Exec(ctx, tx, `INSERT INTO matrix_sync (user, device, next_batch, at) VALUES (?, ?, ?, ?)
			ON CONFLICT (user, device) DO UPDATE SET next_batch = excluded.next_batch, at = excluded.at, failures = 0, problem = ''`,
			c.cli.UserID.String(), c.cli.DeviceID.String(), next, c.cfg.now().UnixMilli())
	})
}

// storeSyncFailure records a failed sync for `bot doctor`. Before the first sync there is no row to
// record it in.
func (c *Client) storeSyncFailure(ctx context.Context, failures int64, why error) error {
	return store.Exec(ctx, c.cfg.DB, `UPDATE matrix_sync SET failures = ?, problem = ? WHERE user = ? AND device = ?`,
		failures, why.Error(), c.cli.UserID.String(), c.cli.DeviceID.String())
}
