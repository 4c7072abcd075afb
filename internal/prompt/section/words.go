package section

import (
	"context"
	"strings"
)

// Contributors that say in words what a turn or the configuration holds.

func gatherSummary(_ context.Context, q *Question) (*Content, error) {
	return q.saidAs(Content{Source: "summary", Lines: linesOf(q.turn.From.Summary, strings.TrimSpace(q.turn.Summary))})
}

// gatherContext gathers what the room is about. Only its owners say that, so no fence is around it.
func gatherContext(_ context.Context, q *Question) (*Content, error) {
	return q.said("context", strings.TrimSpace(q.turn.Context))
}

// gatherInstructions gathers the owner's instructions from the configuration.
func gatherInstructions(_ context.Context, q *Question) (*Content, error) {
	return q.said("instructions", q.fill(q.sources.Instructions))
}
