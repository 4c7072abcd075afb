package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/compaction"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

const maxCompactions = 3 // for one request

// fittingPrompt assembles the next request and returns it with its settings. A conversation that does
// not fit, or soon would not, is compacted first. If that does not help, the tier is lowered.
func (t *turn) fittingPrompt(ctx context.Context) (prompt.Prompt, turnSettings, error) {
	for try := 0; ; try++ {
		past, err := t.cfg.History.Load(ctx, t.talk)
		if err != nil {
			return prompt.Prompt{}, turnSettings{}, err
		}
		t.trackQuestions(past)
		if err := t.applyMarkers(ctx, t.markerCaller(t.in), past...); err != nil {
			return prompt.Prompt{}, turnSettings{}, err
		}
		set, err := t.turnSettings(ctx, t.place(t.in.Head), past, false)
		if err != nil {
			return prompt.Prompt{}, set, err
		}
		turn := t.promptTurn(t.in, past, set)
		p, err := t.cfg.Prompt.Assemble(ctx, turn)
		if reason := compaction.Needed(p.Report, past, err); reason != "" && try < maxCompactions {
			done, failed := t.compactTo(ctx, reason, 100-20*try)
			switch {
			case ctx.Err() != nil:
				return p, set, ctx.Err()
			case failed != nil: // the assembler drops the oldest messages instead
				t.log.Error("conversation not compacted", "reason", reason, "err", failed)
			case done.ID != 0:
				continue
			}
		}
		p, err = t.retryLowerTier(ctx, turn, p, err)
		return p, set, err
	}
}

// compactTo compacts the history to share percent of its space. done has no ID if it did nothing.
func (t *turn) compactTo(ctx context.Context, reason string, share int) (done history.Compaction, err error) {
	past, err := t.cfg.History.Load(ctx, t.talk)
	if err != nil || len(past) == 0 {
		return done, err
	}
	in := t.in
	if in.Sender == "" { // not for a message
		in = item{}
		if in.Head, _, err = (offlineRooms{db: t.cfg.DB}).lastHead(ctx, t.room); err != nil {
			return done, err
		}
	}
	set, err := t.turnSettings(ctx, t.place(in.Head), past, true)
	if err != nil {
		return done, err
	}
	work := compaction.Compactor{Models: t.cfg.Models, Prompt: t.cfg.Prompt, History: t.cfg.History, Windows: t.windows(),
		Timeout: t.cfg.SummaryTimeout, Now: t.cfg.Now, Log: t.log}
	plan, done, err := work.Compact(ctx, compaction.Request{Turn: t.promptTurn(in, past, set), Previous: set.summary, Reason: reason,
		Share: share, Extract: t.summaryTried, BeforeEvict: func() {
			t.summaryTried = true // once a turn: a failing model must not delay the answer again
			t.cfg.BeforeEvict(string(t.talk))
			t.indexMessages(ctx)
		}})
	if err != nil || done.ID == 0 {
		return done, err
	}
	cut := slices.ContainsFunc(plan.Shortened, func(m history.Message) bool { return m.Role == llm.User && m.EventID == in.ID })
	t.reportCompaction(ctx, in.ID, done, cut)
	return done, t.noteCompacted(ctx)
}

// reportCompaction tells the waiting person what was compacted, once: earlier messages, and their own
// message if it was cut.
func (s *Session) reportCompaction(ctx context.Context, waiting string, c history.Compaction, cut bool) {
	var lines []string
	if c.Messages > 0 {
		lines = append(lines, s.text(ctx, "compact.told"))
	}
	if cut {
		lines = append(lines, s.text(ctx, "compact.cut"))
	}
	if len(lines) == 0 || c.Reason == compaction.Asked || waiting == "" {
		return
	}
	err := s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{
		Thread: s.thread, ID: fmt.Sprintf("compaction:%d", c.ID), Text: strings.Join(lines, "\n\n"), Notice: true,
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("compaction notice not sent", "message", waiting, "err", err)
	}
}

// CompactNow is the command !compact.
func (s *Session) CompactNow(ctx context.Context, in chat.Message, _ string) (string, error) {
	t := &turn{Session: s, in: item{Message: in}}
	c, err := t.compactTo(ctx, compaction.Asked, 100)
	if err != nil {
		return "", err
	}
	if c.ID == 0 {
		return s.text(ctx, "compact.nothing"), nil
	}
	text := s.text(ctx, "compact.done", "messages", s.text(ctx, "count.messages", "count", fmt.Sprint(c.Messages)),
		"after", fmt.Sprint(c.After), "before", fmt.Sprint(c.Before))
	if c.Level == history.Extracted {
		text = i18n.Sentences(text, s.text(ctx, "compact.extracted"))
	}
	return i18n.Sentences(text, s.text(ctx, "compact.shown")), nil
}
