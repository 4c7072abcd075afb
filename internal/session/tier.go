package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/window"
)

// Decision is what is known now of the chat model's window, and the tier that a new
// conversation would get. It asks nobody and changes nothing.
func (m *Manager) Decision(ctx context.Context) (window.Decision, error) {
	return m.windows(m.cfg.Log).Decide(ctx, m.inputs())
}

// windows keeps what is known of windows, and says on log which tiers change.
func (m *Manager) windows(log *slog.Logger) window.Store {
	return window.Store{DB: m.cfg.DB, Now: m.cfg.Now, Location: m.cfg.Location, Log: log}
}

// inputs are those of the configuration, or what the chat model's server says alone.
func (m *Manager) inputs() window.Inputs {
	if m.cfg.Window != nil {
		return m.cfg.Window()
	}
	if limits := m.cfg.Models.Limits(chatRole); len(limits) > 0 {
		return window.InputsOf(limits[0])
	}
	return window.Inputs{}
}

// inputs are what is known of the window of the model that answers chat in this room.
// Of a model that the room alone has, it is what its server and the configuration say.
func (s *Session) inputs(ctx context.Context) (window.Inputs, error) {
	now, err := s.mode(ctx)
	if err != nil {
		return window.Inputs{}, err
	}
	chosen := now.Model
	if chosen == "" || chosen == s.firstModel(chatRole) {
		return s.Manager.inputs(), nil
	}
	in := window.InputsOf(s.cfg.Models.Limits(llm.Preferring(chatRole, chosen))[0])
	in.ID = "model " + chosen
	return in, nil
}

// tier is the tier of the room's next request, as an answer to what stands last in past.
func (s *Session) tier(ctx context.Context, past []history.Message, preview bool) (int, error) {
	in, err := s.inputs(ctx)
	if err != nil {
		return 0, err
	}
	r := window.Request{Talk: string(s.talk)}
	if n := len(past); n > 0 {
		r.Conversation, r.ByPerson = past[n-1].Conversation, past[n-1].Role == llm.User
	}
	return s.windows(s.log).Tier(ctx, r, in, preview)
}

// compacted tells that the room's history was rewritten: the tier may change now.
func (s *Session) compacted(ctx context.Context) error {
	in, err := s.inputs(ctx)
	if err != nil {
		return err
	}
	return s.windows(s.log).Compacted(ctx, string(s.talk), in)
}

// orShorter is p, the prompt of the turn t. When that did not fit any more (err says so), because
// the window has become smaller, the tier goes down at once.
func (s *Session) orShorter(ctx context.Context, t prompt.Turn, p prompt.Prompt, err error) (prompt.Prompt, error) {
	var large *prompt.TooLargeError
	if !errors.As(err, &large) {
		return p, err
	}
	in, failed := s.inputs(ctx)
	lower, keep, ok := s.windows(s.log).Lower(ctx, string(s.talk), in, t.Tier, t.Window)
	if failed != nil || !ok {
		return p, err
	}
	t.Tier = lower
	smaller, failed := s.cfg.Prompt.Assemble(ctx, t)
	if failed != nil {
		return p, err
	}
	return smaller, keep()
}

// tierLine is the tier of the room in words, for !status.
func (s *Session) tierLine(ctx context.Context, past []history.Message) (string, error) {
	tier, err := s.tier(ctx, past, true)
	if err != nil {
		return "", err
	}
	lock, err := s.windows(s.log).Lock(ctx, string(s.talk))
	if err != nil {
		return "", err
	}
	d, err := s.Decision(ctx)
	if err != nil {
		return "", err
	}
	if lock == nil || lock.Tier != tier {
		return s.text(ctx, "status.tier", "tier", fmt.Sprint(tier), "window", fmt.Sprint(d.Window),
			"source", s.text(ctx, "status.from."+string(d.Source))), nil
	}
	line := s.text(ctx, "status.tier_since", "tier", fmt.Sprint(tier), "window", fmt.Sprint(lock.Window),
		"source", s.text(ctx, "status.from."+string(lock.Source)), "at", lock.At.In(s.cfg.Location).Format(minute))
	if d.Tier != tier {
		line = i18n.Sentences(line, s.text(ctx, "status.tier_next", "window", fmt.Sprint(d.Window)))
	}
	return line, nil
}
