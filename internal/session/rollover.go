package session

import (
	"context"

	"reverie/internal/history"
	"reverie/internal/llm"
)

// becauseKept is why the first summary of a conversation is there: !new keep.
const becauseKept = "kept"

// rollOver is the command !new keep: a new conversation that has nothing but a summary
// of the one before. The goal and the tasks are the room's, and go on as they are. Nothing of
// the sort happens by itself: a summary of summaries is no longer than the first one, and
// what must not be lost stands in it word for word, however many there were.
func (s *Session) rollOver(ctx context.Context, in Inbound) (string, error) {
	s.compaction.in = in
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return "", err
	}
	how, err := s.manner(ctx, s.place(in), past, true)
	if err != nil {
		return "", err
	}
	c := history.Compaction{Room: s.talk, Level: how.summary.Level, Reason: becauseKept, Summary: how.summary.Summary, Details: how.summary.Details, Integrity: how.summary.Integrity,
		Before: history.Tokens(past) + llm.EstimateTokens(how.summary.Text()), At: s.cfg.Now()}
	if len(past) == 0 {
		return s.text(ctx, "new.begun"), nil
	}
	t := s.promptTurn(in, past, how)
	l, err := s.limits(ctx, t, 100)
	if err != nil {
		return "", err
	}
	s.recallable(ctx)
	s.leaving()
	if err := s.summarise(ctx, &c, past, t.Goal, l.Summary); err != nil {
		return "", err
	}
	c.After = llm.EstimateTokens(c.Text())
	if err := s.cfg.Prompt.Compacted(ctx, s.talk, past); err != nil {
		return "", err
	}
	if err := s.cfg.History.StartWith(ctx, &c); err != nil {
		return "", err
	}
	return s.text(ctx, "new.kept", "messages", s.messages(ctx, len(past))), nil
}
