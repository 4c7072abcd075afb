package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reverie/internal/history"
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
// lost and must not. Together they take at most so many tokens. An error is ctx's.
func (s *Session) summarise(ctx context.Context, c *history.Compaction, gone []history.Message, goal []string, most int) error {
	words := most * summaryShare / 100
	before := *c
	c.Integrity = leastOf(gone)
	if before.Text() != "" {
		c.Integrity = min(c.Integrity, before.Integrity)
	}
	text, err := "", errResting
	if s.mayAsk() {
		text, err = s.askSummary(ctx, before, gone, goal, words)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.learn(err)
	}
	c.Level, c.Summary = history.Summary, text
	if err != nil {
		s.log.Warn("no summary by a model: the words themselves stand in", "err", err)
		c.Level, c.Summary = history.Extracted, history.Extract(before.Summary, gone, words)
	}
	c.Details = history.Details(gone, before, c.Summary, most-llm.EstimateTokens(c.Summary)-16)
	return nil
}

var (
	errResting = errors.New("the last summaries failed, or one was made for this message already")
	errCut     = errors.New("the summary was cut off")
)

// mayAsk reports whether a model may be asked: once for each message of a person, and
// not for a while after too many failures.
func (s *Session) mayAsk() bool {
	k := &s.compaction
	if id := k.in.ID; id != "" {
		if k.asked == id {
			return false
		}
		k.asked = id
	}
	return !s.cfg.Now().Before(k.waiting)
}

// learn counts failures in a row.
func (s *Session) learn(err error) {
	k := &s.compaction
	if err == nil {
		k.failed = 0
		return
	}
	if k.failed++; k.failed >= summaryTries {
		k.failed, k.waiting = 0, s.cfg.Now().Add(summaryRest)
		s.log.Warn("no model is asked for a summary for a while", "until", k.waiting)
	}
}

// askSummary asks a model for a summary in at most so many tokens.
func (s *Session) askSummary(ctx context.Context, before history.Compaction, gone []history.Message, goal []string, most int) (string, error) {
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
	ask.Conversation = history.Transcript(gone, room)
	warmth := float32(0.3)
	reply, err := s.cfg.Models.Complete(ctx, compactionRole, llm.Request{Messages: s.cfg.Prompt.CompactionRequest(ask), Think: llm.ThinkOff, Temperature: &warmth}, nil)
	switch {
	case err != nil:
		return "", err
	case reply.Finish == "length":
		return "", errCut
	}
	return strings.TrimSpace(reply.Text), history.Check(reply.Text, ask.Previous+"\n"+ask.Conversation, most)
}
