package section

import (
	"context"
	"strings"
)

// Contributors of texts from the turn or the configuration.

func gatherSummary(_ context.Context, q *Question) (*Content, error) {
	return q.contentOrNil(Content{Source: "summary", Lines: linesOf(q.turn.From.Summary, strings.TrimSpace(q.turn.Summary))})
}

// gatherContext gathers the room's topic. Only owners set it, so it is not fenced.
func gatherContext(_ context.Context, q *Question) (*Content, error) {
	return q.textContent("context", strings.TrimSpace(q.turn.Context))
}

// gatherInstructions gathers the owner's instructions from the configuration.
func gatherInstructions(_ context.Context, q *Question) (*Content, error) {
	return q.textContent("instructions", q.fill(q.sources.Instructions))
}
