package dream

import (
	"testing"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestNotAskedInOtherWords: what says one of the two again, and settles nothing, is no new question.
func TestNotAskedInOtherWords(t *testing.T) {
	w := newWorld(t, nil, always("unsure"))
	for i, text := range []string{"Anna lives in Berlin.", "Anna lives in Hamburg.", "Anna plays the cello.", "Anna works as a nurse.", "Anna has two cats."} {
		w.know(memory.Entry{Text: text, Integrity: trust.User, ObservedAt: day0.AddDate(0, 0, i)})
	}
	w.exec(`UPDATE memory SET subject = ?`, owner)
	if r := w.dream(Options{}); len(r.Questions) != 1 || r.Questions[0].Number != 1 {
		t.Fatalf("%+v", r)
	}
	w.know(memory.Entry{Text: "Anna lives in Hamburg, by the river.", Subject: owner, Integrity: trust.User, ObservedAt: w.now})
	if r := w.dream(Options{}); len(r.Questions) != 0 || len(r.Superseded) != 0 || len(r.Waiting)+len(r.Merged) == 0 {
		t.Errorf("%+v", r)
	}
}

// TestScopesShareQuestionsFairly: one scope with many doubts takes none of another's.
func TestScopesShareQuestionsFairly(t *testing.T) {
	n := &night{}
	for range maxQuestions {
		n.report.Questions = append(n.report.Questions, Question{Scope: memory.Shared})
	}
	if !n.tooMany(memory.Shared) || n.tooMany(memory.Private(owner)) {
		t.Error("shared: ", n.tooMany(memory.Shared), ", private: ", n.tooMany(memory.Private(owner)))
	}
}
