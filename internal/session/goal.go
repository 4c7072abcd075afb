package session

import (
	"context"
	"strings"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// The model may report on its goal in lines of its text. The history keeps them as an example for the
// model; the program applies them once; people never see them.

// caller is who asks for a change with in, and where. They are trusted no further than what a task
// that is due is made from.
func (s *Session) caller(in item) trust.Caller {
	by := trust.Caller{Place: s.place(in.Head), Integrity: s.level(in.Head)}
	if in.event.Kind == chat.ScheduledTask {
		by.Integrity = min(by.Integrity, in.event.Label.Integrity)
	}
	return by
}

// reporter is who changes a goal with markers in the answer to in: the model, for a person.
func (s *Session) reporter(in item) trust.Caller {
	by := s.caller(in)
	by.Integrity = min(by.Integrity, trust.User)
	return by
}

// takeIn applies the markers of the model's messages that were not applied yet. Only what passes by itself,
// like a full disk, is an error: nobody loses an answer over a goal.
func (s *Session) takeIn(ctx context.Context, by trust.Caller, past ...history.Message) error {
	heard := int64(-1)
	for _, m := range past {
		if m.Role != llm.Assistant || m.ID <= s.taken {
			continue
		}
		markers, dropped := agent.Markers(m.Text)
		if len(markers) == 0 {
			continue
		}
		if !tool.AllowsAct(m.Label.Integrity, tool.Markers) {
			s.log.Warn("what the model said of its goal is not taken in: it has read text that is not trusted enough", "message", m.ID)
			continue
		}
		var err error
		if heard < 0 {
			heard, err = s.goals.Heard(ctx, string(s.talk))
		}
		if err == nil && m.ID > heard {
			var refused []string
			refused, err = s.goals.ApplyIn(ctx, by, string(s.talk), m.ID, markers)
			if len(refused) > 0 || dropped > 0 {
				s.log.Warn("not all that the model said of its goal could be taken in", "refused", refused, "dropped", dropped)
			}
		}
		if err != nil {
			if ctx.Err() != nil || store.Passing(err) {
				return err
			}
			s.log.Error("what the model said of its goal is not taken in", "message", m.ID, "err", err)
		}
	}
	if len(past) > 0 {
		s.taken = max(s.taken, past[len(past)-1].ID)
	}
	return nil
}

// catchUp says the answer text to in, which an interruption left in the history, and does what follows from it.
func (s *Session) catchUp(ctx context.Context, in item, text string) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = s.takeIn(ctx, s.reporter(in), past...)
	}
	if err == nil {
		err = s.say(ctx, in, text)
	}
	if err == nil {
		err = s.askGathered(ctx, in.ID)
	}
	return err
}

// shown is visible in the language of the room.
func (s *Session) shown(ctx context.Context, text string) string {
	text = agent.Visible(text)
	if body, isCut := strings.CutSuffix(text, agent.CutOff); isCut {
		text = body + "\n\n" + s.text(ctx, "error.cut_off")
	}
	return text
}
