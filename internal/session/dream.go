package session

import (
	"context"
	"slices"
	"strings"
)

// Dreams is what !dream can have done; dreaming itself is not the session's.
type Dreams struct {
	Wake   func()                                // dream soon
	Status func(context.Context) (string, error) // how the last one went
	Undo   func(context.Context) (string, error) // take the last one back
}

// dream is !dream, for owners: it concerns everybody's memory.
func (s *Session) dream(ctx context.Context, in Inbound, args string) (string, error) {
	switch {
	case s.cfg.Dreams == nil:
		return "I do not dream here; `bot dream` does it by hand.", nil
	case !slices.Contains(s.cfg.Owners, in.Sender):
		return "Only my owner can have me dream: it concerns everybody's memory.", nil
	}
	switch strings.ToLower(args) {
	case "":
		s.cfg.Dreams.Wake()
		return "I put my memory in order as soon as nobody waits for me. `!dream status` tells how it went, `!dream undo` takes it back.", nil
	case "status":
		return s.cfg.Dreams.Status(ctx)
	case "undo":
		return s.cfg.Dreams.Undo(ctx)
	}
	return "`!dream` puts my memory in order, `!dream status` tells how the last time went, `!dream undo` takes it back.", nil
}
