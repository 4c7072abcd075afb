package llm

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
)

// saidLimits find the true limit in what servers say when they refuse a request
// that is too large, in lower case.
var saidLimits = []*regexp.Regexp{
	regexp.MustCompile(`"n_ctx"\s*:\s*(\d+)`),                                                    // llama.cpp
	regexp.MustCompile(`available context size \((\d+)`),                                         // llama.cpp
	regexp.MustCompile(`maximum (?:context|model|prompt|input) length (?:is|of) ([\d,]+)`),       // OpenAI, vLLM, OpenRouter, xAI
	regexp.MustCompile(`context (?:length|window|size) (?:is|of)(?: only| at most)? ([\d,]+)`),   // LM Studio and others
	regexp.MustCompile(`> ([\d,]+) maximum`),                                                     // Anthropic
	regexp.MustCompile(`exceeds? the maximum number of (?:input )?tokens allowed[:( ]+([\d,]+)`), // Google
}

// saidLimit reads the limit out of an error; 0 = it names none.
func saidLimit(text string) int {
	text = strings.ToLower(text)
	for _, r := range saidLimits {
		if m := r.FindStringSubmatch(text); m != nil {
			if n := tokens(strings.ReplaceAll(m[1], ",", "")); n > 0 {
				return n
			}
		}
	}
	return 0
}

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
	l := Limit{Tokens: f.limit, Label: Enforced, Source: "learned from an error"}
	if l.Tokens == 0 {
		sent := estimate(req)
		l = Limit{Tokens: max(leastLearned, min(now.Tokens, sent+m.maxOutput())/4*3), Label: Estimated,
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
	quiet := m.windows.found.Server == ollama
	m.mu.Unlock()
	if sent, read := estimate(req), reply.Usage.Prompt; quiet && !pictured(req) && read >= leastLearned/2 && 2*sent > 3*read {
		n := max(leastLearned, (read+1023)/1024*1024)
		m.learnLimit(ctx, Limit{Tokens: n, Label: Estimated,
			Source: fmt.Sprintf("learned: the server read %d tokens of about %d", read, sent)})
	}
	if m.Window == 0 && m.due() {
		m.wake()
	}
}

func (m *model) learnLimit(ctx context.Context, l Limit) {
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
