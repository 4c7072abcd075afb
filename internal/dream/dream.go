package dream

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"time"

	"reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/search"
	"reverie/internal/store"
	"reverie/internal/task"
)

// role is the role of the models for dreams.
const role = "dreaming"

// Config holds the dependencies of a Dreamer.
type Config struct {
	DB      *store.DB // with the tables of the migrations; the caller closes it
	Store   *memory.Store
	Tasks   *task.Store            // nil = tasks are skipped
	Trusted func(user string) bool // whose messages can show that a task is done; nil = everyone's
	Dir     string                 // the data folder; copies and reports go to its folder dreams
	Prompts fs.FS                  // has prompts/DREAM_*.txt, read for each request
	Default fs.FS                  // has the built-in templates, for those that cannot be read
	// Ask sends one prompt to the models of a role. After an error its pairs have no verdict. nil = no model.
	Ask   func(ctx context.Context, role, prompt string) (answer string, err error)
	Model func() string // names the model of Ask; a new model gets known pairs again; nil = ""
	// Harvester reads new messages before a dream plans; nil = they are not read.
	Harvester *harvest.Harvester
	Now       func() time.Time // nil = time.Now
	Location  *time.Location   // of dates in reports; nil = UTC
	Budget    report.Budget
	Log       *slog.Logger // nil = silent
}

// Dreamer runs dreams. It is safe for concurrent use, also by several processes: only one dreams at
// a time.
type Dreamer struct {
	cfg Config
}

// Phase is a part of a dream.
type Phase string

// The phases.
const (
	Harvest       Phase = "harvest"       // reads unread messages
	Dedup         Phase = "dedup"         // merges and groups duplicates
	Contradiction Phase = "contradiction" // supersedes outdated entries
	Stale         Phase = "stale"         // archives entries unused for long
	Tasks         Phase = "tasks"         // tidies tasks
)

// Phases lists all phases in their order.
var Phases = []Phase{Harvest, Dedup, Contradiction, Stale, Tasks}

// Options selects the parts of a dream.
type Options struct {
	DryRun bool    // plan only; it stores verdicts and changes nothing else
	Phases []Phase // empty = all
	Now    bool    // include entries of the last ten minutes, which may belong to a current conversation
}

// Check returns an error if o has an unknown phase.
func (o Options) Check() error {
	for _, p := range o.Phases {
		if !slices.Contains(Phases, p) {
			all := strings.Trim(fmt.Sprint(Phases), "[]")
			return fmt.Errorf("there is no phase %q of a dream; there are %s", p, strings.ReplaceAll(all, " ", ", "))
		}
	}
	return nil
}

// Errors of Dream and Undo.
var (
	ErrBusy    = i18n.New("why.dream_busy")
	ErrNothing = i18n.New("why.dream_none")
)

// Open returns a Dreamer.
func Open(c Config) *Dreamer {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Model == nil {
		c.Model = func() string { return "" }
	}
	c.Location, c.Log = cmp.Or(c.Location, time.UTC), cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Budget = report.Budget{Calls: cmp.Or(c.Budget.Calls, 60), Tokens: cmp.Or(c.Budget.Tokens, 200_000),
		Time: cmp.Or(c.Budget.Time, 30*time.Minute)}
	return &Dreamer{cfg: c}
}

// Dream runs one dream. The report is complete even with an error. ErrBusy means that another dream
// is running.
func (d *Dreamer) Dream(ctx context.Context, o Options) (report.Report, error) {
	if err := o.Check(); err != nil {
		return report.Report{}, err
	}
	now := d.cfg.Now().UTC().Truncate(time.Millisecond)
	r := &run{d: d, o: o, now: now, report: report.Report{At: now, DryRun: o.DryRun, Cost: report.Cost{Most: d.cfg.Budget},
		Run: "dream_" + now.In(d.cfg.Location).Format("20060102") + "_" + strings.ToLower(rand.Text()[:6])}}
	release, err := d.lease()
	if err != nil {
		return report.Report{}, err
	}
	defer release()
	err = r.dream(ctx)
	if err != nil && r.report.State == "" {
		var exact bool
		r.report.State = report.Failed
		if r.report.Reason, exact = reason(err); !exact {
			r.note("it ended with: %v", err)
		}
	}
	r.report.Ended = d.cfg.Now().UTC().Truncate(time.Millisecond)
	if o.DryRun {
		return r.report, err
	}
	err = errors.Join(err, d.finish(context.WithoutCancel(ctx), r))
	merge := func(tx *sql.Tx) error { return search.Open(d.cfg.DB).Optimize(ctx, tx) }
	if err := store.InTx(ctx, d.cfg.DB, merge); err != nil && ctx.Err() == nil {
		d.cfg.Log.Warn("cannot merge the segments of the search index; searches are a little slower", "err", err)
	}
	return r.report, err
}

// run is the state of one dream.
type run struct {
	d      *Dreamer
	o      Options
	now    time.Time
	report report.Report
	began  time.Time // of the first request to a model
	failed int       // requests in a row without a readable answer
	silent bool      // no model is asked any more
	more   bool      // work is left for the next dream
}

func (r *run) has(p Phase) bool { return len(r.o.Phases) == 0 || slices.Contains(r.o.Phases, p) }

// dream reads, plans, copies, applies and reports.
func (r *run) dream(ctx context.Context) error {
	if !r.o.DryRun {
		if err := r.d.begin(ctx, r.report.Run, r.now); err != nil {
			return err
		}
	}
	if err := r.read(ctx); err != nil {
		return err
	}
	p, err := r.plan(ctx)
	if err != nil {
		return err
	}
	if p.tasks, err = r.planTasks(ctx); err != nil {
		return err
	}
	if r.o.DryRun {
		r.report.State = report.Planned
		r.reportSteps(p, p.steps)
		return nil
	}
	if len(p.steps) == 0 && len(p.tasks) == 0 {
		r.report.State = report.Nothing
		return nil
	}
	if err := r.d.snapshot(ctx, r.report.Run); err != nil {
		return fmt.Errorf("%w: %w", errNoCopy, err)
	}
	done, err := r.apply(context.WithoutCancel(ctx), p) // short, so it is not cancelled
	if err != nil {
		return err
	}
	if r.report.State = report.Applied; len(done) == 0 && len(p.tasks) == 0 {
		r.report.State = report.Nothing
	}
	r.reportSteps(p, done)
	return nil
}

// Errors that end a dream before it changes anything.
var (
	errNoCopy    = errors.New("no copy could be kept")
	errForgotten = i18n.New("why.dream_forgotten")
)

// reason returns the text that people read about an error. exact is false if the log and the report
// need the details.
func reason(err error) (why i18n.Text, exact bool) {
	if errors.Is(err, context.Canceled) {
		return errYielded, true
	}
	if store.IsDiskFull(err) {
		return i18n.New("why.dream_no_room"), false
	}
	if errors.Is(err, errForgotten) {
		return errForgotten, true
	}
	if errors.Is(err, errNoCopy) {
		return i18n.New("why.dream_no_copy"), false
	}
	return i18n.New("why.trouble"), false
}
