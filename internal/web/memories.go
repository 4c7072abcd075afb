package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"reverie/internal/memory"
)

const memoriesShown = 100

// memories lists or searches the memories, with a plot of when they were learned.
func memories(ctx context.Context, v *visit) (view, error) {
	q, from, to := strings.TrimSpace(v.FormValue("q")), v.FormValue("from"), v.FormValue("to")
	list := block{Search: &search{q, "Search the memories"}, Head: []string{"When", "What", "Whose"}, Empty: "There are none."}
	out := view{Title: "Memories"}
	var found []memory.Entry
	if q != "" {
		hits, err := v.cfg.Memory.Search(ctx, memory.Query{Text: q, Scopes: v.readers(), Now: v.now, Past: true, K: memoriesShown})
		if err != nil {
			return view{}, err
		}
		for _, h := range hits {
			found = append(found, h.Entry)
		}
	} else {
		all, err := v.cfg.Memory.Entries(ctx, v.readers()...)
		if len(all) == 0 && err != nil {
			return view{}, err
		}
		out.Lead = spaced(len(all)) + " that you may read. The search also finds lines of imported conversations."
		out.Blocks = []block{{Bars: v.timeline(all)}}
		for _, e := range all {
			if from == "" || from <= v.date(e.ObservedAt) && v.date(e.ObservedAt) < to {
				found = append(found, e)
			}
		}
		slices.SortStableFunc(found, func(a, b memory.Entry) int { return b.ObservedAt.Compare(a.ObservedAt) })
	}
	if n := len(found); n > memoriesShown {
		found, list.Note = found[:memoriesShown], fmt.Sprintf("The newest %d of %s", memoriesShown, spaced(n))
	}
	for _, e := range found {
		list.Rows = append(list.Rows, []cell{{Text: v.date(e.ObservedAt), Class: "time"}, memoryCell(e), {Text: string(e.Scope)}})
	}
	out.Blocks = append(out.Blocks, list)
	return out, nil
}

func (v *visit) date(at time.Time) string { return at.In(v.cfg.Zone).Format(time.DateOnly) }

func memoryCell(e memory.Entry) cell {
	text := e.Text
	if e.State != memory.Active {
		text += " (" + string(e.State) + ")"
	}
	return link(text, "/memories", e.ID)
}

// timeline plots how many memories were learned, by day; if they span long, a column is several days.
func (v *visit) timeline(all []memory.Entry) *bars {
	const columns, most = 100, 20 * 365 * 24 * time.Hour
	first, perDay := v.now, map[string]int{}
	for _, e := range all {
		perDay[v.date(e.ObservedAt)]++
		if e.ObservedAt.Before(first) && v.now.Sub(e.ObservedAt) < most {
			first = e.ObservedAt
		}
	}
	span := int(v.now.Sub(first).Hours()/24) + 2
	step := (span + columns - 1) / columns
	var values []value
	for dates := range slices.Chunk(days(v.now, span), step) {
		n := 0
		for _, date := range dates {
			n += perDay[date]
		}
		last, _ := time.Parse(time.DateOnly, dates[len(dates)-1]) // made by days
		values = append(values, value{dates[0], fmt.Sprintf("%s: %d", dates[0], n),
			"/memories?from=" + dates[0] + "&to=" + last.AddDate(0, 0, 1).Format(time.DateOnly), []float64{float64(n)}})
	}
	title := "Memories by day"
	if step > 1 {
		title = fmt.Sprintf("Memories by %d days", step)
	}
	return plot(title, nil, values, spaced[float64])
}

// memoryEntry shows one entry: where it comes from, and what was done to it.
func memoryEntry(ctx context.Context, v *visit) (view, error) {
	id := v.PathValue("id")
	e, err := v.cfg.Memory.Get(ctx, v.access(), id)
	if err != nil {
		return view{}, err
	}
	ops, err := v.cfg.Memory.History(ctx, v.access(), id)
	if err != nil {
		return view{}, err
	}
	about := facts("Whose", string(e.Scope), "Kind", string(e.Kind), "State", string(e.State), "About", e.Subject,
		"Learned by", string(e.Source), "Integrity", e.Integrity.String(), "Said", v.stamp(e.ObservedAt),
		"Used in answers", fmt.Sprint(e.Hits), "Id", e.ID)
	if e.By != "" {
		about = append(about, fact{"Replaced by", link(e.By, "/memories", e.By)})
	}
	evidence := block{Title: "Evidence", Note: e.Origin()}
	if e.Quote != "" {
		evidence.Texts = []words{{Title: "The words it was learned from", Text: e.Quote}}
	}
	past := block{Title: "History", Head: []string{"When", "Who", "What", "Before", "After", ""}}
	for _, o := range slices.Backward(ops) {
		undo := cell{Form: &form{Action: "/undo", Buttons: []button{{"batch", o.Batch, "Undo"}}}}
		past.Rows = append(past.Rows, []cell{v.at(o.At), {Text: o.Actor}, {Text: o.Op}, describe(o.Before), describe(o.After), undo})
	}
	return view{Title: e.Text, Back: link("Memories", "/memories"), Blocks: []block{{Facts: about}, evidence, past}}, nil
}

// describe shows an entry before or after a change.
func describe(e *memory.Entry) cell {
	if e == nil {
		return cell{}
	}
	return cell{Text: e.Text + " (" + string(e.State) + ")", Class: "text"}
}

// undo reverts a change of memory, as !undo does.
func undo(ctx context.Context, v *visit) (view, error) {
	batch := v.PostFormValue("batch")
	if batch == "" {
		return view{}, problem{memory.ErrNothing}
	}
	done, err := v.cfg.Memory.Undo(ctx, v.access(), batch)
	for _, known := range []error{memory.ErrChanged, memory.ErrGone, memory.ErrNothing, memory.ErrNotYours} {
		if errors.Is(err, known) {
			return view{}, problem{known}
		}
	}
	if err != nil {
		return view{}, err
	}
	list := block{Forms: []form{{Action: "/undo", Buttons: []button{{"batch", done.Batch, "Redo"}}}}}
	for _, line := range done.Lines() {
		list.Rows = append(list.Rows, []cell{{Text: line}})
	}
	return view{Title: "Undone", Back: link("Memories", "/memories"), Blocks: []block{list}}, nil
}
