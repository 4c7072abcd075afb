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
	"reverie/internal/store"
)

// row is a contributor with its place in a layout.
type row struct {
	section.Contributor     // as the layout has it
	source              int // index of the contributor whose content it shows
}

// rowsOf joins the contributors of a layout with those that gather for them. limits are other
// caps, in characters, by contributor.
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

// look begins a look at the sources of the turn.
func (r *request) look(ctx context.Context) *section.Look {
	var first int64
	recovered := false
	if e := r.room.epoch; e != nil && e.conversation == r.conversation {
		compacted := r.turn.Summary != "" && r.turn.Compacted != 0
		first, recovered = e.first, compacted && (keyPart(e.key, "compaction") != fmt.Sprintf("%x", r.turn.Compacted) || r.recovered(e))
	}
	return r.a.cfg.Look(ctx, &r.turn.Turn, first, recovered)
}

// recovered reports whether the message that is answered now was told in the epoch e that a summary
// took the place of older ones: the request is sent again.
func (r *request) recovered(e *epoch) bool {
	past := r.turn.History
	return len(past) > 0 && slices.ContainsFunc(e.shown, func(s shown) bool {
		return slices.Contains(s.Lines, section.NoteID(past[len(past)-1].ID, "recovered"))
	})
}

// reply is what a contributor gave back.
type reply struct {
	source   int
	content  *section.Content
	problems []store.Problem
	err      error
}

// request is one prompt in the making. Its fields are filled once, in order:
// gather, then draft.
type request struct {
	a            *Assembler
	room         *room
	turn         *Turn
	layout       Layout
	conversation int64 // 0: a preview of one that has not begun
	newest       int64 // message ID
	rows         []row
	rebuilt      bool // the layout renders its prefix for every request

	contents   []*section.Content         // per row; nil: nothing to say
	errs       []error                    // per row; a content beside it is a part of the whole
	most       []int                      // per row: characters it may have
	granted    []int                      // per row: tokens it may have
	instructed *section.InstructionReport // nil: the tier is not known
	problems   []store.Problem
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

// gather asks every contributor at once, and waits no longer for any of them
// than the deadline. Who is late, fails or panics is reported, and the rest goes on.
func (r *request) gather(ctx context.Context) error {
	var sources []int
	for i := range r.rows {
		if !slices.Contains(sources, r.rows[i].source) {
			sources = append(sources, r.rows[i].source)
		}
	}
	replies, err := r.askAll(ctx, sources)
	if err != nil {
		return err // the caller gave up
	}
	r.contents = make([]*section.Content, len(r.rows))
	r.errs = make([]error, len(r.rows))
	for i := range r.rows {
		got := &replies[r.rows[i].source]
		r.contents[i], r.errs[i] = got.content, got.err
	}
	for _, at := range sources { // in the layout's order, whoever was first
		for _, p := range replies[at].problems {
			r.problem(p)
		}
		if err := replies[at].err; err != nil {
			r.problem(store.Problem{Text: fmt.Sprintf("%s: %v", r.a.contributors[at].Name, err)})
		}
	}
	names := make([]string, len(r.rows))
	for i := range r.rows {
		names[i] = r.rows[i].Name
	}
	var long []store.Problem
	r.instructed, long = section.HoldInstructions(&r.turn.Turn, names, r.contents)
	for _, p := range long {
		r.problem(p)
	}
	return nil
}

var errLate = errors.New("took too long")

// askAll returns a reply of each of the sources, by index of the contributor.
func (r *request) askAll(ctx context.Context, sources []int) ([]reply, error) {
	asking, cancel := context.WithTimeout(ctx, r.a.deadline)
	defer cancel()
	look := r.look(asking)
	replies := make([]reply, len(r.a.contributors))
	came := make(chan reply, len(sources)) // has room for late replies, which are not read
	for _, at := range sources {
		replies[at].err = errLate
		// go: ends with its contributor, which has a deadline
		go func() { came <- r.ask(asking, at, look) }()
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

// ask asks one contributor, whose panic is an error like any other.
func (r *request) ask(ctx context.Context, at int, look *section.Look) (got reply) {
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
