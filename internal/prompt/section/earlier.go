package section

import (
	"context"

	"reverie/internal/trust"
)

// mostEarlier is how many earlier conversations are listed.
const mostEarlier = 5

// leastTrust is how trusted the words must be that come with a message unasked: as the message is, so that
// they do not lower what it may do, and never less than a person's own.
func (q *Question) leastTrust() trust.Integrity {
	n := len(q.turn.History)
	if n == 0 {
		return trust.User
	}
	return max(trust.User, q.turn.History[n-1].Label.Integrity)
}

// gatherEarlier gathers how the room's earlier conversations began, the newest first. The lines are words of
// people in the form in which recall quotes them, because redacting and forgetting remove that form everywhere.
func gatherEarlier(ctx context.Context, q *Question) (*Content, error) {
	if q.turn.tier() < 3 {
		return nil, nil
	}
	c := Content{Source: "earlier", Lead: "How the last ones in this room began, the newest first:"}
	began, err := q.openings(ctx, mostEarlier, q.leastTrust())
	for _, t := range began {
		c.Lines = append(c.Lines, Line{Text: "- " + t.Opening(q.turn.Now.Location()), from: t.Integrity})
	}
	if len(c.Lines) == 0 {
		return nil, err
	}
	return NewContent(c), err
}
