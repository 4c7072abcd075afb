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
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
)

// Ask puts one prompt to the models of a role and returns what they say. An error
// costs the verdicts of that prompt, nothing else.
type Ask func(ctx context.Context, role, prompt string) (answer string, err error)

// role is the role of the models that are asked.
const role = "dreaming"

// Config says what a Dreamer works with.
type Config struct {
	DB      *sql.DB // with the tables of the migrations; the caller closes it
	Store   *memory.Store
	Tasks   *task.Store            // nil = tasks are left alone
	Skills  *skill.Library         // nil = skills are left alone
	Trusted func(user string) bool // whose word counts for a task; nil = everybody's in the transcript
	Dir     string                 // the data folder; copies and reports go to dreams in it
	Prompts fs.FS                  // what prompts/DREAM_*.txt is read from, anew each time
	Default fs.FS                  // what stands in for a template that cannot be read
	Ask     Ask                    // nil = without a model
	Model   func() string          // names what Ask asks: another one is asked again; nil = ""
	// Harvester reads what was said before a dream plans; nil = nobody does.
	Harvester *harvest.Harvester
	Now       func() time.Time // nil = time.Now
	Location  *time.Location   // of dates in reports; nil = UTC
	Budget    report.Budget
	Log       *slog.Logger // nil = silent
}

// Dreamer dreams. It is safe for concurrent use, also beside other processes: one of
// them dreams at a time.
type Dreamer struct {
	cfg Config
}

// Phase is a part of a dream.
type Phase string

// The phases.
const (
	Harvest       Phase = "harvest"       // what was said and not read yet
	Dedup         Phase = "dedup"         // what is said twice
	Contradiction Phase = "contradiction" // what holds no longer
	Stale         Phase = "stale"         // what nobody needed for long
	Tasks         Phase = "tasks"         // what was done, asked for twice, or never spoken of again
	Skills        Phase = "skills"        // what nobody used for long, and what there is twice
)

// Phases lists all phases in their order.
var Phases = []Phase{Harvest, Dedup, Contradiction, Stale, Tasks, Skills}

// Options say how to dream.
type Options struct {
	DryRun bool    // plan only: nothing is changed but that verdicts are kept
	Phases []Phase // empty = all
	Now    bool    // what was learned in the last ten minutes too, which else may be part of a talk
}

// Check says what is wrong with o.
func (o Options) Check() error {
	for _, p := range o.Phases {
		if !slices.Contains(Phases, p) {
			all := strings.Trim(fmt.Sprint(Phases), "[]")
			return fmt.Errorf("there is no phase %q of a dream; there are %s", p, strings.ReplaceAll(all, " ", ", "))
		}
	}
	return nil
}

// Errors that callers tell apart.
var (
	ErrBusy    = i18n.New("why.dream_busy")
	ErrNothing = i18n.New("why.dream_none")
)

// Open returns a Dreamer.
func Open(c Config) *Dreamer {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Location == nil {
		c.Location = time.UTC
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Model == nil {
		c.Model = func() string { return "" }
	}
	c.Budget.Calls = cmp.Or(c.Budget.Calls, 60)
	c.Budget.Tokens = cmp.Or(c.Budget.Tokens, 200_000)
	c.Budget.Time = cmp.Or(c.Budget.Time, 30*time.Minute)
	return &Dreamer{cfg: c}
}

// Dream puts memory in order once. The report says what was done even when the
// error says why not all of it was. Another dream at work is ErrBusy.
func (d *Dreamer) Dream(ctx context.Context, o Options) (report.Report, error) {
	if err := o.Check(); err != nil {
		return report.Report{}, err
	}
	now := d.cfg.Now().UTC().Truncate(time.Millisecond)
	r := &run{d: d, o: o, now: now, report: report.Report{At: now, DryRun: o.DryRun, Cost: report.Cost{Most: d.cfg.Budget},
		Run: "dream_" + now.In(d.cfg.Location).Format("20060102") + "_" + strings.ToLower(rand.Text()[:6])}}
	r.models = models{ask: d.cfg.Ask, budget: d.cfg.Budget, cost: &r.report.Cost}
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
	return r.report, err
}

// run is one dream: what it was asked for, and what comes of it.
type run struct {
	d      *Dreamer
	o      Options
	now    time.Time
	report report.Report
	models models
	more   bool // something is left to the next dream
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
	if p.tasks, err = r.planChores(ctx); err != nil {
		return err
	}
	if r.o.DryRun {
		r.report.State = report.Planned
		r.tell(p, p.steps)
		return nil
	}
	if len(p.steps) == 0 && len(p.tasks) == 0 {
		r.report.State = report.Nothing
		return nil
	}
	if err := r.d.snapshot(ctx, r.report.Run); err != nil {
		return fmt.Errorf("%w: %w", errNoCopy, err)
	}
	done, err := r.apply(context.WithoutCancel(ctx), p) // it takes a moment, and is looked at to its end
	if err != nil {
		return err
	}
	if r.report.State = report.Applied; len(done) == 0 && len(p.tasks) == 0 {
		r.report.State = report.Nothing
	}
	r.tell(p, done)
	return nil
}

// Errors that end a dream before anything is changed.
var (
	errNoCopy    = errors.New("no copy could be kept")
	errForgotten = i18n.New("why.dream_forgotten")
)

// reason is what people are told of an error that ended a dream, calmly. exact is whether that is
// all that there is to say of it; details are for the log and the report.
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
