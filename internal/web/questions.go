package web

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/questions"
)

// openQuestions lists the pairs of memories that contradict each other.
func openQuestions(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Questions.Questions(ctx, v.access())
	if err != nil {
		return view{}, err
	}
	out := view{Title: "Questions", Lead: "Memories that contradict each other, where only you can know."}
	for _, q := range all {
		line := func(mark string, e memory.Entry) []cell {
			return []cell{{Text: mark}, {Text: v.date(e.ObservedAt), Class: "time"}, memoryCell(e)}
		}
		out.Blocks = append(out.Blocks, block{Title: fmt.Sprintf("Question %d", q.ID), Note: q.Why.In(i18n.English),
			Rows: [][]cell{line("a", q.First), line("b", q.Second)},
			Forms: []form{{Action: fmt.Sprintf("/questions/%d", q.ID), Buttons: []button{
				{"keep", "a", "a holds"}, {"keep", "b", "b holds"}, {"keep", "both", "Both hold"}}}}})
	}
	if len(all) == 0 {
		out.Blocks = []block{{Empty: "There are no open questions."}}
	}
	return out, nil
}

// answerQuestion answers a question, as !memory keep does.
func answerQuestion(ctx context.Context, v *visit) (view, error) {
	n, err := strconv.ParseInt(v.PathValue("number"), 10, 64)
	keep := questions.Choice(v.PostFormValue("keep"))
	if err != nil || !slices.Contains([]questions.Choice{"a", "b", questions.KeepBoth}, keep) {
		return view{}, errNotFound
	}
	kept, other, err := v.cfg.Questions.Answer(ctx, v.access(), n, keep)
	switch {
	case errors.Is(err, questions.ErrNoQuestion):
		return view{}, errNotFound
	case errors.Is(err, questions.ErrObsolete), errors.Is(err, memory.ErrNotYours):
		return view{}, problem{err}
	case err != nil:
		return view{}, err
	}
	out := view{Title: "Answered", Back: link("Questions", "/questions")}
	if keep == questions.KeepBoth {
		out.Lead = "Both hold."
		return out, nil
	}
	out.Blocks = []block{{Rows: [][]cell{{{Text: "holds"}, memoryCell(kept)}, {{Text: "no longer"}, memoryCell(other)}}}}
	return out, nil
}
