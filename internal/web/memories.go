package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"reverie/internal/dream"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/questions"
	"reverie/internal/store"
)

const memoriesShown = 100

// memories lists or searches the memories, with a plot of when they were learned.
func memories(ctx context.Context, v *visit) (view, error) {
	q, from, to := strings.TrimSpace(v.FormValue("q")), v.FormValue("from"), v.FormValue("to")
	list := block{Search: "Search the memories", Query: q, Head: []string{"When", "What", "Whose"}, Empty: "There are none."}
	out := view{Title: "Memories"}
	var found []memory.Entry
	if q != "" {
		hits, err := v.cfg.Memory.Search(ctx, memory.Query{Text: q, Scopes: v.readers(), Now: v.now, Past: true, K: memoriesShown})
		if err != nil {
			return view{}, err
		}
		found = store.Map(hits, func(h memory.Hit) memory.Entry { return h.Entry })
	} else {
		all, err := v.cfg.Memory.Outline(ctx, v.readers()...)
		if len(all) == 0 && err != nil {
			return view{}, err
		}
		out.Lead = spaced(len(all)) + " that you may read. The search also finds lines of imported conversations."
		out.Blocks = []block{{Bars: v.timeline(all)}}
		if from != "" {
			all = slices.DeleteFunc(all, func(e memory.Entry) bool { date := v.date(e.ObservedAt); return date < from || to < date })
		}
		if n := len(all); n > memoriesShown {
			all, list.Note = all[:memoriesShown], fmt.Sprintf("The newest %d of %s", memoriesShown, spaced(n))
		}
		numbers := store.Map(all, func(e memory.Entry) int64 { return e.N })
		if found, err = v.cfg.Memory.List(ctx, v.access(), memory.Filter{Numbers: numbers}); err != nil {
			return view{}, err
		}
		slices.SortFunc(found, func(a, b memory.Entry) int { return cmp.Or(b.ObservedAt.Compare(a.ObservedAt), cmp.Compare(b.N, a.N)) })
	}
	list.Rows = store.Map(found, func(e memory.Entry) []cell { return v.row(e.ObservedAt, memoryCell(&e), e.Scope) })
	out.Blocks = append(out.Blocks, list)
	return out, nil
}

func (v *visit) date(at time.Time) string { return at.In(v.cfg.Zone).Format(time.DateOnly) }

// memoryCell leads to a memory; nil = there was none.
func memoryCell(e *memory.Entry) cell {
	if e == nil {
		return cell{}
	}
	text := e.Text
	if e.State != memory.Active {
		text += " (" + string(e.State) + ")"
	}
	return link(text, "/memories", e.ID)
}

// timeline plots how many memories were learned in the last 20 years, in at most 100 columns of one or more days.
func (v *visit) timeline(all []memory.Entry) *bars {
	first, perDay := v.now, map[string]float64{}
	for _, e := range all {
		perDay[v.date(e.ObservedAt)]++
		if e.ObservedAt.Before(first) {
			first = e.ObservedAt
		}
	}
	span := min(int(v.now.Sub(first).Hours()/24), 20*365) + 2
	title, step := "Memories by day", (span+99)/100
	if step > 1 {
		title = fmt.Sprintf("Memories by %d days", step)
	}
	var values []value
	for dates := range slices.Chunk(days(v.now, span), step) {
		n := 0.0
		for _, date := range dates {
			n += perDay[date]
		}
		link := "/memories?from=" + dates[0] + "&to=" + dates[len(dates)-1]
		values = append(values, value{Label: dates[0], Link: link, Parts: []float64{n}})
	}
	return plot(title, nil, values, spaced)
}

// memoryEntry shows one entry: where it comes from, and what was done to it.
func memoryEntry(ctx context.Context, v *visit) (view, error) {
	id := v.PathValue("id")
	e, err := v.cfg.Memory.Get(ctx, v.access(), id)
	if err != nil {
		return view{}, err
	}
	ops, err := v.cfg.Memory.History(ctx, v.access(), id)
	evidence := block{Title: "Evidence", Note: e.Origin()}
	if e.Quote != "" {
		evidence.Texts = []words{{Title: "The words it was learned from", Text: e.Quote}}
	}
	past := block{Title: "History", Head: []string{"When", "Who", "What", "Before", "After", ""}}
	for _, o := range slices.Backward(ops) {
		undo := cell{Form: &form{Action: "/undo", Buttons: []button{{"batch", o.Batch, "Undo"}}}}
		past.Rows = append(past.Rows, v.row(o.At, o.Actor, o.Op, memoryCell(o.Before), memoryCell(o.After), undo))
	}
	about := v.facts("Whose", e.Scope, "Kind", e.Kind, "State", e.State, "About", e.Subject, "Learned by", e.Source,
		"Integrity", e.Integrity, "Said", e.ObservedAt, "Used in answers", e.Hits, "Id", e.ID, "Replaced by", link(e.By, "/memories", e.By))
	return view{Title: e.Text, Back: link("Memories", "/memories"), Blocks: []block{{Facts: about}, evidence, past}}, err
}

// undo reverts a change of memory, as !undo does.
func undo(ctx context.Context, v *visit) (view, error) {
	batch := v.PostFormValue("batch")
	if batch == "" {
		return view{}, memory.ErrNothing
	}
	done, err := v.cfg.Memory.Undo(ctx, v.access(), batch)
	if err != nil {
		return view{}, err
	}
	list := block{Forms: []form{{Action: "/undo", Buttons: []button{{"batch", done.Batch, "Redo"}}}}}
	list.Rows = store.Map(done.Lines(), func(line string) []cell { return v.row(line) })
	return view{Title: "Undone", Back: link("Memories", "/memories"), Blocks: []block{list}}, nil
}

// openQuestions lists the pairs of memories that contradict each other.
func openQuestions(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Questions.Questions(ctx, v.access())
	out := view{Title: "Questions", Lead: "Memories that contradict each other, where only you can know."}
	if len(all) == 0 {
		out.Lead = "There are no open questions."
	}
	for _, q := range all {
		out.Blocks = append(out.Blocks, block{Title: fmt.Sprintf("Question %d", q.ID), Note: q.Why.In(i18n.English),
			Rows: [][]cell{v.row("a", q.First.ObservedAt, memoryCell(&q.First)), v.row("b", q.Second.ObservedAt, memoryCell(&q.Second))},
			Forms: []form{{Action: fmt.Sprintf("/questions/%d", q.ID), Buttons: []button{
				{"keep", "a", "a holds"}, {"keep", "b", "b holds"}, {"keep", "both", "Both hold"}}}}})
	}
	return out, err
}

// answerQuestion answers a question, as !memory keep does.
func answerQuestion(ctx context.Context, v *visit) (view, error) {
	n, err := strconv.ParseInt(v.PathValue("number"), 10, 64)
	keep := questions.Choice(v.PostFormValue("keep"))
	if err != nil || !slices.Contains([]questions.Choice{"a", "b", questions.KeepBoth}, keep) {
		return view{}, errNotFound
	}
	kept, other, err := v.cfg.Questions.Answer(ctx, v.access(), n, keep)
	out := view{Title: "Answered", Lead: "Both hold.", Back: link("Questions", "/questions")}
	if keep != questions.KeepBoth {
		out.Lead, out.Blocks = "", []block{{Rows: [][]cell{v.row("holds", memoryCell(&kept)), v.row("no longer", memoryCell(&other))}}}
	}
	return out, err
}

// dreams shows the last nights, with what each changed in memories that the person may read.
func dreams(ctx context.Context, v *visit) (view, error) {
	nights, err := dream.Nights(ctx, v.cfg.DB, 20)
	out := view{Title: "Dreams", Lead: "What was tidied up in memories that you may read, the newest night first."}
	if len(nights) == 0 {
		out.Lead = "There was no dream yet."
	}
	for _, n := range nights {
		b := block{Title: v.stamp(n.At), Note: fmt.Sprintf("%s: %s; %d requests, %s tokens", n.Run, n.State, n.Calls, spaced(n.Tokens))}
		if n.Reason != "" {
			b.Note += "; " + n.Reason.In(i18n.English)
		}
		for _, s := range n.Steps {
			e, err := v.cfg.Memory.Get(ctx, v.access(), s.Entry)
			if errors.Is(err, memory.ErrNotFound) {
				continue
			}
			if err != nil {
				return view{}, err
			}
			w := words{Title: string(s.Kind), Note: s.Why, Text: e.Text, Old: s.Kind != memory.GroupStep}
			if s.Undone {
				w.Title, w.Old = w.Title+" (undone)", false
			}
			if by, err := v.cfg.Memory.Get(ctx, v.access(), s.By); s.By != "" && err == nil {
				w.Added = by.Text
			}
			b.Texts = append(b.Texts, w)
		}
		out.Blocks = append(out.Blocks, b)
	}
	return out, err
}
