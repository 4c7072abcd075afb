package session

import (
	"context"
	"slices"
	"time"

	"reverie/internal/agent"
	"reverie/internal/attachment"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/goal"
	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/objective"
	"reverie/internal/prompt"
	"reverie/internal/prompt/section"
	"reverie/internal/settings"
	"reverie/internal/task"
	"reverie/internal/tool"
	"reverie/internal/trust"
)

const (
	chatRole = "chat"
	minute   = "2006-01-02 15:04"
)

// objective returns the store of current tasks.
func (m *Manager) objective() objective.Store {
	return objective.Store{DB: m.cfg.DB, Tasks: m.cfg.Tasks, History: m.cfg.History, Models: m.cfg.Models, Role: m.cfg.ObjectiveRole}
}

// firstModel returns the model that a role asks first.
func (m *Manager) firstModel(role string) string { return agent.FirstModel(m.cfg.Models, role) }

// text returns a message text in the room's language.
func (s *Session) text(ctx context.Context, key string, fill ...string) string {
	return s.cfg.Messages.Text(ctx, s.room, key, fill...)
}

// mode reads the mode of the room.
func (s *Session) mode(ctx context.Context) (settings.RoomMode, error) {
	return s.cfg.Settings.RoomMode(ctx, s.room, s.cfg.Models.Names())
}

// setter returns the function with which a tool call sets the mode or the model; nil unless a person is
// answered.
func (s *Session) setter(in item) func(ctx context.Context, name, value string) error {
	if in.event.Kind != "" || in.ID == "" {
		return nil
	}
	return command.Setter(s.newCommandCall(in.Message), s.cfg.Transport)
}

// turnSettings are people's choices and the window's limits for a room's next request.
type turnSettings struct {
	mode          settings.RoomMode
	tier          int
	goal          goal.Goal
	task          task.Task // the current task, if there is no goal; may have no ID
	showsPictures bool      // the conversation has pictures, and the model accepts them
	tokenRatio    float64   // tokens as the model counts them, per estimated token

	summary history.Compaction // summary of older messages; zero = nothing was compacted
}

// turnSettings reads the settings for an answer to the end of past; preview stores nothing.
func (s *Session) turnSettings(ctx context.Context, at trust.Place, past []history.Message, preview bool) (m turnSettings, err error) {
	if m.mode, err = s.mode(ctx); err != nil {
		return m, err
	}
	if m.tier, err = s.tier(ctx, m.mode, past, preview); err != nil {
		return m, err
	}
	if m.tokenRatio, err = s.windows().TokenRatio(ctx, s.firstModel(m.mode.Role)); err != nil {
		return m, err
	}
	m.showsPictures = attachment.HasPictures(past) && s.cfg.Models.AcceptsPictures(ctx, m.mode.Role)
	var since time.Time
	if len(past) > 0 {
		since = past[0].At
	}
	if m.goal, _, err = s.goals.ForPrompt(ctx, at, since); err != nil {
		return m, err
	}
	if m.task, err = s.objective().Current(ctx, s.talk, at, past, preview); err != nil {
		return m, err
	}
	m.summary, err = s.cfg.History.LatestCompaction(ctx, s.talk)
	return m, err
}

// offer returns the tools described to the model.
func (s *Session) offer(m turnSettings) agent.Offer {
	return s.offers[m.mode.Name][min(max(m.tier, 0), topTier)].Without(s.cfg.Tools.Withheld(s.room, s.readers))
}

// promptTurn collects what the assembler needs for an answer to in.
func (s *Session) promptTurn(in item, past []history.Message, m turnSettings) prompt.Turn {
	window, out := s.cfg.Models.Window(m.mode.Role)
	tools := s.offer(m)
	t := prompt.Turn{
		Timeline: s.talk, Window: window, MaxOutput: out, TokenRatio: m.tokenRatio, ToolTokens: tools.Tokens,
		Turn: section.Turn{
			Room: s.room, User: in.Sender, Scopes: s.scopes(in.Head), Shared: !in.Private, Tools: tools.Names,
			Now: s.cfg.Now().In(s.cfg.Profiles.PersonalOrUsualZone(s.place(in.Head).Readers())), History: past,
			Mode: m.mode.Name, Tier: m.tier,
		},
	}
	t.Chosen, t.Model, t.Persona = m.mode.Model, s.firstModel(m.mode.Role), m.mode.Persona
	if !s.cfg.Models.AcceptsThinking(m.mode.Role) { // the model has no such parameter: the prompt says it
		t.Thinking = string(m.mode.Think)
	}
	t.Summary, t.Compacted, t.From.Summary = m.summary.Text(), m.summary.ID, m.summary.Integrity
	t.Vision, t.Context, t.From.Profile = m.showsPictures, m.mode.Context, s.senderIntegrity(in.Head)
	t.SetGoal(m.goal)
	if t.Pin == "" && m.task.ID != "" {
		t.Pin, t.From.Pin = m.task.Line(i18n.English), m.task.Label.Integrity
	}
	if in.event.Kind == chat.ScheduledTask {
		t.IsolateJob()
	}
	return t
}

// policyOf returns the tools that a mode allows.
func policyOf(m settings.Mode) tool.Policy {
	p := tool.Policy{Allow: m.Allow, Deny: m.Deny, Where: m.Name + " mode"}
	if free := slices.IndexFunc(settings.Modes(), func(o settings.Mode) bool { return len(o.Allow)+len(o.Deny) == 0 }); free >= 0 {
		p.Else = "`!mode " + settings.Modes()[free].Name + "` offers it"
	}
	return p
}

const topTier = 5

// toolBudget limits the tokens of tool descriptions, by tier; tier 0 = not known. Tools late in the
// catalog that exceed it are not offered.
var toolBudget = [topTier + 1]int{8000, 600, 2000, 3800, 5000, 8000}

// offers returns the tools by mode name and tier. The smallest tier gets brief descriptions.
// subSessions tells whether sub-sessions are enabled.
func offers(full, brief []llm.ToolSpec, subSessions bool) map[string][topTier + 1]agent.Offer {
	out := map[string][topTier + 1]agent.Offer{}
	for _, m := range settings.Modes() {
		var of [topTier + 1]agent.Offer
		for tier := range of {
			all := full
			if tier == 1 {
				all = brief
			}
			for _, s := range policyOf(m).Filter(all) {
				if (tier == 0 || tier >= tool.MinTier(s.Name)) &&
					(subSessions || s.Name != tool.SpawnSubSession) && of[tier].Tokens+agent.DescriptionTokens(s) <= toolBudget[tier] {
					of[tier].Add(s)
				}
			}
		}
		out[m.Name] = of
	}
	return out
}
