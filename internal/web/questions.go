package web

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"reverie/internal/i18n"
	"reverie/internal/questions"
)

// openQuestions lists the pairs of memories that contradict each other.
func openQuestions(ctx context.Context, v *visit) (view, error) {
	all, err := v.cfg.Questions.Questions(ctx, v.access())
	out := view{Title: "Questions", Lead: "Memories that contradict each other, where only you can know."}
	if len(all) == 0 {
		out.Lead = "There are no open questions."
	}
	for _, q := range all {
		out.Blocks = append(out.Blocks, block{Title: fmt.Sprintf("Question %d", q.ID), Note: q.Why.In(i18n.English),
			Rows: [][]cell{v.row("a", q.First.ObservedAt, memoryCell(q.First)), v.row("b", q.Second.ObservedAt, memoryCell(q.Second))},
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
		out.Lead, out.Blocks = "", []block{{Rows: [][]cell{v.row("holds", memoryCell(kept)), v.row("no longer", memoryCell(other))}}}
	}
	return out, err
}
