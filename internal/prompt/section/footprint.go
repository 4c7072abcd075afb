package section

import (
	"context"
	"encoding/json"
	"slices"

	"reverie/internal/llm"
)

// maxListed is how many tool calls and files of a conversation are listed.
const maxListed = 10

// gatherFootprint gathers the tools used recently, the newest last.
func gatherFootprint(_ context.Context, q *Question) (*Content, error) {
	used := Content{Source: "footprint"}
	for i := range q.turn.History {
		for _, c := range q.turn.History[i].Calls {
			used.Lines = append(used.Lines, Line{Text: "- " + OneLine(c.Name+" "+c.Arguments, 160),
				SaidIn: q.turn.History[i].ID, from: q.turn.History[i].Label.Integrity})
		}
	}
	used.Lines = used.Lines[max(0, len(used.Lines)-maxListed):]
	return q.contentOrNil(used)
}

// gatherFiles gathers the names of the files read in this conversation, the newest last.
func gatherFiles(_ context.Context, q *Question) (*Content, error) {
	read := Content{Source: "files"}
	for i := range q.turn.History {
		for _, call := range q.turn.History[i].Calls {
			name := readPath(call)
			if name == "" {
				continue
			}
			l := Line{Text: "- " + OneLine(name, 200), SaidIn: q.turn.History[i].ID, from: q.turn.History[i].Label.Integrity}
			read.Lines = append(slices.DeleteFunc(read.Lines, func(o Line) bool { return o.Text == l.Text }), l)
		}
	}
	read.Lines = read.Lines[max(0, len(read.Lines)-maxListed):]
	return q.contentOrNil(read)
}

// readPath returns the path that a call reads, or "".
func readPath(c llm.ToolCall) string {
	var args struct {
		Path string `json:"path"`
	}
	if c.Name != "read_file" || json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return ""
	}
	return args.Path
}
