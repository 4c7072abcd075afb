package section

import (
	"context"

	"reverie/internal/trust"
)

// mostEarlier is how many earlier conversations are listed.
const mostEarlier = 5

// gatherEarlier gathers how the room's earlier conversations began, the newest first. The lines are words of
// people in the form in which recall quotes them, because redacting and forgetting remove that form everywhere.
// They are at least as trusted as the message beside them, so that they do not lower what it may do.
func gatherEarlier(ctx context.Context, q *Question) (*Content, error) {
	if q.turn.tier() < 3 {
		return nil, nil
	}
	least := trust.User
	if n := len(q.turn.History); n > 0 {
		least = max(least, q.turn.History[n-1].Label.Integrity)
	}
	c := Content{Source: "earlier", Lead: "How the last ones in this room began, the newest first:"}
	began, err := q.openings(ctx, mostEarlier, least)
	for _, t := range began {
		c.Lines = append(c.Lines, Line{Text: "- " + t.Opening(q.turn.Now.Location()), from: t.Integrity})
	}
	if len(c.Lines) == 0 {
		return nil, err
	}
	return NewContent(c), err
}
