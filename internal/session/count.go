package session

import (
	"context"
	"fmt"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// usage is what the latest request of a conversation took.
type usage struct {
	reply    llm.Reply
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
	s.usage = usage{reply: reply, expected: r.Counted(), room: max(r.Window-r.MaxOutput, 0)}
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

// usageLine says for !status how full the window is and what the last answer took; "" = nothing is known.
func (s *Session) usageLine(ctx context.Context) string {
	var line string
	if s.usage.room > 0 {
		line = s.text(ctx, "status.window", "percent", fmt.Sprint(100*s.usage.expected/s.usage.room))
	}
	u := s.usage.reply
	if u.Usage == (llm.Usage{}) {
		return line
	}
	began := s.text(ctx, "status.at_once")
	if d := u.First.Round(100 * time.Millisecond); d > 0 {
		began = s.text(ctx, "status.after", "time", i18n.Span(d).In(s.cfg.Messages.For(ctx, s.room)))
	}
	key := "status.answer"
	if u.Usage.Cached > 0 {
		key = "status.answer_cached"
	}
	return i18n.Sentences(line, s.text(ctx, key, "read", fmt.Sprint(u.Usage.Prompt), "cached", fmt.Sprint(u.Usage.Cached), "began", began,
		"wrote", fmt.Sprint(u.Usage.Output)))
}
