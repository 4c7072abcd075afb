package section

import (
	"context"

	"reverie/internal/profile"
)

// gatherProfile gathers what the person says about themselves, in their direct chats.
func gatherProfile(_ context.Context, q *Question) (*Content, error) {
	values, _, err := q.sources.Profiles.Read(q.turn.Place().Readers().Person())
	if err != nil {
		return nil, err
	}
	c := Content{Source: "profile"}
	for _, field := range profile.Fields {
		if value := values[field]; value != "" {
			c.Lines = append(c.Lines, Line{Text: field + ": " + value, from: q.turn.From.Profile})
		}
	}
	return q.contentOrNil(c)
}
