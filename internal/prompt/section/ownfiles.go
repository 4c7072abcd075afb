package section

import (
	"context"
	"strings"
)

// gatherFile gathers one of the owner's files. A missing one is empty.
func gatherFile(name string) gather {
	return func(_ context.Context, q *Question) (*Content, error) {
		return q.textContent(name, q.optionalFile(name))
	}
}

// optionalFile returns the text of an optional file.
func (q *Question) optionalFile(name string) string {
	t := q.files.read(name)
	if t.problem != "" && t.problem != missing {
		q.Problem(name, 0, t.problem)
	}
	return q.fill(t.text)
}

// fill replaces the only placeholder that is allowed everywhere. Other braces are text.
func (q *Question) fill(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "{agent_name}", q.sources.Name)
}
