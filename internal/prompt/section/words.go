package section

import (
	"context"
	"strings"

	"reverie/internal/trust"
)

// Contributors that say in words what a turn or the configuration holds.

func gatherSummary(_ context.Context, q *Question) (*Content, error) {
	c := Content{Source: "summary", Lines: []string{strings.TrimSpace(q.turn.Summary)}, Integrity: q.turn.From.Summary}
	return q.saidAs(c)
}

// gatherContext gathers what the room is about. Only its owners say that, so no fence is around it.
func gatherContext(_ context.Context, q *Question) (*Content, error) {
	return q.saidAs(Content{Source: "context", Lines: []string{strings.TrimSpace(q.turn.Context)}, Integrity: trust.Owner})
}

// gatherInstructions gathers the owner's instructions from the configuration.
func gatherInstructions(_ context.Context, q *Question) (*Content, error) {
	return q.said("instructions", q.fill(q.sources.Instructions))
}
