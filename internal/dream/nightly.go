package dream

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/task"
)

// Nightly runs dreams on a schedule. After missed times it runs one dream at the next quiet moment.
type Nightly struct {
	cfg  NightlyConfig
	wake chan Options
	day  map[Phase]time.Time // last request of each phase by Tidy
	mu   sync.Mutex          // guards day
}

// NightlyConfig holds the dependencies of a Nightly.
type NightlyConfig struct {
	Dreamer  *Dreamer
	Schedule task.Schedule // normalised; without a type only Wake and Tidy start a dream
	// Quiet waits until no message has come for so long. A new message cancels work. nil = always quiet.
	Quiet   func(ctx context.Context, long time.Duration) (work context.Context, done func(), err error)
	Answers func(ctx context.Context) bool // reports whether a model answers; a scheduled dream waits for it; nil = always
	Log     *slog.Logger                   // nil = silent
}

// OpenNightly returns a Nightly. Run starts it.
func OpenNightly(cfg NightlyConfig) *Nightly {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Nightly{cfg: cfg, wake: make(chan Options, 1), day: map[Phase]time.Time{}}
}

// Wake requests a dream at the next quiet moment. It does not block.
func (n *Nightly) Wake() { n.enqueue(Options{Now: true}) }

// Tidy requests one phase at the next quiet moment, at most once in 24 hours. It does not block.
func (n *Nightly) Tidy(p Phase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.cfg.Dreamer.cfg.Now()
	if last, ok := n.day[p]; ok && now.Before(last.Add(24*time.Hour)) {
		return
	}
	if n.enqueue(Options{Phases: []Phase{p}}) {
		n.day[p] = now
	}
}

// enqueue requests a dream. It returns false if another request is waiting.
func (n *Nightly) enqueue(o Options) bool {
	select {
	case n.wake <- o:
		return true
	default:
		return false
	}
}

// checkInterval is the longest pause of Run. A machine may sleep, or its clock may change.
const checkInterval = time.Minute

// Run runs dreams until ctx ends. A new message interrupts a dream, which is repeated at the next
// quiet moment. tell gets each report; it may be nil.
func (n *Nightly) Run(ctx context.Context, tell func(context.Context, report.Report)) error {
	began, skipped := n.cfg.Dreamer.cfg.Now(), false
	for {
		due, err := n.due(ctx, began)
		now, wait := n.cfg.Dreamer.cfg.Now(), checkInterval
		switch {
		case err != nil:
			n.warn(ctx, "when to dream could not be found out", err)
		case due.IsZero():
		case due.After(now):
			wait = min(checkInterval, due.Sub(now))
		case n.cfg.Answers != nil && !n.cfg.Answers(ctx):
			if !skipped && ctx.Err() == nil {
				n.cfg.Log.Warn("it is time to dream, and no model answers: the dream waits for one")
			}
			skipped = true
		default:
			skipped = false
			n.warn(ctx, dreamFailed, n.dreamWhenQuiet(ctx, tell, quiet, Options{}))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		case o := <-n.wake:
			for again := true; again && ctx.Err() == nil; { // repeat a dream that a message interrupted
				err := n.dreamWhenQuiet(ctx, tell, moments, o)
				n.warn(ctx, dreamFailed, err)
				again = errors.Is(err, errYielded)
			}
		}
	}
}

const dreamFailed = "a dream failed; memory is as it was"

// warn logs err, unless a message or the end of the program interrupted the dream.
func (n *Nightly) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, errYielded) {
		n.cfg.Log.Warn(what, "err", err)
	}
}

// The silence before a scheduled dream, and before a requested one.
const (
	quiet   = 10 * time.Minute
	moments = 5 * time.Second
)

// errYielded ends a dream that a new message interrupted.
var errYielded = i18n.New("why.dream_yielded")

// dreamWhenQuiet waits for a quiet moment and runs a dream.
func (n *Nightly) dreamWhenQuiet(ctx context.Context, tell func(context.Context, report.Report), long time.Duration, o Options) error {
	work, done := ctx, func() {}
	if n.cfg.Quiet != nil {
		var err error
		if work, done, err = n.cfg.Quiet(ctx, long); err != nil {
			return err
		}
	}
	defer done()
	r, err := n.cfg.Dreamer.Dream(work, o)
	if errors.Is(err, ErrBusy) {
		return err // a person started one, which counts as this one
	}
	if work.Err() != nil && ctx.Err() == nil && err != nil {
		return errYielded
	}
	if err == nil {
		n.cfg.Log.Info("dreamt", "run", r.Run, "what", r.Summary(i18n.English), "requests", r.Cost.Calls, "harvested", r.Harvested.String())
	}
	if tell != nil && r.Run != "" && ctx.Err() == nil {
		tell(ctx, r)
	}
	return err
}

// due returns the first scheduled time after the last uninterrupted dream. Without such a dream, it
// counts from the oldest memory. Zero = never.
func (n *Nightly) due(ctx context.Context, began time.Time) (time.Time, error) {
	d := n.cfg.Dreamer
	if n.cfg.Schedule.Type == "" {
		return time.Time{}, nil
	}
	var last sql.NullInt64
	err := d.cfg.DB.QueryRowContext(ctx, `SELECT max(at) FROM dream_run WHERE ended > 0 AND reason NOT IN (?, ?, ?, ?)`,
		cutOff, errYielded, cutOff.String(), errYielded.String()).Scan(&last)
	if err != nil {
		return time.Time{}, fmt.Errorf("dream: %w", err)
	}
	since := time.UnixMilli(last.Int64)
	if !last.Valid {
		every := []memory.State{memory.Active, memory.Merged, memory.Superseded, memory.Archived, memory.Forgotten}
		known, err := d.cfg.Store.List(ctx, everything, memory.Filter{States: every, Members: true, First: 1})
		if err != nil {
			return time.Time{}, fmt.Errorf("dream: %w", err)
		}
		if since = began; len(known) > 0 {
			since = known[0].CreatedAt
		}
	}
	if since.After(d.cfg.Now()) {
		since = d.cfg.Now() // the clock was wrong then, or is now
	}
	due, ok := n.cfg.Schedule.Next(since, since, d.cfg.Location)
	if !ok {
		return time.Time{}, nil
	}
	return due, nil
}

// Status describes the last dream and the time of the next one.
func (n *Nightly) Status(ctx context.Context, say i18n.Say) (string, error) {
	d := n.cfg.Dreamer
	var at, calls int64
	var run, state string
	var reason i18n.Text
	var ops, chores, questions int
	text := say("dream.never")
	err := d.cfg.DB.QueryRowContext(ctx, `SELECT id, at, state, reason, calls,
		(SELECT count(*) FROM dream_op o WHERE o.run = r.id AND undone = 0),
		(SELECT count(*) FROM dream_change c WHERE c.run = r.id AND kind <> 'propose' AND state = 'done')
		FROM dream_run r ORDER BY at DESC, rowid DESC LIMIT 1`).Scan(&run, &at, &state, &reason, &calls, &ops, &chores)
	switch {
	case err != nil && !errors.Is(err, sql.ErrNoRows):
		return "", fmt.Errorf("dream: %w", err)
	case err == nil:
		asked, err := d.questions().All(ctx)
		if err != nil {
			return "", err
		}
		for _, q := range asked {
			questions += flag(q.Run == run)
		}
		text = say("dream."+state, "count", fmt.Sprint(ops), "why", reason.In(say))
		if state == "applied" && chores > 0 {
			text += " " + say("dream.chores", "count", fmt.Sprint(chores))
		}
		text += "\n" + say("dream.when", "at", time.UnixMilli(at).In(d.cfg.Location).Format("2006-01-02 15:04"), "run", run,
			"calls", fmt.Sprint(calls), "questions", fmt.Sprint(questions))
	}
	due, err := n.due(ctx, d.cfg.Now())
	switch {
	case err != nil:
		return "", err
	case due.IsZero():
		text += "\n" + say("dream.no_time")
	case due.After(d.cfg.Now()):
		text += "\n" + say("dream.next", "date", due.Format(time.DateOnly), "time", due.Format("15:04"))
	default:
		text += "\n" + say("dream.soon")
	}
	return text, nil
}
