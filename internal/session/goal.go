package session

import (
	"context"
	"strings"

	"reverie/internal/chat"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/store"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

// The model may report on its goal in lines of its text. The history keeps what it
// said, so that it sees its own lines again and goes on writing them well; the
// program takes them in, once, in the order of the messages; people never see them.

// cutOff stands behind an answer that reached the model's output limit.
const cutOff = "\n\n_(cut off: the model reached its output limit)_"

// caller is who asks for a change with in, and where.
func (s *Session) caller(in chat.Inbound) trust.Caller {
	return trust.Caller{Place: s.place(in), Integrity: s.integrity(in)}
}

// reporter is who changes a goal with markers in the answer to in: the model, for a person.
func (s *Session) reporter(in chat.Inbound) trust.Caller {
	by := s.caller(in)
	by.Integrity = min(by.Integrity, trust.User)
	return by
}

// takeIn applies the markers of those messages that the model wrote and that have
// not been taken in. Only what passes by itself, like a full disk, is an error:
// nobody loses an answer over a goal.
func (s *Session) takeIn(ctx context.Context, by trust.Caller, past ...history.Message) error {
	heard := int64(-1)
	for _, m := range past {
		if m.Role != llm.Assistant || m.ID <= s.taken {
			continue
		}
		markers, dropped := markersOf(m.Text)
		if len(markers) == 0 {
			continue
		}
		if !tool.Allows(m.Label.Integrity, tool.Markers) {
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

// catchUp takes in what an interruption left.
func (s *Session) catchUp(ctx context.Context, in chat.Inbound) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err != nil {
		return err
	}
	return s.takeIn(ctx, s.reporter(in), past...)
}

// markersOf returns the markers to be applied. The last line of an answer that was
// cut off is none: nobody knows how it would have gone on.
func markersOf(text string) ([]goal.Marker, int) {
	if body, ok := strings.CutSuffix(text, cutOff); ok {
		text = body[:max(0, strings.LastIndexByte(body, '\n'))]
	}
	markers, _, dropped := goal.ParseMarkers(text)
	return markers, dropped
}

// visible is what people read of an answer: all but its markers, or in a few words
// what these say, if there is nothing else.
func visible(text string) string {
	return visibleIn((*settings.Messages)(nil).For(context.Background(), ""), text)
}

// shown is visible in the language of the room.
func (s *Session) shown(ctx context.Context, text string) string {
	text = visibleIn(s.cfg.Messages.For(ctx, s.room), text)
	if body, isCut := strings.CutSuffix(text, cutOff); isCut {
		text = body + "\n\n" + s.text(ctx, "error.cut_off")
	}
	return text
}

func visibleIn(say i18n.Say, text string) string {
	text = prompt.WithoutFences(text)
	markers, _ := markersOf(text)
	body, isCut := strings.CutSuffix(text, cutOff)
	_, rest, _ := goal.ParseMarkers(body)
	if isCut {
		rest = goal.ShowDraft(body)
	}
	if len(markers) > 0 && strings.TrimSpace(rest) == "" {
		rest = brief(say, markers)
	}
	if isCut {
		rest += cutOff
	}
	return rest
}

// brief says in Markdown what markers say.
func brief(say i18n.Say, markers []goal.Marker) string {
	var lines []string
	for _, m := range markers {
		switch m.Kind {
		case "GOAL":
			line := say("goal.goal", "text", m.Text)
			if m.Ended != "" {
				line += " (" + say("state."+string(m.Ended)) + ")"
			}
			lines = append(lines, line)
		case "CHECKPOINT":
			lines = append(lines, m.Status.Sign()+" "+m.Text)
		case "DECISION":
			lines = append(lines, goal.Decision{Description: say("goal.decided", "text", m.Text), Locked: m.Locked}.LineIn(say))
		case "ARTIFACT":
			lines = append(lines, say("goal.file."+m.Action, "path", m.Text))
		case "NEXT":
			lines = append(lines, say("goal.next", "text", m.Text))
		}
	}
	return "- " + strings.Join(lines, "\n- ")
}
