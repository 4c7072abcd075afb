// Package harvest makes memory of what people say.
//
// The model of the role harvest reads what people said after 20 messages of a room, 15 minutes of
// silence, at !new, or before a compaction. Each message has a row in the table harvest, changed in the
// transaction that stores what was learned, so nothing is skipped or read twice. The quote must
// be the person's own words, with their names, numbers and negation; secrets, recalled and
// forgotten texts are refused. Rooms take turns, and the background waits for people.
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
	"reverie/internal/store"
	"reverie/internal/trust"
)

// Config is what a Harvester works with; all of it must be set, but for Default.
type Config struct {
	DB    *sql.DB       // with the tables of the migrations; the caller closes it
	Store *memory.Store // of the same database
	// Ask puts one prompt to a model of a role. An answer that was cut off is an error.
	Ask     func(ctx context.Context, role, prompt string) (answer string, err error)
	Prompts fs.FS // what prompts/MEMORY_HARVEST_PROMPT.txt is read from, anew each time
	Default fs.FS // what stands in for a template that cannot be read
	// Window is how large a request of that role may be and how much of it is kept for the answer, in tokens.
	Window func(role string) (window, answer int)
	// Level is how far what a sender writes is trusted; below trust.User it is not read.
	Level func(sender string) trust.Integrity
	// Heard says when somebody spoke in a room last; zero = when the last message was said that is to be read.
	Heard func(ctx context.Context, room string) (time.Time, error)
	// Quiet waits until nobody waits for an answer. The context it returns ends when
	// somebody writes; done must be called.
	Quiet func(ctx context.Context) (work context.Context, done func(), err error)

	Messages int            // as many are read at once, without waiting for a pause
	Calls    int            // requests in 24 hours that Run makes; what is more is read later
	Idle     time.Duration  // a pause this long is waited for
	Location *time.Location // of the times in the prompt
	Now      func() time.Time
	Log      *slog.Logger
}

// role is that of the models that read conversations, and who the journal of memory says it was.
const role = "harvest"

// Template is the request that asks for facts.
var Template = template.Template{File: "MEMORY_HARVEST_PROMPT.txt", Placeholders: [][]string{{"{transcript}"}}}

// Result is what became of messages that were read.
type Result struct {
	Requests int            `json:"requests"`          // put to a model
	Messages int            `json:"messages"`          // read to their end, or not to be read
	Added    int            `json:"added"`             // new entries
	Known    int            `json:"known"`             // facts that were there already
	Refused  map[string]int `json:"refused,omitempty"` // reason → facts
	Left     int            `json:"left"`              // messages given up
}

func (h *Result) add(o Result) {
	h.Requests, h.Messages, h.Left = h.Requests+o.Requests, h.Messages+o.Messages, h.Left+o.Left
	h.Added, h.Known = h.Added+o.Added, h.Known+o.Known
	for reason, n := range o.Refused {
		h.refuse(reason, n)
	}
}

func (h *Result) refuse(reason string, n int) {
	if h.Refused == nil {
		h.Refused = map[string]int{}
	}
	h.Refused[reason] += n
}

// String says what was read.
func (h *Result) String() string {
	if h == nil {
		return ""
	}
	refused := 0
	for _, k := range h.Refused {
		refused += k
	}
	return fmt.Sprintf("Read before: %d messages, with %d new facts (known already: %d, refused: %d, messages given up: %d).",
		h.Messages, h.Added, h.Known, refused, h.Left)
}

// Harvester reads what people said and notes what is worth remembering. Progress is kept
// for each message, so that none is skipped and none is read twice, whatever ends
// the program. It is safe for concurrent use, and makes one request at a time.
type Harvester struct {
	cfg  Config
	log  *slog.Logger
	one  chan struct{} // holds a token while a request is made
	wake chan struct{} // holds a token when there is something new in due

	mu    sync.Mutex
	due   map[string]bool  // rooms to be read without waiting for a pause
	rests map[string]pause // of rooms whose last request came to nothing

	// Only Run uses these.
	since time.Time // when the 24 hours began in which it counts
	made  int       // requests it was to make since then
}

// pause is how often in a row a room's requests came to nothing, and until when it rests.
type pause struct {
	failed int
	until  time.Time
}

// Open returns a harvester; nothing happens before Run.
func Open(c Config) *Harvester {
	return &Harvester{cfg: c, log: c.Log, one: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		due: map[string]bool{}, rests: map[string]pause{}}
}

// Wake has a conversation read as soon as nobody waits for an answer, because a part of it
// is about to leave the prompt. It returns at once: what leaves the prompt stays in the
// database, so reading it a little later loses nothing, and nobody has to wait.
func (h *Harvester) Wake(conversation string) {
	h.mu.Lock()
	h.due[conversation] = true
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// every is how often Run looks whether there is something to read.
const every = time.Minute

// Run reads conversations until ctx ends: those with enough new messages, those in
// which nobody has said anything for a while, and those that Wake names.
func (h *Harvester) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.wake:
		case <-time.After(every):
		}
		rooms, err := h.Due(ctx)
		if err != nil && ctx.Err() == nil {
			h.log.Warn("what is to be harvested is not known; it is tried again", "err", err)
		}
		_, _ = h.Read(ctx, rooms, h.byDay, len(rooms)) // the log says what failed
	}
}

// Due lists the rooms that are to be read now, the one with the oldest messages first.
func (h *Harvester) Due(ctx context.Context) ([]string, error) {
	all, err := h.waiting(ctx)
	if err != nil {
		return nil, err
	}
	now := h.cfg.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	var rooms []string
	for _, w := range all {
		if now.Before(h.rests[w.room].until) {
			continue
		}
		if h.due[w.room] || w.messages >= h.cfg.Messages || now.Sub(w.heard) >= h.cfg.Idle {
			rooms = append(rooms, w.room)
		}
	}
	return rooms, nil
}

// errGaveWay means that a request was given up because somebody wrote, errMoved that
// messages changed while they were read, ErrEnough that nothing more may be asked for now.
// None says anything about the messages.
var (
	errGaveWay = errors.New("somebody wrote meanwhile")
	errMoved   = errors.New("a message was changed while it was read")
	ErrEnough  = errors.New("the rest is read later")
)

// asking puts a prompt to a model, or is ErrEnough.
type asking func(ctx context.Context, prompt string) (answer string, err error)

// Ask puts prompt to a model of the role harvest.
func (h *Harvester) Ask(ctx context.Context, prompt string) (string, error) {
	return h.cfg.Ask(ctx, role, prompt)
}

// part reads as many messages as go into one request, and says whether there may be more.
func (h *Harvester) part(ctx context.Context, room string, smaller int, ask asking) (done Result, more bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic while harvesting", "room", room, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	work, release, err := h.cfg.Quiet(ctx)
	if err != nil {
		return done, false, err
	}
	defer release()
	select {
	case h.one <- struct{}{}:
		defer func() { <-h.one }()
	case <-work.Done():
		return done, false, gaveWay(ctx, work, work.Err())
	}
	b, err := h.next(work, room, smaller)
	if err != nil {
		return done, false, gaveWay(ctx, work, err)
	}
	done.Messages = b.skipped
	if len(b.turns) == 0 {
		return done, b.skipped > 0, nil
	}
	answer, err := ask(work, b.prompt)
	if errors.Is(err, ErrEnough) {
		return done, false, err
	}
	done.Requests++
	var found []finding
	if err == nil {
		found, err = readFindings(answer)
	}
	if err != nil {
		if err = gaveWay(ctx, work, err); errors.Is(err, errGaveWay) || ctx.Err() != nil {
			return done, false, err
		}
		left, failed := h.failed(ctx, b, err)
		done.Left += left
		return done, false, errors.Join(err, failed)
	}
	return h.note(ctx, b, found, done)
}

// gaveWay is errGaveWay if err comes of work having ended, though ctx has not.
func gaveWay(ctx, work context.Context, err error) error {
	if work.Err() != nil && ctx.Err() == nil {
		return errGaveWay
	}
	return err
}

// note stores what was found in b, together with that it was read.
func (h *Harvester) note(ctx context.Context, b batch, found []finding, done Result) (Result, bool, error) {
	var entries []memory.Entry
	for _, f := range found {
		e, refused := b.entry(f)
		if refused == "" && e.repeats(entries) {
			refused = refusedKnown
		}
		if refused != "" {
			done.refuse(refused, 1)
			h.log.Debug("fact refused", "room", b.room, "reason", refused)
			continue
		}
		entries = append(entries, e.Entry)
	}
	also := func(ctx context.Context, tx *sql.Tx) error { return b.read(ctx, tx, h.cfg.Now()) }
	learned, err := h.cfg.Store.Learn(ctx, role, entries, also)
	if errors.Is(err, errMoved) {
		return done, true, nil // read as they are now
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
			done.refuse(refusedForgotten, 1)
		case errors.Is(l.Refused, memory.ErrPutAway):
			done.refuse(refusedPutAway, 1)
		default:
			done.refuse(refusedText, 1)
		}
	}
	done.Messages += b.ended()
	return done, true, nil
}

// blameless reports whether the model could not be asked at all, which says nothing of the messages.
func blameless(err error) bool {
	var model *llm.Error
	if !errors.As(err, &model) {
		return false
	}
	switch model.Kind {
	case llm.Unreachable, llm.RateLimited, llm.Denied, llm.NotFound:
		return true
	}
	return false
}

// Reasons for a rest: the first and the longest one after a request that came to nothing.
const (
	shortRest = time.Minute
	longRest  = time.Hour
)

// Read reads conversations to their end, by one request of each in turn, so that where much is
// said keeps nobody waiting. One that fails rests and is left out; so many that fail in a row end
// it, as do ErrEnough and ctx. The error is the first.
func (h *Harvester) Read(ctx context.Context, rooms []string, ask asking, failures int) (sum Result, first error) {
	smaller := map[string]int{} // halvings, because somebody wrote in the middle
	failed := 0
	for len(rooms) > 0 && ctx.Err() == nil {
		room := rooms[0]
		rooms = rooms[1:]
		done, more, err := h.part(ctx, room, smaller[room], ask)
		sum.add(done)
		if done.Messages > 0 {
			h.log.Info("harvested", "room", room, "messages", done.Messages,
				"added", done.Added, "known", done.Known, "refused", done.Refused, "left", done.Left)
		}
		switch {
		case errors.Is(err, errGaveWay):
			smaller[room]++
			rooms = append(rooms, room)
			continue
		case err == nil && more:
			failed = 0
			rooms = append(rooms, room)
			continue
		}
		h.ended(ctx, room, err)
		if err == nil {
			continue
		}
		if first == nil {
			first = fmt.Errorf("harvest %s: %w", room, err)
		}
		if failed++; errors.Is(err, ErrEnough) || failed >= failures {
			return sum, first
		}
	}
	if first == nil && len(rooms) > 0 {
		first = ctx.Err()
	}
	return sum, first
}

// ended notes how reading a conversation ended: it rests if that came to nothing.
func (h *Harvester) ended(ctx context.Context, room string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.due, room)
		delete(h.rests, room)
		return
	}
	if ctx.Err() != nil || errors.Is(err, ErrEnough) {
		return
	}
	r := h.rests[room]
	wait := min(shortRest<<min(r.failed, 10), longRest)
	h.rests[room] = pause{failed: r.failed + 1, until: h.cfg.Now().Add(wait)}
	h.log.Warn("not harvested; nothing is lost, it is tried again", "room", room, "in", wait, "err", err)
}

// Again has the message of this id read anew, within the transaction that gave it other words.
func Again(ctx context.Context, tx *sql.Tx, message int64) error {
	_, err := tx.ExecContext(ctx, `UPDATE harvest SET state = 'new', tries = 0, pos = 0, at = 0, reason = '' WHERE message = ?`, message)
	return store.Wrap(err, "harvest: read a message anew")
}

// Silent lists the conversations with messages to be read in which nobody has said anything
// since then, those that failed last at the end, and how many messages are to be read in all.
func (h *Harvester) Silent(ctx context.Context, since time.Time) (rooms []string, messages int, err error) {
	all, err := h.waiting(ctx)
	for _, w := range all {
		messages += w.messages
		if !w.heard.After(since) {
			rooms = append(rooms, w.room)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(rooms, func(a, b string) int { return h.rests[a].failed - h.rests[b].failed })
	return rooms, messages, err
}

// day is how long a request counts for how many there may be.
const day = 24 * time.Hour

// byDay asks, as long as it did not ask too often within 24 hours.
func (h *Harvester) byDay(ctx context.Context, prompt string) (string, error) {
	if now := h.cfg.Now(); now.Sub(h.since) >= day {
		h.since, h.made = now, 0
	}
	h.made++
	if h.made <= h.cfg.Calls {
		return h.Ask(ctx, prompt)
	}
	if h.made == h.cfg.Calls+1 {
		h.log.Warn("as much was asked to read conversations as there may be in 24 hours (harvest.calls); nothing is lost, "+
			"the rest is read later", "requests", h.cfg.Calls)
	}
	return "", ErrEnough
}
