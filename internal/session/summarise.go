package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// compactionRole is the role of the models that write summaries; without one of its
// own it is as chat.
const compactionRole = "compaction"

// Of what summary and details have, the summary gets so many percent; wordTokens is
// how many tokens a word takes, in percent.
const (
	summaryShare = 45
	wordTokens   = 170
)

// summarise fills in what stands for the messages gone: a model's summary if there is
// a sane one in time, and the beginnings of what was said if not; beside either, what it
// lost and must not. Together they take at most so many tokens. An error is ctx't.
func (t *turn) summarise(ctx context.Context, c *history.Compaction, gone []history.Message, goal []string, most int) error {
	words := most * summaryShare / 100
	before := *c
	c.Integrity = leastOf(gone)
	if before.Text() != "" {
		c.Integrity = min(c.Integrity, before.Integrity)
	}
	text, err := "", errAsked
	if !t.condensed { // once: nobody waits longer for a model that fails
		t.condensed = true
		text, err = t.askSummary(ctx, before, gone, goal, words)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	c.Level, c.Summary = history.Summary, text
	if err != nil {
		t.log.Warn("no summary by a model: the words themselves stand in", "err", err)
		c.Level, c.Summary = history.Extracted, compact.Extract(before.Summary, gone, words)
	}
	c.Details = compact.Details(gone, before, c.Summary, most-llm.EstimateTokens(c.Summary)-16)
	return nil
}

var (
	errAsked = errors.New("a model was asked for this message already")
	errCut   = errors.New("the summary was cut off")
)

// askSummary asks a model for a summary in at most so many tokens.
func (s *Session) askSummary(
	ctx context.Context, before history.Compaction, gone []history.Message, goal []string, most int,
) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Summary)
	defer cancel()
	window, out := s.cfg.Models.Window(compactionRole)
	words := max(30, most*100/wordTokens)
	ask := prompt.Compaction{Words: words, Goal: goal, Previous: before.Text()}
	frame := 0
	for _, m := range s.cfg.Prompt.CompactionRequest(ask) {
		frame += llm.EstimateTokens(m.Content) + 16
	}
	dense, err := s.dense(ctx, compactionRole)
	if err != nil {
		return "", err
	}
	room := int(float64(window-out)/dense) - frame - window/20 // estimates err
	if room < window/8 {
		return "", fmt.Errorf("the window of %d tokens has no room for what is to be summarised", window)
	}
	ask.Conversation = compact.Transcript(gone, room)
	warmth := float32(0.3)
	reply, err := s.cfg.Models.Complete(ctx, compactionRole, llm.Request{Messages: s.cfg.Prompt.CompactionRequest(ask),
		Think: llm.ThinkOff, Temperature: &warmth}, nil)
	switch {
	case err != nil:
		return "", err
	case reply.Finish == "length":
		return "", errCut
	}
	return strings.TrimSpace(reply.Text), compact.Check(reply.Text, ask.Previous+"\n"+ask.Conversation, most)
}
