package section

import (
	"context"
	"encoding/json"
	"slices"

	"reverie/internal/llm"
	"reverie/internal/trust"
)

// latest is how many of the tool calls and files of a conversation are listed.
const latest = 10

// gatherFootprint gathers which tools were used lately, the newest last.
func gatherFootprint(_ context.Context, q *Question) (*Content, error) {
	used := Content{Source: "footprint"}
	for i := range q.turn.History {
		for _, c := range q.turn.History[i].Calls {
			used.Lines = append(used.Lines, "- "+OneLine(c.Name+" "+c.Arguments, 160))
			used.from, used.In = append(used.from, q.turn.History[i].Label.Integrity), append(used.In, q.turn.History[i].ID)
		}
	}
	at := max(0, len(used.Lines)-latest)
	used.Lines, used.from, used.In = used.Lines[at:], used.from[at:], used.In[at:]
	return q.saidAs(used)
}

// gatherFiles gathers the names of the files that were read in this
// conversation, the newest last.
func gatherFiles(_ context.Context, q *Question) (*Content, error) {
	var names []string
	least, in := trust.Owner, map[string]int64{}
	for i := range q.turn.History {
		for _, call := range q.turn.History[i].Calls {
			name := readPath(call)
			if name == "" {
				continue
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == name })
			names, in[name] = append(names, name), q.turn.History[i].ID
			least = min(least, q.turn.History[i].Label.Integrity)
		}
	}
	c := Content{Source: "files", Integrity: least}
	for _, n := range names[max(0, len(names)-latest):] {
		c.Lines, c.In = append(c.Lines, "- "+OneLine(n, 200)), append(c.In, in[n])
	}
	return q.saidAs(c)
}

// readPath is the path that a call reads, "" if it reads none.
func readPath(c llm.ToolCall) string {
	var args struct {
		Path string `json:"path"`
	}
	if c.Name != "read_file" || json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return ""
	}
	return args.Path
}
