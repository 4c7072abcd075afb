package tool

import (
	"context"
	"strings"
)

type appendMemoryArgs struct {
	Entry  string `json:"entry" rule:"required" doc:"The fact: one sentence that can be understood by itself."`
	Source string `json:"source" doc:"Where it comes from; may be left out."`
}

// appendMemory stores one fact where the asking room's new memories go. The
// source is accepted because models know the argument from elsewhere; memories
// in files do not record one.
func (s *Set) appendMemory(ctx context.Context, scope Scope, a appendMemoryArgs) (string, error) {
	if len(scope.Memory) == 0 {
		return "", refusal("Nothing can be remembered in this conversation. Tell the person so.")
	}
	entry, added, err := s.cfg.Memory.Append(ctx, scope.Memory[0], a.Entry)
	if err != nil {
		return "", err
	}
	// The stored line is repeated, so that the model tells people what was
	// really kept and not what it meant to send.
	if !added {
		return "This was known already, nothing was added:\n" + entry.Text, nil
	}
	where := "this room's memory; everybody in this room can make use of it"
	if scope.Private {
		where = "this person's private memory"
	}
	return strings.Join([]string{"Remembered, in " + where + ":", entry.Text}, "\n"), nil
}
