package section

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"reverie/internal/trust"
	"reverie/internal/voice"
)

// styleOf names the field of style that says the same as a key of manner, where the names differ.
var styleOf = map[string]string{"address": "formality"}

// gatherManner gathers how the person likes to be answered, but what the owner has decided. It is noticed
// in direct chats, and used only there.
func gatherManner(ctx context.Context, q *Question) (*Content, error) {
	if q.turn.Shared {
		return nil, nil
	}
	noticed, err := q.sources.Manner.Lines(ctx, q.turn.User, q.turn.Now)
	c := Content{Source: "manner", Lead: "The newest of these lists holds; what the person asks for now goes before it.",
		None: "The person has no such wishes any more."}
	var style []voice.Choice
	if len(noticed) > 0 {
		style = (&Question{TurnSources: q.TurnSources}).style() // its problems are those of the section style
	}
	for _, l := range noticed {
		learned := voice.Choice{Field: cmp.Or(styleOf[l.Key], l.Key), Value: l.Name}
		last := l.Last.In(q.turn.Now.Location()).Format(time.DateOnly)
		learned.Source = fmt.Sprintf("learned (seen %d×, last %s): “%s”", l.Count, last, l.Quote)
		at := slices.IndexFunc(style, func(owners voice.Choice) bool { return owners.Field == learned.Field })
		if at < 0 {
			learned.Rule = l.Rule
			c.Lines = append(c.Lines, linesOf(trust.Owner, "- "+l.Rule)...)
		} else {
			learned.Source += "; not used, as " + style[at].Source + " decides"
		}
		c.Choices = append(c.Choices, learned)
	}
	return NewContent(c), err
}
