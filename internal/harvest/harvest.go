// Package harvest extracts facts from what people say and stores them in memory.
//
// A model of the role harvest reads a conversation after 20 messages, 15 minutes of silence, at !new, or
// before a compaction. Each message has a row in the table harvest, updated in the transaction that stores
// its facts, so none is skipped or read twice. A fact needs a quote from the person's own words that
// supports its names, numbers and negation. Secrets, recalled and forgotten texts are refused.
// Conversations take turns, and requests give way to people who wait for an answer.
package harvest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"reverie/internal/llm"
	"reverie/internal/llm/template"
	"reverie/internal/memory"
	"reverie/internal/pace"
	"reverie/internal/profile"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Config configures a Harvester; all fields but Default are required.
type Config struct {
	DB    *store.DB     // migrated; the caller closes it
	Store *memory.Store // on the same database
	// Ask sends one prompt to a model of a role. A truncated answer is an error.
	Ask     func(ctx context.Context, role, prompt string) (answer string, err error)
	Prompts fs.FS // holds prompts/MEMORY_HARVEST_PROMPT.txt, read for each request
	Default fs.FS // fallback for a template that cannot be read
	// Window returns that role's context window and its share for the answer, in tokens.
	Window func(role string) (window, answer int)
	// Level returns how far a sender is trusted; messages below trust.User are skipped.
	Level func(sender string) trust.Integrity
	// LastMessageAt returns when a person last wrote in a room. Zero means at the last unread message.
	LastMessageAt func(ctx context.Context, room string) (time.Time, error)
	// WaitIdle waits until no person waits for an answer. The returned context ends when a person
	// writes; done must be called.
	WaitIdle func(ctx context.Context) (work context.Context, done func(), err error)

	Messages    int           // unread messages that start a reading without a pause
	CallsPerDay int           // requests of Run in 24 hours; the rest is read later
	Idle        time.Duration // silence that starts a reading
	Profiles    profile.Store // for the time zone of a message
	Now         func() time.Time
	Log         *slog.Logger
}

// role is the model role, and the actor in the journal of memory.
const role = "harvest"

// Template is the prompt that asks for facts.
var Template = template.Template{File: "MEMORY_HARVEST_PROMPT.txt", Placeholders: [][]string{{"{transcript}"}}}

// Result counts messages read and facts found.
type Result struct {
	Requests int            `json:"requests"`          // sent to a model
	Messages int            `json:"messages"`          // read completely, or skipped
	Added    int            `json:"added"`             // new entries
	Known    int            `json:"known"`             // facts already stored
	Refused  map[string]int `json:"refused,omitempty"` // reason → facts
	GivenUp  int            `json:"left"`              // messages given up after failures
}

func (h *Result) add(o Result) {
	h.Requests, h.Messages, h.GivenUp = h.Requests+o.Requests, h.Messages+o.Messages, h.GivenUp+o.GivenUp
	h.Added, h.Known = h.Added+o.Added, h.Known+o.Known
	for reason, n := range o.Refused {
		h.addRefused(reason, n)
	}
}

func (h *Result) addRefused(reason string, n int) {
	if h.Refused == nil {
		h.Refused = map[string]int{}
	}
	h.Refused[reason] += n
}

// String summarises the result in one sentence.
func (h *Result) String() string {
	if h == nil {
		return ""
	}
	refused := 0
	for _, k := range h.Refused {
		refused += k
	}
	return fmt.Sprintf("Read before: %d messages, with %d new facts (known already: %d, refused: %d, messages given up: %d).",
		h.Messages, h.Added, h.Known, refused, h.GivenUp)
}

// Harvester reads messages and stores the facts worth remembering. Its progress is durable per
// message. It is safe for concurrent use and makes one request at a time.
type Harvester struct {
	cfg         Config
	log         *slog.Logger
	requestSlot chan struct{} // holds a token during a request
	wake        chan struct{} // holds a token after readNow changed

	mu       sync.Mutex
	readNow  map[string]bool    // conversations to read without waiting for a pause
	backoffs map[string]backoff // of conversations whose last request failed

	// Only Run uses these.
	dayStart    time.Time // start of the 24 hours that dayRequests counts
	dayRequests int       // requests wanted since dayStart
}

// backoff holds the failures of a conversation in a row, and when to retry.
type backoff struct {
	failed int
	until  time.Time
}

// Open returns a harvester. Nothing happens before Run.
func Open(c Config) *Harvester {
	return &Harvester{cfg: c, log: c.Log, requestSlot: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		readNow: map[string]bool{}, backoffs: map[string]backoff{}}
}

// Wake schedules a conversation to be read soon. Part of it is about to leave the prompt. It
// returns at once: the messages stay in the database.
func (h *Harvester) Wake(conversation string) {
	h.mu.Lock()
	h.readNow[conversation] = true
	h.mu.Unlock()
	pace.Wake(h.wake)
}

// pollInterval is how often Run looks for conversations to read.
const pollInterval = time.Minute

// Run reads conversations until ctx ends: those with enough new messages, those that went silent,
// and those passed to Wake.
func (h *Harvester) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
		case <-time.After(pollInterval):
		}
		rooms, err := h.Due(ctx)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("cannot list the conversations to harvest; will retry", "err", err)
		}
		_, _ = h.Read(ctx, rooms, h.askWithinLimit, len(rooms)) // Read logs failures
	}
}

// Due lists the conversations to read now, oldest message first.
func (h *Harvester) Due(ctx context.Context) ([]string, error) {
	all, err := h.pendingConversations(ctx)
	if err != nil {
		return nil, err
	}
	now := h.cfg.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	var rooms []string
	for _, w := range all {
		if now.Before(h.backoffs[w.room].until) {
			continue
		}
		if h.readNow[w.room] || w.messages >= h.cfg.Messages || now.Sub(w.heard) >= h.cfg.Idle {
			rooms = append(rooms, w.room)
		}
	}
	return rooms, nil
}

// errInterrupted means that a person wrote during the request; errChanged, that a message changed while it
// was read; ErrLimit, that no more requests are allowed now. None counts as a failure of the messages.
var (
	errInterrupted = errors.New("somebody wrote meanwhile")
	errChanged     = errors.New("a message was changed while it was read")
	ErrLimit       = errors.New("the rest is read later")
)

// askFunc sends a prompt to a model, or returns ErrLimit.
type askFunc func(ctx context.Context, prompt string) (answer string, err error)

// Ask sends prompt to a model of the role harvest.
func (h *Harvester) Ask(ctx context.Context, prompt string) (string, error) {
	return h.cfg.Ask(ctx, role, prompt)
}

// readBatch sends one request with unread messages of room. more reports that unread ones may remain.
func (h *Harvester) readBatch(ctx context.Context, room string, halvings int, ask askFunc) (done Result, more bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic while harvesting", "room", room, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	work, release, err := h.cfg.WaitIdle(ctx)
	if err != nil {
		return done, false, err
	}
	defer release()
	select {
	case h.requestSlot <- struct{}{}:
		defer func() { <-h.requestSlot }()
	case <-work.Done():
		return done, false, orInterrupted(ctx, work, work.Err())
	}
	b, err := h.nextBatch(work, room, halvings)
	if err != nil {
		return done, false, orInterrupted(ctx, work, err)
	}
	done.Messages = b.skipped
	if len(b.messages) == 0 {
		return done, b.skipped > 0, nil
	}
	answer, err := ask(work, b.prompt)
	if errors.Is(err, ErrLimit) {
		return done, false, err
	}
	done.Requests++
	var found []finding
	if err == nil {
		found, err = parseFindings(answer)
	}
	if err != nil {
		if err = orInterrupted(ctx, work, err); errors.Is(err, errInterrupted) || ctx.Err() != nil {
			return done, false, err
		}
		givenUp, failed := h.recordFailure(ctx, b, err)
		done.GivenUp += givenUp
		return done, false, errors.Join(err, failed)
	}
	return h.storeFindings(ctx, b, found, done)
}

// orInterrupted returns errInterrupted if work has ended but ctx has not, else err.
func orInterrupted(ctx, work context.Context, err error) error {
	if work.Err() != nil && ctx.Err() == nil {
		return errInterrupted
	}
	return err
}

// storeFindings stores the facts found in b and marks b as read, in one transaction.
func (h *Harvester) storeFindings(ctx context.Context, b batch, found []finding, done Result) (Result, bool, error) {
	var entries []memory.Entry
	for _, f := range found {
		e, refused := b.checkFinding(f)
		if refused == "" && e.repeats(entries) {
			refused = refusedKnown
		}
		if refused != "" {
			done.addRefused(refused, 1)
			h.log.Debug("fact refused", "room", b.room, "reason", refused)
			continue
		}
		entries = append(entries, e.Entry)
	}
	also := func(ctx context.Context, tx *sql.Tx) error { return b.markRead(ctx, tx, h.cfg.Now()) }
	learned, err := h.cfg.Store.Learn(ctx, role, entries, also)
	if errors.Is(err, errChanged) {
		return done, true, nil // read again with their new text
	}
	if err != nil {
		return done, false, err
	}
	for _, l := range learned {
		switch {
		case l.Added:
			done.Added++
		case l.Refused == nil:
			done.Known++
		case errors.Is(l.Refused, memory.ErrForgotten):
			done.addRefused(refusedForgotten, 1)
		case errors.Is(l.Refused, memory.ErrRetired):
			done.addRefused(refusedPutAway, 1)
		default:
			done.addRefused(refusedText, 1)
		}
	}
	done.Messages += b.countFinished()
	return done, true, nil
}

// modelUnavailable reports whether the model could not be asked at all. The messages are not to blame.
func modelUnavailable(err error) bool {
	var model *llm.Error
	if !errors.As(err, &model) {
		return false
	}
	switch model.Kind {
	case llm.Unreachable, llm.RateLimited, llm.Quota, llm.Denied, llm.NotFound:
		return true
	}
	return false
}

// Bounds of the wait after failed requests.
const (
	minBackoff = time.Minute
	maxBackoff = time.Hour
)

// Read reads the conversations in turn, one request each, until all are done. A conversation that
// fails backs off and is left out. Read stops after failures failed conversations in a row, at
// ErrLimit and when ctx ends, and returns the first error.
func (h *Harvester) Read(ctx context.Context, rooms []string, ask askFunc, failures int) (sum Result, first error) {
	halvings := map[string]int{} // how often a person interrupted: halves the batch
	failed := 0
	for len(rooms) > 0 && ctx.Err() == nil {
		room := rooms[0]
		rooms = rooms[1:]
		done, more, err := h.readBatch(ctx, room, halvings[room], ask)
		sum.add(done)
		if done.Messages > 0 {
			h.log.Info("harvested", "room", room, "messages", done.Messages,
				"added", done.Added, "known", done.Known, "refused", done.Refused, "left", done.GivenUp)
		}
		switch {
		case errors.Is(err, errInterrupted):
			halvings[room]++
			rooms = append(rooms, room)
			continue
		case err == nil && more:
			failed = 0
			rooms = append(rooms, room)
			continue
		}
		h.recordOutcome(ctx, room, err)
		if err == nil {
			continue
		}
		if first == nil {
			first = fmt.Errorf("harvest %s: %w", room, err)
		}
		if failed++; errors.Is(err, ErrLimit) || failed >= failures {
			return sum, first
		}
	}
	if first == nil && len(rooms) > 0 {
		first = ctx.Err()
	}
	return sum, first
}

// recordOutcome clears the back-off of a conversation, or extends it after an error.
func (h *Harvester) recordOutcome(ctx context.Context, room string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.readNow, room)
		delete(h.backoffs, room)
		return
	}
	if ctx.Err() != nil || errors.Is(err, ErrLimit) {
		return
	}
	r := h.backoffs[room]
	wait := min(minBackoff<<min(r.failed, 10), maxBackoff)
	h.backoffs[room] = backoff{failed: r.failed + 1, until: h.cfg.Now().Add(wait)}
	h.log.Warn("harvest failed; will retry, nothing is lost", "room", room, "in", wait, "err", err)
}

// MarkUnread marks an edited message as unread, within the transaction of the edit.
func MarkUnread(ctx context.Context, tx *sql.Tx, message int64) error {
	return store.Exec(ctx, tx, `UPDATE harvest SET state = 'new', tries = 0, bytes_read = 0, at = 0, reason = ''
		WHERE message = ?`, message)
}

// IdleRooms lists conversations with unread messages in which no person wrote after since. Those
// with most failures come last. messages counts all unread messages.
func (h *Harvester) IdleRooms(ctx context.Context, since time.Time) (rooms []string, messages int, err error) {
	all, err := h.pendingConversations(ctx)
	for _, w := range all {
		messages += w.messages
		if !w.heard.After(since) {
			rooms = append(rooms, w.room)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(rooms, func(a, b string) int { return h.backoffs[a].failed - h.backoffs[b].failed })
	return rooms, messages, err
}

// day is the period of CallsPerDay.
const day = 24 * time.Hour

// askWithinLimit is Ask, or ErrLimit after CallsPerDay requests in 24 hours.
func (h *Harvester) askWithinLimit(ctx context.Context, prompt string) (string, error) {
	if now := h.cfg.Now(); now.Sub(h.dayStart) >= day {
		h.dayStart, h.dayRequests = now, 0
	}
	h.dayRequests++
	if h.dayRequests <= h.cfg.CallsPerDay {
		return h.Ask(ctx, prompt)
	}
	if h.dayRequests == h.cfg.CallsPerDay+1 {
		h.log.Warn("daily limit of harvest requests reached (harvest.calls); the rest is read later",
			"requests", h.cfg.CallsPerDay)
	}
	return "", ErrLimit
}
