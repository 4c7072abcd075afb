package section

import (
	"context"

	"reverie/internal/trust"
)

// gatherManner gathers how the person likes to be answered. It is noticed in direct chats, and used only
// there.
func gatherManner(ctx context.Context, q *Question) (*Content, error) {
	if q.turn.Shared {
		return nil, nil
	}
	noticed, err := q.sources.Manner.Lines(ctx, q.turn.User, q.turn.Now)
	c := Content{Source: "manner", Lead: "The newest of these lists holds; what the person asks for now goes before it.",
		None: "The person has no such wishes any more."}
	for _, l := range noticed {
		c.Lines = append(c.Lines, linesOf(trust.Owner, "- "+l.Rule)...)
	}
	return NewContent(c), err
}
