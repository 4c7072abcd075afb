package tool

import (
	"cmp"
	"context"
	"strings"

	"reverie/internal/memory"
)

type searchMemoryArgs struct {
	Query string `json:"query" rule:"required" doc:"Words to look for."`
	K     int    `json:"k" rule:"min=1,max=10" doc:"How many at most; 5 if left out."`
}

// nothingFound tells a model what to try after an empty result.
const nothingFound = "Nothing is remembered about that here. Try once with other words, such as a name or a place; " +
	"then tell the person that you do not know, and ask."

// searchMemory searches entries and past messages that may be read in this place.
func (s *Set) searchMemory(ctx context.Context, scope Scope, a searchMemoryArgs) (string, error) {
	if len(scope.Memory) == 0 {
		return "", refusal("Nothing is remembered for this conversation. Tell the person so.")
	}
	query := memory.Query{Text: a.Query, Scopes: scope.Memory, Now: scope.Now, K: cmp.Or(a.K, 5), Turns: true, Past: true}
	hits, err := s.cfg.Memory.Search(ctx, query)
	if err != nil {
		return "", err
	}
	var lines []string
	for _, h := range hits {
		line := h.Line(scope.Now.Location(), nil)
		scope.MarkShown(h.Integrity())
		if h.Turn == nil && h.Entry.State != memory.Active {
			line += " (no longer holds)"
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nothingFound, nil
	}
	return "The best first; it may be old or beside the point:\n" + strings.Join(lines, "\n"), nil
}
