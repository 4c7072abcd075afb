package session

import (
	"context"

	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// usage is what the latest request of a conversation took.
type usage struct {
	expected int // tokens of the request
	room     int // what the window has for one; 0 = not known
}

// dense is how many tokens the first model of role counts for one by estimate; 1 = nothing is known.
func (s *Session) dense(ctx context.Context, role string) (float64, error) {
	return s.windows(s.log).Dense(ctx, s.firstModel(role))
}

// count learns from an answer how its model counts. r is what was sent, bare without
// the tools. What cannot be stored is learned again with the next one.
func (s *Session) count(ctx context.Context, r prompt.Report, bare bool, reply llm.Reply) {
	if reply.Model == "" {
		return // there is none
	}
	s.usage = usage{expected: r.Counted(), room: max(r.Window-r.MaxOutput, 0)}
	sent := r.Total
	if bare {
		sent -= r.ToolTokens
	}
	if r.Pictures > 0 { // how a model counts pictures says nothing of words
		return
	}
	err := s.windows(s.log).Learn(ctx, reply.Model, sent, reply.Usage.Prompt)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("how the model counts is not kept", "model", reply.Model, "err", err)
	}
}
