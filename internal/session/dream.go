package session

import (
	"context"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/prompt"
	"reverie/internal/tool"
)

// Dreams is what !dream can have done; dreaming itself is not the session's.
type Dreams struct {
	Wake   func()                                          // dream soon
	Status func(context.Context, i18n.Say) (string, error) // how the last one went
	Undo   func(context.Context, i18n.Say) (string, error) // take the last one back
	// Tidy asks for a dream of one part of the prompt (memories, tasks or skills), once a
	// day at most. It returns at once.
	Tidy func(part string)
}

// tidy has what has outgrown its cap put in order, at the next quiet moment.
func (s *Session) tidy(over []prompt.Oversize) {
	if s.cfg.Dreams == nil || s.cfg.Dreams.Tidy == nil {
		return
	}
	for _, o := range over {
		s.cfg.Dreams.Tidy(o.Contributor)
	}
}

// dream is !dream, for owners: it concerns everybody's memory.
func (s *Session) dream(ctx context.Context, in Inbound, args string) (string, error) {
	switch {
	case s.cfg.Dreams == nil:
		return s.text(ctx, "dream.off"), nil
	case !tool.Allows(s.level(in), "!dream"):
		return s.text(ctx, "dream.owner"), nil
	}
	switch strings.ToLower(args) {
	case "":
		s.cfg.Dreams.Wake()
		return s.text(ctx, "dream.woken"), nil
	case "status":
		text, err := s.cfg.Dreams.Status(ctx, s.cfg.Messages.For(ctx, s.room))
		if err != nil {
			return "", err
		}
		open, err := s.openQuestions(ctx, in)
		return strings.TrimSpace(text + "\n\n" + open), err
	case "undo":
		text, err := s.cfg.Dreams.Undo(ctx, s.cfg.Messages.For(ctx, s.room))
		if err != nil {
			return "", err
		}
		return capital(text) + ".", nil
	}
	return s.text(ctx, "dream.usage"), nil
}
