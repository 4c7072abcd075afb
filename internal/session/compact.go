package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/history/compact"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

const (
	mostTries  = 3 // compactions for one request
	leastAsked = 4 // messages; fewer are not worth a summary, though somebody asks for it
)

// Why a conversation is compacted.
const (
	becauseFull    = "full"    // it left no room for what is to come
	becauseOver    = "over"    // it did not fit
	becauseRefused = "refused" // it did not fit, says the server
	becauseAsked   = "asked"   // somebody said !compact
)

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
		done := false
		if reason := t.tooFull(p.Report, past, err); reason != "" && try < mostTries {
			var failed error
			done, failed = t.compactTo(ctx, reason, 100-20*try)
			switch {
			case ctx.Err() != nil:
				return p, how, ctx.Err()
			case failed != nil: // the assembler leaves the oldest out, and the answer is there all the same
				t.log.Error("conversation not compacted", "reason", reason, "err", failed)
				done = false
			}
		}
		if !done {
			p, err = t.orShorter(ctx, turn, p, err)
			return p, how, err
		}
	}
}

// boundary is where at the beginning of a turn the history is full, in percent of
// its room. Small windows have none to spare.
func boundary(window int) int {
	switch {
	case window <= 4096:
		return 95
	case window <= 8192:
		return 90
	}
	return 85
}

// tooFull says why the conversation must be compacted before its next request, or "".
func (s *Session) tooFull(r prompt.Report, past []history.Message, err error) string {
	var large *prompt.TooLargeError
	switch {
	case errors.As(err, &large), err == nil && r.History.LeftOut > 0:
		return becauseOver
	case err != nil || r.Window <= 0 || len(past) == 0 || past[len(past)-1].Role != llm.User:
		return "" // in the middle of a turn only what must be is done
	}
	room := r.Room() - (r.Total - r.History.Tokens)
	if r.History.Tokens*100 > room*boundary(r.Window) {
		return becauseFull
	}
	return ""
}

// compactTo compacts the conversation to share percent of its room, and says whether it did: old tool
// results are shortened, then the older part is summarised. It does nothing when little would be won.
func (t *turn) compactTo(ctx context.Context, reason string, share int) (bool, error) {
	past, err := t.cfg.History.Load(ctx, t.talk)
	if err != nil || len(past) == 0 {
		return false, err
	}
	in, err := t.whose(ctx)
	if err != nil {
		return false, err
	}
	how, err := t.manner(ctx, t.place(in.Head), past, true)
	if err != nil {
		return false, err
	}
	before := how.summary
	turn := t.promptTurn(in, past, how)
	l, err := t.limits(ctx, turn, share)
	if err != nil {
		return false, err
	}
	l.Full = reason == becauseAsked
	plan := compact.NewPlan(past, l)
	if reason == becauseOver && plan.Empty() { // it would fit, but the prompt leaves messages out: better a summary of them
		l.Full = true
		plan = compact.NewPlan(past, l)
	}
	if !worthIt(plan, l, reason) {
		return false, nil
	}
	c := history.Compaction{Room: t.talk, Level: history.Trimmed, Reason: reason, Summary: before.Summary, Details: before.Details,
		Integrity: before.Integrity, Before: plan.Before + llm.EstimateTokens(before.Text()), At: t.cfg.Now()}
	if len(plan.Gone) > 0 {
		t.leaving()
		if err := t.summarise(ctx, &c, plan.Gone, turn.Goal, l.Summary); err != nil {
			return false, err
		}
		t.recallable(ctx)
	}
	c.After = history.Tokens(plan.Kept) + llm.EstimateTokens(c.Text())
	if err := t.cfg.History.Compact(ctx, &c, plan.Gone, plan.Shorter); err != nil {
		return false, err
	}
	t.log.Info("conversation compacted", "reason", reason, "level", c.Level, "summarised", c.Messages, "shortened", c.Shortened,
		"before", c.Before, "after", c.After, "room", l.Room)
	cut := slices.ContainsFunc(plan.Shorter, func(m history.Message) bool { return m.Role == llm.User && m.EventID == in.ID })
	t.tell(ctx, in.ID, c, cut)
	return true, t.compacted(ctx)
}

// worthIt reports whether a plan wins enough: who asked for it, or is refused
// otherwise, gets what there is.
func worthIt(p compact.Plan, l compact.Limits, reason string) bool {
	switch reason {
	case becauseAsked:
		return len(p.Gone) >= leastAsked
	case becauseOver, becauseRefused:
		return !p.Empty()
	}
	return !p.Empty() && p.Before-p.After >= l.Room/10
}

// whose is the message that is worked on, or else the person who wrote last.
func (t *turn) whose(ctx context.Context) (item, error) {
	if t.in.Sender != "" {
		return t.in, nil
	}
	last, _, err := lastWritten{db: t.cfg.DB}.in(ctx, t.room)
	return item{Message: chat.Message{Head: last}}, err
}

// limits measures what a fresh prompt leaves for the history and the summary. t
// is a turn of this room.
func (s *Session) limits(ctx context.Context, t prompt.Turn, share int) (compact.Limits, error) {
	t.History, t.Summary, t.Preview = nil, "", true
	p, err := s.cfg.Prompt.Assemble(ctx, t)
	if err != nil {
		return compact.Limits{}, err
	}
	room := (p.Report.Room() - p.Report.Total) * share / 100
	// A summary that is much longer would cost the conversation its place, and a section
	// of the prompt has a cap of 8,000 characters.
	const least, most = 100, 1_600
	return compact.Limits{Room: room, Summary: min(max(room*35/100, least), most)}, nil
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
	if len(lines) == 0 || c.Reason == becauseAsked || waits == "" {
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
	done, err := t.compactTo(ctx, becauseAsked, 100)
	if err != nil {
		return "", err
	}
	if !done {
		return s.text(ctx, "compact.nothing"), nil
	}
	c, err := s.cfg.History.Compacted(ctx, s.talk)
	if err != nil {
		return "", err
	}
	text := s.text(ctx, "compact.done", "messages", s.text(ctx, "count.messages", "count", fmt.Sprint(c.Messages)),
		"after", fmt.Sprint(c.After), "before", fmt.Sprint(c.Before))
	if c.Level == history.Extracted {
		text = i18n.Sentences(text, s.text(ctx, "compact.extracted"))
	}
	return i18n.Sentences(text, s.text(ctx, "compact.shown")), nil
}

// leaving says that messages are about to leave the prompt, so that what is worth it is
// remembered before long. It does not wait for that: they stay in the database.
func (s *Session) leaving() {
	if s.cfg.Leaving != nil {
		s.cfg.Leaving(string(s.talk))
	}
}
