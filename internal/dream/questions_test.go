package dream

import (
	"strings"
	"testing"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestNotAskedInOtherWords: what says one of the two again, and settles nothing, is no new question.
func TestNotAskedInOtherWords(t *testing.T) {
	w := newWorld(t, nil, func(_ *world, prompt string) (string, error) {
		return answerAll(prompt, func(a, b string) string {
			switch strings.Count(a+b, "Hamburg") + 3*strings.Count(a+b, "Berlin") {
			case 2:
				return "duplicate"
			case 4:
				return "unsure"
			}
			return "neither"
		}), nil
	})
	for i, text := range []string{"Anna lives in Berlin.", "Anna lives in Hamburg.", "Anna plays the cello.", "Anna works as a nurse.", "Anna has two cats."} {
		w.know(memory.Entry{Text: text, Integrity: trust.User, ObservedAt: day0.AddDate(0, 0, i)})
	}
	if r := w.dream(Options{Phases: Phases}); len(r.Questions) != 1 || r.Questions[0].Number != 1 { // so that the next one looks at everything again
		t.Fatalf("%+v", r)
	}
	w.know(memory.Entry{Text: "Anna resides in Hamburg.", Integrity: trust.User, ObservedAt: w.now})
	if r := w.dream(Options{}); len(r.Questions) != 0 || len(r.Superseded) != 0 {
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
