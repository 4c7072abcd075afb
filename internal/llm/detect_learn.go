package llm

import (
	"context"
	"fmt"
	"log/slog"

	"reverie/internal/llm/detect"
)

// minLearned is the smallest window that is learned. It keeps a wrong guess from leaving no room
// at all, and small requests from being counted as too large.
const minLearned = 2048 // tokens

// learnFromRefusal learns a window from a request that was too large: the number that the server named, or
// else something below the size of the request.
func (m *model) learnFromRefusal(ctx context.Context, req Request, f *failure) {
	if f.limit == 0 && hasPictures(req) { // how the server counts pictures is unknown
		return
	}
	m.mu.Lock()
	now := m.limit()
	m.mu.Unlock()
	l := detect.Limit{Tokens: f.limit, Label: detect.Enforced, Source: "learned from an error"}
	if l.Tokens == 0 {
		sent := estimate(req)
		l = detect.Limit{Tokens: max(minLearned, min(now.Tokens, sent+m.maxOutput())/4*3), Label: detect.Estimated,
			Source: "learned from an error that named no number"}
		if sent < minLearned/2 || l.Tokens >= now.Tokens {
			return
		}
	}
	m.learnLimit(ctx, l)
}

// learnFromReply learns from a good answer whether the model was loaded since. It also learns
// whether the server read the whole request. Ollama does not refuse a request that is too large: it
// drops the beginning silently.
func (m *model) learnFromReply(ctx context.Context, req Request, reply Reply) {
	m.mu.Lock()
	truncates := m.windows.found.Server == detect.Ollama
	m.mu.Unlock()
	if sent, read := estimate(req), reply.Usage.Prompt; truncates && !hasPictures(req) && read >= minLearned/2 && 2*sent > 3*read {
		n := max(minLearned, (read+1023)/1024*1024)
		m.learnLimit(ctx, detect.Limit{Tokens: n, Label: detect.Estimated,
			Source: fmt.Sprintf("learned: the server read %d tokens of about %d", read, sent)})
	}
	if m.Window == 0 && m.detectionExpired() {
		m.wake()
	}
}

func (m *model) learnLimit(ctx context.Context, l detect.Limit) {
	m.mu.Lock()
	l.At = m.cfg.Now()
	before := m.limit()
	w := &m.windows
	w.learned, w.foundBefore = l, w.found.Limit.Tokens
	after := m.limit()
	m.mu.Unlock()
	if after.Tokens != before.Tokens {
		m.cfg.Log.LogAttrs(ctx, slog.LevelWarn, "context window differs from the assumed one", slog.String("model", m.Name),
			slog.Int("tokens", after.Tokens), slog.Int("before", before.Tokens), slog.String("source", after.Source))
	}
}

// wake tells Run to detect again. It never blocks.
func (m *model) wake() {
	select {
	case m.wakeRun <- struct{}{}:
	default: // already pending, or Run is not running
	}
}

// estimate returns the approximate size of a request in tokens.
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
