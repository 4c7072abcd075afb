package prompt

import (
	"context"
	"strings"
	"sync"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/task"
)

// longest is the most characters of one remembered line that a prompt carries.
const longest = 2000

// gatherMemories gathers what is remembered in the scopes of the turn, one
// line each. Where room is short, the oldest lines of every scope go first.
func gatherMemories(ctx context.Context, q *Question) (*content, error) {
	store := q.sources.Memory
	entries, err := store.Entries(ctx, q.turn.Scopes...)
	if err != nil && len(entries) == 0 {
		return nil, err
	}
	var files []string
	for _, s := range q.turn.Scopes {
		files = append(files, "data/"+store.File(s))
	}
	// Beside an error, these are the entries of the files that could be read.
	return memoryContent(entries, store.WorkingSet(entries), strings.Join(files, " and ")), err
}

// memoryContent shows set, which is entries or some of them. The others still are
// what the source says: one that is shown no more is not gone.
func memoryContent(entries, set []memory.Entry, files string) *content {
	c := content{source: "memories", rest: "older ones stand in " + files}
	after := map[memory.Scope]int{} // entries that follow in the same scope
	for _, e := range set {
		after[e.Scope]++
	}
	seen := make(map[string]bool, len(entries))
	for _, e := range set {
		after[e.Scope]--
		line := oneLine(e.Text, longest)
		if line == "" || seen[line] {
			continue
		}
		seen[line] = true
		c.lines, c.from = append(c.lines, line), append(c.from, e.Integrity)
		c.ranks = append(c.ranks, after[e.Scope])
	}
	if len(set) < len(entries) {
		c.rest = "the others come up when they are needed, or with search_memory"
		c.more = sync.OnceValue(func() map[uint64]bool {
			more := make(map[uint64]bool, len(entries))
			for _, e := range entries {
				more[lineID(oneLine(e.Text, longest))] = true
			}
			return more
		})
	}
	return newContent(c)
}

// gatherTasks gathers the open tasks that may be read where the answer is, most urgent first.
func gatherTasks(_ context.Context, q *Question) (*content, error) {
	tasks, err := q.tasks()
	if err != nil {
		return nil, err
	}
	c := content{source: "tasks", rest: "the task tool lists them all", none: "There are no open tasks any more."}
	for _, t := range tasks {
		line := oneLine(t.Line(i18n.English), 500)
		if t.Status == task.Paused && !strings.Contains(line, "paused") {
			line += " (paused)"
		}
		c.lines, c.from = append(c.lines, line), append(c.from, t.Label.Integrity)
	}
	return newContent(c), nil
}
