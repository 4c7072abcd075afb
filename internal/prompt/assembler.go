package prompt

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/store"
	"reverie/internal/trace"
)

// Config is what an Assembler works with. Fields are required unless their comment names a default.
type Config struct {
	*section.Sources
	Layout  Layout // of conversations
	DB      *store.DB
	History *history.Store
	Budget  int            // estimated tokens for all sections of a request, but those that must stay; 0 = none
	Limits  map[string]int // caps by contributor, in characters, that override the layout's; nil = none
	Reports int            // how many reports are stored, of the newest requests; see StoredReports
	Log     *slog.Logger   // nil = silent
}

// Assembler makes prompts. It is safe for concurrent use; rooms do not block each other.
type Assembler struct {
	cfg          Config
	contributors []section.Contributor
	rows         map[Layout][]row
	deadline     time.Duration // for each contributor
	nonce        func() string

	mu     sync.Mutex                 // for what is below
	rooms  map[history.Timeline]*room // by conversation
	logged []store.Problem            // the problems logged last
}

// room is the assembler's state of a room between requests. It is a cache: all of it may be lost.
type room struct {
	mu       sync.Mutex
	loaded   bool
	epoch    *epoch // as stored
	nonce    string // for the conversation nonceFor, until an epoch with it is stored
	nonceFor int64
	last     []llm.Message // the last request
}

// New returns an Assembler.
func New(cfg Config) (*Assembler, error) {
	if !slices.Contains(Layouts(), cfg.Layout) {
		return nil, fmt.Errorf("prompt: unknown layout %q; there are %v", cfg.Layout, Layouts())
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Assembler{
		cfg: cfg, contributors: slices.Clone(section.Catalog), rows: map[Layout][]row{}, deadline: time.Second,
		nonce: func() string { return strings.ToLower(rand.Text()[:4]) }, rooms: map[history.Timeline]*room{},
	}
	for name, layout := range layouts {
		a.rows[name] = rowsOf(layout, a.contributors, cfg.Limits)
	}
	return a, nil
}

// Header returns the first line of a person's message for the model: the time, in the zone of now, and the author
// in shared rooms.
func (a *Assembler) Header(now time.Time, sender string, shared bool) string {
	at := now.Format("Mon 2006-01-02 15:04 MST")
	if !shared {
		return "[" + at + "]"
	}
	return "[" + at + ", " + strings.NewReplacer("[", "(", "]", ")").Replace(section.OneLine(sender, 255)) + "]"
}

// Assemble makes the prompt for a turn. It only reads. It fails with a *TooLargeError if the
// required parts do not fit, and with another error if the database cannot be read. A contributor's
// failure is reported in the prompt's Report.
func (a *Assembler) Assemble(ctx context.Context, t Turn) (_ Prompt, err error) {
	ctx, span := trace.Start(ctx, trace.Prompt, "")
	defer func() { span.End(trace.Failure(err)) }()
	n := len(t.History)
	if !t.Preview && (n == 0 || t.History[n-1].Role == llm.Assistant) {
		return Prompt{}, errors.New("prompt: there is no message to answer")
	}
	t.TokenRatio = cmp.Or(t.TokenRatio, 1)
	t.Timeline = cmp.Or(t.Timeline, history.Timeline(t.Room))
	if t.Layout == job {
		t.Timeline = jobTalk(t.Timeline)
	}
	rm := a.room(t.Timeline)
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if !rm.loaded {
		e, err := loadEpoch(ctx, a.cfg.DB, t.Timeline)
		if err != nil {
			return Prompt{}, err
		}
		rm.epoch, rm.loaded = e, true
	}
	r, err := newRequest(a, &t, rm)
	if err != nil {
		return Prompt{}, err
	}
	if err := r.gather(ctx); err != nil {
		return Prompt{}, err
	}
	d, err := r.draft()
	if err != nil {
		return Prompt{}, err
	}
	a.logProblems(r.problems)
	p := r.toPrompt(d)
	return p, checkRequest(p.Messages(), d.epoch.nonce)
}

// Commit records that p is about to be sent. It stores the epoch and the newest message's tail in
// one transaction, together with what also stores. Call it just before sending.
func (a *Assembler) Commit(ctx context.Context, p Prompt, also ...func(context.Context, *sql.Tx) error) error {
	c := p.commit
	if c == nil {
		return errors.New("prompt: a preview cannot be sent")
	}
	c.room.mu.Lock()
	defer c.room.mu.Unlock()
	err := store.InTx(ctx, a.cfg.DB, func(tx *sql.Tx) error {
		for _, f := range slices.Concat(c.save, also) {
			if err := f(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("prompt: commit: %w", err)
	}
	if c.newEpoch {
		a.cfg.Log.Info("prompt: a new epoch", "room", c.roomID, "reason", c.epoch.reason)
	}
	c.room.epoch, c.room.last = c.epoch, c.sent
	return nil
}

func (a *Assembler) room(id history.Timeline) *room {
	a.mu.Lock()
	defer a.mu.Unlock()
	rm := a.rooms[id]
	if rm == nil {
		rm = &room{}
		a.rooms[id] = rm
	}
	return rm
}

// Leave drops the cached state of a room. It is reloaded when needed.
func (a *Assembler) Leave(room history.Timeline) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.rooms, room)
	delete(a.rooms, jobTalk(room))
}

// logProblems logs problems if they differ from the last logged ones.
func (a *Assembler) logProblems(problems []store.Problem) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Equal(problems, a.logged) {
		return
	}
	a.logged = problems
	for _, p := range problems {
		a.cfg.Log.Warn("prompt problem", "file", p.File, "line", p.Line, "problem", p.Text)
	}
}
