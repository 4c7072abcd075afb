package session

import (
	"context"
	"time"

	"reverie/internal/agent"
	"reverie/internal/chat"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/settings"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// manner is how the next message of a room is answered: what people have chosen
// for it, and what its window allows.
type manner struct {
	mode  settings.Current
	tier  int
	goal  goal.Goal
	task  task.Task // that is worked on, if no goal is; without an ID, none is
	sees  bool      // its model can be shown the pictures that there are
	dense float64   // tokens that its model counts for one by estimate
	about string    // what the room is about, in an owner's words

	summary history.Compaction // what stands for the older part of the conversation; zero = all of it is there
}

// manner reads how what stands last in past is answered at a place. preview changes nothing.
func (s *Session) manner(ctx context.Context, at trust.Place, past []history.Message, preview bool) (m manner, err error) {
	if m.mode, err = s.mode(ctx); err != nil {
		return m, err
	}
	if m.tier, err = s.tier(ctx, past, preview); err != nil {
		return m, err
	}
	if m.dense, err = s.windows().Dense(ctx, s.firstModel(m.mode.Role)); err != nil {
		return m, err
	}
	if m.about, err = s.Manager.settings().Get(ctx, s.room, settings.Context); err != nil {
		return m, err
	}
	m.sees = pictured(past) && s.cfg.Models.AcceptsPictures(ctx, m.mode.Role)
	var since time.Time
	if len(past) > 0 {
		since = past[0].At
	}
	if m.goal, _, err = s.goals.Shown(ctx, at, since); err != nil {
		return m, err
	}
	if m.task, err = s.objective().Current(ctx, s.talk, at, past, preview); err != nil {
		return m, err
	}
	m.summary, err = s.cfg.History.Compacted(ctx, s.talk)
	return m, err
}

// offer is the tools that the model is told about.
func (s *Session) offer(m manner) agent.Offer {
	return s.offers[m.mode.Name][min(max(m.tier, 0), topTier)]
}

func (s *Session) promptTurn(in item, past []history.Message, m manner) prompt.Turn {
	window, out := s.cfg.Models.Window(m.mode.Role)
	tools := s.offer(m)
	t := prompt.Turn{
		Talk: s.talk, Window: window, MaxOutput: out, TokenRatio: m.dense, ToolTokens: tools.Tokens,
		Turn: section.Turn{
			Room: s.room, User: in.Sender, Scopes: s.scopes(in.Head), Shared: !in.Private, Tools: tools.Names,
			Now: s.cfg.Now().In(s.cfg.Location), History: past, Mode: m.mode.Name, Tier: m.tier,
		},
	}
	t.Chosen, t.Model = m.mode.Model, s.firstModel(m.mode.Role)
	if !s.cfg.Models.AcceptsThinking(m.mode.Role) { // no parameter for it: the prompt says it in words
		t.Thinking = string(m.mode.Think)
	}
	t.Summary, t.Compacted, t.From.Summary = m.summary.Text(), m.summary.ID, m.summary.Integrity
	t.Vision, t.Context = m.sees, m.about
	t.SetGoal(m.goal)
	if t.Pin == "" && m.task.ID != "" {
		t.Pin, t.From.Pin = m.task.Line(i18n.English), m.task.Label.Integrity
	}
	if in.event.Kind == chat.ScheduledTask {
		t.IsolateJob()
	}
	return t
}
