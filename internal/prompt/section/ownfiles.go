package section

import (
	"context"
	"strings"
)

// gatherFile gathers one of the owner's own files. One that is not there has nothing to say.
func gatherFile(name string) gather {
	return func(_ context.Context, q *Question) (*Content, error) {
		return q.said(name, q.fromFile(name))
	}
}

// fromFile is what a file says that need not be there.
func (q *Question) fromFile(name string) string {
	t := q.files.read(name)
	if t.problem != "" && t.problem != missing {
		q.Problem(name, 0, t.problem)
	}
	return q.fill(t.text)
}

// fill completes a text that people wrote. Only this one placeholder is known
// everywhere; any other brace is text.
func (q *Question) fill(s string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "{agent_name}", q.sources.Name)
}
