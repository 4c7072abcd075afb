package section

import (
	"context"
	"strconv"
)

// tierFile returns the path of the template for a mode and tier.
func tierFile(mode string, tier int) string {
	return "prompts/" + mode + "/tier" + strconv.Itoa(tier) + ".txt"
}

// gatherTemplate gathers the template of the turn's mode and tier. An empty one falls back to the
// tier below.
func gatherTemplate(_ context.Context, q *Question) (*Content, error) {
	if !isName(q.turn.Mode) {
		return nil, nil
	}
	for n := q.turn.tier(); n > 0; n-- {
		name := tierFile(q.turn.Mode, n)
		if said := q.optionalFile(name); said != "" {
			return q.textContent(name, said)
		}
	}
	return nil, nil
}
