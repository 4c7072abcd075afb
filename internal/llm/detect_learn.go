package llm

import (
	"context"
	"fmt"
	"log/slog"

	"reverie/internal/llm/detect"
)

// leastLearned keeps guesses from making a window that holds nothing at all, and
// from being made of requests that are too small to be too large.
const leastLearned = 2048 // tokens

// refused learns from a request that was too large: what the server said, or, if
// it named no number, that it must be less than what was sent.
func (m *model) refused(ctx context.Context, req Request, f *failure) {
	if f.limit == 0 && pictured(req) { // nobody knows how it counts pictures
		return
	}
	m.mu.Lock()
	now := m.limit()
	m.mu.Unlock()
	l := detect.Limit{Tokens: f.limit, Label: detect.Enforced, Source: "learned from an error"}
	if l.Tokens == 0 {
		sent := estimate(req)
		l = detect.Limit{Tokens: max(leastLearned, min(now.Tokens, sent+m.maxOutput())/4*3), Label: detect.Estimated,
			Source: "learned from an error that named no number"}
		if sent < leastLearned/2 || l.Tokens >= now.Tokens {
			return
		}
	}
	m.learnLimit(ctx, l)
}

// replied looks at a good answer: has the model been loaded since, and did the
// server read all of the request? Ollama alone does not refuse what is too
// large but leaves out the beginning and says nothing.
func (m *model) replied(ctx context.Context, req Request, reply Reply) {
	m.mu.Lock()
	quiet := m.windows.found.Server == detect.Ollama
	m.mu.Unlock()
	if sent, read := estimate(req), reply.Usage.Prompt; quiet && !pictured(req) && read >= leastLearned/2 && 2*sent > 3*read {
		n := max(leastLearned, (read+1023)/1024*1024)
		m.learnLimit(ctx, detect.Limit{Tokens: n, Label: detect.Estimated,
			Source: fmt.Sprintf("learned: the server read %d tokens of about %d", read, sent)})
	}
	if m.Window == 0 && m.due() {
		m.wake()
	}
}

func (m *model) learnLimit(ctx context.Context, l detect.Limit) {
	m.mu.Lock()
	l.At = m.cfg.Now()
	before := m.limit()
	w := &m.windows
	w.learned, w.under = l, w.found.Limit.Tokens
	after := m.limit()
	m.mu.Unlock()
	if after.Tokens != before.Tokens {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "context window is another than thought", slog.String("model", m.Name),
			slog.Int("tokens", after.Tokens), slog.Int("before", before.Tokens), slog.String("source", after.Source))
	}
}

// wake tells Run to look again; it never waits.
func (m *model) wake() {
	select {
	case m.look <- struct{}{}:
	default: // it will look anyway, or nobody runs
	}
}

// estimate is about how many tokens a request takes.
func estimate(req Request) int {
	n := 0
	for _, msg := range req.Messages {
		n += EstimateTokens(msg.Content) + 4
		for _, c := range msg.ToolCalls {
			n += EstimateTokens(c.Name) + EstimateTokens(c.Arguments)
		}
	}
	for _, t := range req.Tools {
		n += EstimateTokens(t.Name) + EstimateTokens(t.Description) + EstimateTokens(string(t.Parameters))
	}
	return n
}
