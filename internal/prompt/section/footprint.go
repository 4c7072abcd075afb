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
	return q.listCalls("footprint", false, func(c llm.ToolCall) string { return OneLine(c.Name+" "+c.Arguments, 160) })
}

// gatherFiles gathers the names of the files read in this conversation, the newest last.
func gatherFiles(_ context.Context, q *Question) (*Content, error) {
	return q.listCalls("files", true, func(c llm.ToolCall) string { return OneLine(readPath(c), 200) })
}

// listCalls lists the latest calls of tools in the words of show; those without words are left out. With once,
// the latest of equal ones counts.
func (q *Question) listCalls(source string, once bool, show func(llm.ToolCall) string) (*Content, error) {
	c := Content{Source: source}
	for _, m := range q.turn.History {
		for _, call := range m.Calls {
			l := Line{Text: "- " + show(call), SaidIn: m.ID, from: m.Label.Integrity}
			if once {
				c.Lines = slices.DeleteFunc(c.Lines, func(o Line) bool { return o.Text == l.Text })
			}
			if l.Text != "- " {
				c.Lines = append(c.Lines, l)
			}
		}
	}
	c.Lines = c.Lines[max(0, len(c.Lines)-maxListed):]
	return q.contentOrNil(c)
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
