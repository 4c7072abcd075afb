package section

import (
	"context"
	"strings"
	"sync"

	"reverie/internal/memory"
)

// MemoryLine returns a remembered text as a prompt shows it.
func MemoryLine(text string) string { return OneLine(text, 2000) }

// gatherMemories gathers the entries in the scopes of the turn, one line each. When room is short,
// the oldest lines of every scope are dropped first.
func gatherMemories(ctx context.Context, q *Question) (*Content, error) {
	store := q.sources.Memory
	entries, err := q.entries()
	if err != nil && len(entries) == 0 {
		return nil, err
	}
	var files []string
	for _, s := range q.turn.Scopes {
		files = append(files, "data/"+store.File(s))
	}
	// Beside an error, these are the entries of the readable files.
	return memoryContent(entries, store.WorkingSet(entries), strings.Join(files, " and ")), err
}

// memoryContent shows set, a subset of entries. The others still belong to the source: they are
// hidden, not gone.
func memoryContent(entries, set []memory.Entry, files string) *Content {
	c := Content{Source: "memories", ranked: true, Rest: "older ones stand in " + files}
	after := map[memory.Scope]int{} // entries that follow in the same scope
	for _, e := range set {
		after[e.Scope]++
	}
	seen := map[string]bool{}
	for _, e := range set {
		after[e.Scope]--
		line := MemoryLine(e.Text)
		if line == "" || seen[line] {
			continue
		}
		seen[line] = true
		c.Lines = append(c.Lines, Line{Text: line, rank: after[e.Scope], from: e.Integrity})
	}
	if len(set) < len(entries) {
		c.Rest = "the others come up when they are needed, or with search_memory"
		c.more = sync.OnceValue(func() map[uint64]bool {
			more := make(map[uint64]bool, len(entries))
			for _, e := range entries {
				more[LineID(MemoryLine(e.Text))] = true
			}
			return more
		})
	}
	return NewContent(c)
}
