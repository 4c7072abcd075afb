package prompt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"slices"

	"reverie/internal/prompt/section"
	"reverie/internal/search"
	"reverie/internal/store"
	"reverie/internal/trust"
)

// row is a contributor with its place in a layout.
type row struct {
	section.Contributor     // as the layout has it
	source              int // index of the contributor whose content it shows
}

// rowsOf joins the contributors of a layout with those that gather for them. limits override caps,
// in characters, by contributor.
func rowsOf(layout, from []section.Contributor, limits map[string]int) []row {
	rows := make([]row, len(layout))
	for i, c := range layout {
		source := cmp.Or(section.SameAs[c.Name], c.Name)
		if n := limits[source]; n > 0 {
			c.Max = n
		}
		rows[i] = row{c, slices.IndexFunc(from, func(f section.Contributor) bool { return f.Name == source })}
	}
	return rows
}

// turnSources returns the sources of the turn.
func (r *request) turnSources(ctx context.Context) *section.TurnSources {
	var first int64
	var noted []uint64
	recovered := false
	before := r.countTurns()
	if e := r.room.epoch; e != nil && e.conversation == r.conversation {
		compacted := r.turn.Summary != "" && r.turn.Compacted != 0
		first = e.first
		noted = e.lines("steering", func(shown) bool { return true })
		now := e.lines("steering", func(s shown) bool { return s.Message == r.newest }) // where this request is a repetition
		recovered = compacted && (keyPart(e.key, "compaction") != fmt.Sprintf("%x", r.turn.Compacted) ||
			slices.Contains(now, section.NoteID(int(r.begun.Lines[0]), "recovered")))
	}
	return r.a.cfg.ForTurn(ctx, &r.turn.Turn, first, before, recovered, noted, r.openings)
}

// countTurns numbers the newest turn, and returns how many came before those in the history.
func (r *request) countTurns() (before int) {
	r.begun = shown{Source: "turn", Lines: []uint64{0}}
	if e := r.room.epoch; e != nil {
		if i := slices.IndexFunc(e.shown, func(s shown) bool { return s.Source == "turn" }); i >= 0 {
			r.begun = e.shown[i]
		}
	}
	for i, m := range r.turn.History {
		if m.Sender == "" || i > 0 && r.turn.History[i-1].Sender != "" {
			continue
		}
		if before--; m.ID > r.begun.Message {
			r.beginsTurn = true
			r.begun = shown{Source: "turn", Message: m.ID, Lines: []uint64{r.begun.Lines[0] + 1}}
		}
	}
	return before + int(r.begun.Lines[0])
}

// openings returns how earlier conversations of the timeline began, as far as the place may read them.
func (r *request) openings(ctx context.Context, most int, least trust.Integrity) ([]search.Turn, error) {
	ends, err := r.a.cfg.History.EarlierEnds(ctx, r.turn.Timeline, most+1)
	if err != nil || len(ends) == 0 {
		return nil, err
	}
	all, err := search.Openings(ctx, r.a.cfg.DB, r.turn.Place().Readers(), string(r.turn.Timeline), ends, least)
	return all[:min(len(all), most)], err
}

// gatherResult is the result of one contributor.
type gatherResult struct {
	source   int
	content  *section.Content
	problems []store.Problem
	err      error
}

// request is one prompt in the making. Its fields are filled once, in order: gather, then draft.
type request struct {
	a            *Assembler
	room         *room
	turn         *Turn
	layout       Layout
	conversation int64 // 0 = a preview of one that has not begun
	newest       int64 // message ID
	begun        shown // number and first message of the newest turn
	beginsTurn   bool  // this is the first request of that turn
	rows         []row
	rebuilt      bool // the layout renders its prefix for every request

	contents     []*section.Content         // per row; nil = nothing to say
	errs         []error                    // per row; content beside an error is partial
	most         []int                      // per row: cap in characters
	granted      []int                      // per row: cap in tokens
	instructions *section.InstructionReport // nil = the tier is unknown
	problems     []store.Problem
}

func newRequest(a *Assembler, t *Turn, rm *room) (*request, error) {
	r := &request{a: a, room: rm, turn: t, layout: t.Layout}
	if r.layout == "" {
		r.layout = a.cfg.Layout
	}
	var ok bool
	if r.rows, ok = a.rows[r.layout]; !ok {
		return nil, fmt.Errorf("prompt: unknown layout %q", r.layout)
	}
	if n := len(t.History); n > 0 {
		r.conversation, r.newest = t.History[n-1].Conversation, t.History[n-1].ID
	}
	r.rebuilt = r.layout != Stable
	r.most, r.granted = make([]int, len(r.rows)), make([]int, len(r.rows))
	for i := range r.rows {
		r.most[i], r.granted[i] = r.rows[i].Max, math.MaxInt
	}
	return r, nil
}

// gather runs all contributors concurrently, each until the deadline. Late, failed or panicking
// ones are reported and omitted.
func (r *request) gather(ctx context.Context) error {
	var sources []int
	for i := range r.rows {
		if !slices.Contains(sources, r.rows[i].source) {
			sources = append(sources, r.rows[i].source)
		}
	}
	replies, err := r.gatherAll(ctx, sources)
	if err != nil {
		return err // the caller cancelled
	}
	r.contents, r.errs = make([]*section.Content, len(r.rows)), make([]error, len(r.rows))
	names := make([]string, len(r.rows))
	for i, row := range r.rows {
		got := &replies[row.source]
		r.contents[i], r.errs[i], names[i] = got.content, got.err, row.Name
	}
	for _, at := range sources { // in the layout's order, not in the order of arrival
		for _, p := range replies[at].problems {
			r.problem(p)
		}
		if err := replies[at].err; err != nil {
			r.problem(store.Problem{Text: fmt.Sprintf("%s: %v", r.a.contributors[at].Name, err)})
		}
	}
	var long []store.Problem
	r.instructions, long = section.FitInstructions(&r.turn.Turn, names, r.contents)
	for _, p := range long {
		r.problem(p)
	}
	return nil
}

var errLate = errors.New("took too long")

// gatherAll returns a reply of each of the sources, by index of the contributor.
func (r *request) gatherAll(ctx context.Context, sources []int) ([]gatherResult, error) {
	asking, cancel := context.WithTimeout(ctx, r.a.deadline)
	defer cancel()
	look := r.turnSources(asking)
	replies := make([]gatherResult, len(r.a.contributors))
	came := make(chan gatherResult, len(sources)) // has room for late replies, which are not read
	for _, at := range sources {
		replies[at].err = errLate
		// go: ends with its contributor, which has a deadline
		go func() { came <- r.gatherOne(asking, at, look) }()
	}
	for range sources {
		select {
		case got := <-came:
			replies[got.source] = got
		case <-asking.Done():
			return replies, ctx.Err()
		}
	}
	return replies, nil
}

// gatherOne runs one contributor and converts its panic to an error.
func (r *request) gatherOne(ctx context.Context, at int, look *section.TurnSources) (got gatherResult) {
	got.source = at
	defer func() {
		if p := recover(); p != nil {
			r.a.cfg.Log.Error("prompt contributor panicked", "contributor", r.a.contributors[at].Name, "panic", p,
				"stack", string(debug.Stack()))
			got.content, got.err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	got.content, got.problems, got.err = look.Ask(ctx, r.a.contributors[at])
	if errors.Is(got.err, context.DeadlineExceeded) {
		got.err = errLate
	}
	return got
}

func (r *request) problem(p store.Problem) {
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}
