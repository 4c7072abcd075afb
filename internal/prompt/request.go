package prompt

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
)

// request is one prompt in the making. Its fields are filled once, in order:
// gather, then draft.
type request struct {
	a            *Assembler
	room         *room
	turn         *Turn
	conversation int64 // 0: a preview of one that has not begun
	newest       int64 // message ID
	rows         []contributor
	rebuilt      bool // the layout renders its prefix for every request

	contents []*content // per row; nil: nothing to say
	errs     []error    // per row; a content beside it is a part of the whole
	most     []int      // per row: characters it may have
	problems []Problem

	memories  *content // gathered once for two rows
	memoryErr error
}

func newRequest(a *Assembler, t *Turn, rm *room) *request {
	r := &request{a: a, room: rm, turn: t, rows: a.rows}
	if n := len(t.History); n > 0 {
		r.conversation, r.newest = t.History[n-1].Conversation, t.History[n-1].ID
	}
	for i := range r.rows {
		r.most = append(r.most, r.rows[i].Max)
		r.rebuilt = r.rebuilt || r.rows[i].Change == Rebuilt
	}
	return r
}

// gather asks every contributor. One after the other: they look at caches, and
// handing them to goroutines would cost more than they do.
func (r *request) gather(ctx context.Context) error {
	r.contents = make([]*content, len(r.rows))
	r.errs = make([]error, len(r.rows))
	for i := range r.rows {
		r.contents[i], r.errs[i] = r.ask(ctx, &r.rows[i])
		if err := ctx.Err(); err != nil {
			return err // the caller gave up
		}
		if r.errs[i] != nil {
			r.problem("", 0, fmt.Sprintf("%s: %v", r.rows[i].ID, r.errs[i]))
		}
	}
	return nil
}

// ask asks one contributor, whose panic is an error like any other.
func (r *request) ask(ctx context.Context, row *contributor) (c *content, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.a.deadline)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			r.a.cfg.Log.Error("prompt contributor panicked", "contributor", row.ID, "panic", p, "stack", string(debug.Stack()))
			c, err = nil, fmt.Errorf("panic: %v", p)
		}
	}()
	return row.gather(ctx, r)
}

func (r *request) problem(file string, line int, text string) {
	p := Problem{File: file, Line: line, Text: text}
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}
