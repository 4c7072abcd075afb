package section

import (
	"context"
	"slices"
	"strings"

	"reverie/internal/trust"
)

// gatherRuntime gathers what the assistant runs on.
func gatherRuntime(_ context.Context, q *Question) (*Content, error) {
	parts := []string{"agent " + q.sources.Name}
	if q.turn.Model != "" {
		parts = append(parts, "model "+q.turn.Model)
	}
	if q.sources.Machine != "" {
		parts = append(parts, q.sources.Machine)
	}
	return q.textContent("runtime", strings.Join(parts, ", "))
}

// gatherModels gathers the models that a person can choose.
func gatherModels(_ context.Context, q *Question) (*Content, error) {
	if len(q.sources.Models) < 2 { // nothing to choose
		return nil, nil
	}
	how := "The person can choose one of these models with `!model NAME`"
	if slices.Contains(q.turn.Tools, "set_model") {
		how += ", or ask you, and you call set_model"
	}
	return q.textContent("models", how+": "+strings.Join(q.sources.Models, ", ")+".")
}

// thinkingWords state the thinking level for models without a parameter.
var thinkingWords = map[string]string{
	"off":    "Answer at once, without thinking first.",
	"low":    "Think briefly before you answer.",
	"medium": "Think the question through step by step before you answer; give only the answer.",
	"high":   "Think the question through with care: consider other ways, check your result, and only then answer; give only the answer.",
}

func gatherThinking(_ context.Context, q *Question) (*Content, error) {
	return q.contentOrNil(Content{Source: "thinking", Lines: linesOf(trust.Owner, thinkingWords[q.turn.Thinking]),
		None: "Think as much as you find right again."})
}
