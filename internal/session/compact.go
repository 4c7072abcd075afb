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

const mostTries = 3 // compactions for one request

// fits assembles the next request, and says in which manner it is
// answered. A conversation that would not fit, or at a boundary would soon not, is
// compacted first; when that does not help, the tier goes down.
func (t *turn) fits(ctx context.Context) (prompt.Prompt, manner, error) {
	for try := 0; ; try++ {
		past, err := t.cfg.History.Load(ctx, t.talk)
		if err != nil {
			return prompt.Prompt{}, manner{}, err
		}
		t.takeUp(past)
		if err := t.takeIn(ctx, t.reporter(t.in), past...); err != nil {
			return prompt.Prompt{}, manner{}, err
		}
		how, err := t.manner(ctx, t.place(t.in.Head), past, false)
		if err != nil {
			return prompt.Prompt{}, how, err
		}
		turn := t.promptTurn(t.in, past, how)
		p, err := t.cfg.Prompt.Assemble(ctx, turn)
		if reason := compaction.Needed(p.Report, past, err); reason != "" && try < mostTries {
			done, failed := t.compactTo(ctx, reason, 100-20*try)
			switch {
			case ctx.Err() != nil:
				return p, how, ctx.Err()
			case failed != nil: // the assembler leaves the oldest out, and the answer is there all the same
				t.log.Error("conversation not compacted", "reason", reason, "err", failed)
			case done.ID != 0:
				continue
			}
		}
		p, err = t.orShorter(ctx, turn, p, err)
		return p, how, err
	}
}

// compactTo compacts the conversation to share percent of its room, and tells the person who waits. Without an
// ID, it did nothing.
func (t *turn) compactTo(ctx context.Context, reason string, share int) (done history.Compaction, err error) {
	past, err := t.cfg.History.Load(ctx, t.talk)
	if err != nil || len(past) == 0 {
		return done, err
	}
	in := t.in
	if in.Sender == "" { // nobody's message is worked on
		in = item{}
		if in.Head, _, err = (lastWritten{db: t.cfg.DB}).in(ctx, t.room); err != nil {
			return done, err
		}
	}
	how, err := t.manner(ctx, t.place(in.Head), past, true)
	if err != nil {
		return done, err
	}
	work := compaction.Compactor{Models: t.cfg.Models, Prompt: t.cfg.Prompt, History: t.cfg.History, Windows: t.windows(),
		Time: t.cfg.Summary, Now: t.cfg.Now, Log: t.log}
	plan, done, err := work.Compact(ctx, compaction.Request{Turn: t.promptTurn(in, past, how), Before: how.summary, Reason: reason,
		Share: share, Words: t.condensed, Leaving: func() {
			t.condensed = true // once: nobody waits longer for a model that fails
			t.cfg.Leaving(string(t.talk))
			t.recallable(ctx)
		}})
	if err != nil || done.ID == 0 {
		return done, err
	}
	cut := slices.ContainsFunc(plan.Shortened, func(m history.Message) bool { return m.Role == llm.User && m.EventID == in.ID })
	t.tell(ctx, in.ID, done, cut)
	return done, t.compacted(ctx)
}

// tell says once to the person whose message waits what became of the earlier part, and of
// their own message if it was cut.
func (s *Session) tell(ctx context.Context, waits string, c history.Compaction, cut bool) {
	var lines []string
	if c.Messages > 0 {
		lines = append(lines, s.text(ctx, "compact.told"))
	}
	if cut {
		lines = append(lines, s.text(ctx, "compact.cut"))
	}
	if len(lines) == 0 || c.Reason == compaction.Asked || waits == "" {
		return
	}
	err := s.cfg.Transport.Send(ctx, s.room, chat.Outgoing{
		Thread: s.thread, ID: fmt.Sprintf("compaction:%d", c.ID), Text: strings.Join(lines, "\n\n"), Notice: true,
	})
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the compaction was not told", "message", waits, "err", err)
	}
}

// CompactNow is the command !compact.
func (s *Session) CompactNow(ctx context.Context, in chat.Message) (string, error) {
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
