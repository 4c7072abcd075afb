package compaction

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/window"
)

// role is the role of the models that write summaries; without one of its
// own it is as chat.
const role = "compaction"

// Of what summary and details have, the summary gets so many percent; wordTokens is
// how many tokens a word takes, in percent.
const (
	summaryShare = 45
	wordTokens   = 170
)

// summarise fills in what stands for the messages gone: a model's summary if there is
// a sane one in time, and the beginnings of what was said if not; beside either, what it
// lost and must not. Together they take at most so many tokens. An error is ctx's.
func (c Compactor) summarise(ctx context.Context, done *history.Compaction, r Request, gone []history.Message, most int) error {
	words := most * summaryShare / 100
	done.Integrity = history.MinIntegrity(gone)
	if r.Before.Text() != "" {
		done.Integrity = min(done.Integrity, r.Before.Integrity)
	}
	text, err := "", errWords
	if !r.Words {
		if text, err = c.ask(ctx, r, gone, words); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	done.Level, done.Summary = history.Summary, text
	if err != nil {
		c.Log.Warn("no summary by a model: the words themselves stand in", "err", err)
		done.Level, done.Summary = history.Extracted, compact.Extract(r.Before.Summary, gone, words)
	}
	done.Details = compact.Details(gone, r.Before, done.Summary, most-llm.EstimateTokens(done.Summary)-16)
	return nil
}

var (
	errWords = errors.New("a model was asked for this message already")
	errCut   = errors.New("the summary was cut off")
)

// ask asks a model for a summary in at most so many tokens.
func (c Compactor) ask(ctx context.Context, r Request, gone []history.Message, most int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Time)
	defer cancel()
	limit, out := c.Models.Window(role)
	ask := prompt.Compaction{Words: max(30, most*100/wordTokens), Tier: window.TierFor(limit), Goal: r.Turn.Goal, Previous: r.Before.Text()}
	frame := 0
	for _, m := range c.Prompt.CompactionRequest(ask) {
		frame += llm.EstimateTokens(m.Content) + 16
	}
	dense, err := c.Windows.TokenRatio(ctx, agent.FirstModel(c.Models, role))
	if err != nil {
		return "", err
	}
	room := int(float64(limit-out)/dense) - frame - limit/20 // estimates err
	if room < limit/8 {
		return "", fmt.Errorf("the window of %d tokens has no room for what is to be summarised", limit)
	}
	ask.Conversation = compact.Transcript(gone, room)
	warmth := float32(0.3)
	reply, err := c.Models.Complete(ctx, role, llm.Request{Messages: c.Prompt.CompactionRequest(ask),
		Think: llm.ThinkOff, Temperature: &warmth}, nil)
	switch {
	case err != nil:
		return "", err
	case reply.Finish == "length":
		return "", errCut
	}
	return strings.TrimSpace(reply.Text), compact.Check(reply.Text, ask.Previous+"\n"+ask.Conversation, most)
}
