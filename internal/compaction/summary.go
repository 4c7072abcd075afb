package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/trust"
	"reverie/internal/window"
)

// role is the role of models that write summaries. It defaults to the models of chat.
const role = "compaction"

const (
	summaryShare = 45  // percent of the tokens for summary and details
	wordTokens   = 170 // tokens of 100 words
)

// summarise fills in the evicted messages' summary and its details, in at most limit tokens. It
// falls back to an extract if no model gives a usable summary in time. Its only error is ctx's.
func (c Compactor) summarise(ctx context.Context, done *history.Compaction, r Request, evicted []history.Message, limit int) error {
	share := limit * summaryShare / 100
	done.Integrity = history.MinIntegrity(evicted)
	if r.Previous.Text() != "" {
		done.Integrity = min(done.Integrity, r.Previous.Integrity)
	}
	text, err := "", errors.New("a model was asked for this message already")
	if !r.Extract {
		if text, err = c.askModel(ctx, r, evicted, share); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	done.Level, done.Summary = history.Summary, text
	if _, from := workAtHand(&r.Turn); err == nil {
		done.Integrity = min(done.Integrity, from)
	} else {
		c.Log.Warn("no summary by a model: using an extract", "err", err)
		done.Level, done.Summary = history.Extracted, compact.SummaryWithoutModel(r.Previous.Summary, evicted, share)
	}
	done.Details = compact.Details(evicted, r.Previous, done.Summary, limit-llm.EstimateTokens(done.Summary)-16)
	return nil
}

// workAtHand returns the goal, its steps and the current task, which a summary keeps in view, and the
// integrity of their texts.
func workAtHand(t *prompt.Turn) (lines []string, from trust.Integrity) {
	from = trust.Owner
	if lines = slices.Concat(t.Goal, t.Steps); len(lines) > 0 {
		from = t.From.Goal
	}
	if t.Pin != "" {
		lines, from = append(lines, "Current task: "+t.Pin), min(from, t.From.Pin)
	}
	return lines, from
}

// askModel asks a model for a summary of at most maxTokens, and checks it.
func (c Compactor) askModel(ctx context.Context, r Request, evicted []history.Message, maxTokens int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	size, out := c.Models.Window(role)
	goal, _ := workAtHand(&r.Turn)
	ask := prompt.Compaction{Words: max(30, maxTokens*100/wordTokens), Tier: window.TierFor(size), Goal: goal,
		Previous: r.Previous.Text()}
	frame := 0
	for _, m := range c.Prompt.CompactionRequest(ask) {
		frame += llm.EstimateTokens(m.Content) + 16
	}
	ratio, err := c.Windows.TokenRatio(ctx, agent.FirstModel(c.Models, role))
	if err != nil {
		return "", err
	}
	room := int(float64(size-out)/ratio) - frame - size/20 // a margin for estimation errors
	if room < size/8 {
		return "", fmt.Errorf("the window of %d tokens has no room for what is to be summarised", size)
	}
	ask.Conversation = compact.Transcript(evicted, room)
	temperature := float32(0.3)
	reply, err := c.Models.Complete(ctx, role, llm.Request{Messages: c.Prompt.CompactionRequest(ask),
		Think: llm.ThinkOff, Temperature: &temperature}, nil)
	switch {
	case err != nil:
		return "", err
	case reply.Finish == "length":
		return "", errors.New("the summary was cut off")
	}
	return strings.TrimSpace(reply.Text), compact.Check(reply.Text, ask.Previous+"\n"+ask.Conversation, maxTokens)
}
