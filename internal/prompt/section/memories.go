package section

import (
	"context"
	"strings"

	"reverie/internal/memory"
	"reverie/internal/store"
)

// MemoryLine returns a remembered text as a prompt shows it.
func MemoryLine(text string) string { return OneLine(text, 2000) }

// gatherMemories gathers the working set of the scopes of the turn, one line each. When room is short,
// the oldest lines of every scope are dropped first. The other entries still belong to the source: they
// are hidden, not gone.
func gatherMemories(ctx context.Context, q *Question) (*Content, error) {
	m, scopes := q.sources.Memory, q.turn.Scopes
	entries, err := q.memories()
	if err != nil && len(entries) == 0 {
		return nil, err
	}
	c := Content{Source: "memories", ranked: true, Lines: memoryLines(entries)}
	if m.UsesWorkingSet() {
		c.Rest = "the others come up when they are needed, or with search_memory"
	} else {
		var files []string
		for _, s := range scopes {
			files = append(files, "data/"+m.File(s))
		}
		c.Rest = "older ones stand in " + strings.Join(files, " and ")
	}
	ctx = context.WithoutCancel(ctx) // the content outlives it
	c.hides = func(ids []uint64) bool {
		numbers := store.Map(ids, func(id uint64) int64 { return int64(id) })
		all, err := m.List(ctx, memory.Access{Scopes: scopes}, memory.Filter{Numbers: numbers})
		return err != nil || len(all) == len(ids) // what cannot be read is not missing
	}
	return NewContent(c), err // beside an error, these are the entries of the readable files
}

// memoryLines makes a line of each entry, and one of equal texts. The newest of a scope has the lowest rank.
func memoryLines(entries []memory.Entry) (all []Line) {
	after := map[memory.Scope]int{} // entries that follow in the same scope
	for _, e := range entries {
		after[e.Scope]++
	}
	seen := map[string]bool{}
	for _, e := range entries {
		after[e.Scope]--
		line := MemoryLine(e.Text)
		if line == "" || seen[line] {
			continue
		}
		seen[line] = true
		all = append(all, Line{Text: line, ID: uint64(e.N), rank: after[e.Scope], from: e.Integrity})
	}
	return all
}
