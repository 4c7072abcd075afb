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

// The model may report on its goal in marker lines of its text. The history keeps them as an example for
// the model; the program applies them once; people never see them.

// caller returns who asks for a change with in, and where. For a due task, its integrity is at most the
// task's.
func (s *Session) caller(in item) trust.Caller {
	by := trust.Caller{Place: s.place(in.Head), Integrity: s.senderIntegrity(in.Head)}
	if in.event.Kind == chat.ScheduledTask {
		by.Integrity = min(by.Integrity, in.event.Label.Integrity)
	}
	return by
}

// markerCaller returns the caller of goal markers in the answer to in: the model, for a person.
func (s *Session) markerCaller(in item) trust.Caller {
	by := s.caller(in)
	by.Integrity = min(by.Integrity, trust.User)
	return by
}

// applyMarkers applies the goal markers in past that were not applied yet. It returns only transient
// errors, such as a full disk: a goal error must not cost the answer.
func (s *Session) applyMarkers(ctx context.Context, by trust.Caller, past ...history.Message) error {
	for _, m := range past {
		if m.Role != llm.Assistant || m.ID <= s.appliedUpTo {
			continue
		}
		markers := agent.GoalMarkers(m.Text)
		if len(markers) == 0 {
			continue
		}
		if !tool.AllowsAct(m.Label.Integrity, tool.Markers) {
			s.log.Warn("goal markers ignored: the model has read untrusted text", "message", m.ID)
			continue
		}
		refused, err := s.goals.ApplyMarkers(ctx, by, string(s.talk), m.ID, markers)
		if len(refused) > 0 {
			s.log.Warn("some goal markers were not applied", "refused", refused)
		}
		if err != nil {
			if ctx.Err() != nil || store.IsTransient(err) {
				return err
			}
			s.log.Error("goal markers not applied", "message", m.ID, "err", err)
		}
	}
	if len(past) > 0 {
		s.appliedUpTo = max(s.appliedUpTo, past[len(past)-1].ID)
	}
	return nil
}

// sendStoredAnswer sends the answer to in that an interruption left unsent. It also applies the markers
// of text and asks its approvals.
func (s *Session) sendStoredAnswer(ctx context.Context, in item, text string) error {
	past, err := s.cfg.History.Load(ctx, s.talk)
	if err == nil {
		err = s.applyMarkers(ctx, s.markerCaller(in), past...)
	}
	if err == nil {
		err = s.sendAnswer(ctx, in, text)
	}
	if err == nil {
		err = s.openApprovals(ctx, in.ID)
	}
	return err
}

// visibleAnswer returns text without markers, and the cut-off note in the room's language.
func (s *Session) visibleAnswer(ctx context.Context, text string) string {
	text = agent.WithoutMarkers(text)
	if body, isCut := strings.CutSuffix(text, agent.CutOff); isCut {
		text = body + "\n\n" + s.text(ctx, "error.cut_off")
	}
	return text
}
