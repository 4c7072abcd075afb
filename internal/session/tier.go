package session

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/window"
)

// windows keeps what is known of windows, and says on the room's log which tiers change.
func (s *Session) windows() window.Store {
	return window.Store{DB: s.cfg.DB, Now: s.cfg.Now, Location: s.cfg.Location, Log: s.log}
}

// inputs are what is known of the window of the model that answers chat in this room.
// Of a model that the room alone has, it is what its server and the configuration say.
func (s *Session) inputs(ctx context.Context) (window.Inputs, error) {
	now, err := s.mode(ctx)
	if err != nil || now.Model == "" || now.Model == s.firstModel(chatRole) {
		return s.cfg.Window(), err
	}
	in := window.InputsOf(s.cfg.Models.Limits(llm.Preferring(chatRole, now.Model))[0])
	in.ID = "model " + now.Model
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
	return s.windows().Tier(ctx, r, in, preview)
}

// compacted tells that the room's history was rewritten: the tier may change now.
func (s *Session) compacted(ctx context.Context) error {
	in, err := s.inputs(ctx)
	if err != nil {
		return err
	}
	return s.windows().AfterCompaction(ctx, string(s.talk), in)
}

// orShorter is p, the prompt of the turn t. When that did not fit any more (err says so), because
// the window has become smaller, the tier goes down at once.
func (s *Session) orShorter(ctx context.Context, t prompt.Turn, p prompt.Prompt, err error) (prompt.Prompt, error) {
	var large *prompt.TooLargeError
	if !errors.As(err, &large) {
		return p, err
	}
	in, failed := s.inputs(ctx)
	lower, keep, ok := s.windows().LowerTier(ctx, string(s.talk), in, t.Tier, t.Window)
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

// usage is what the latest request of a conversation took.
type usage struct {
	expected int // tokens of the request
	room     int // what the window has for one; 0 = not known
}

// count learns from an answer how its model counts. r is what was sent, bare without
// the tools. What cannot be stored is learned again with the next one.
func (s *Session) count(ctx context.Context, r prompt.Report, bare bool, reply llm.Reply) {
	if reply.Model == "" {
		return // there is none
	}
	s.usage = usage{expected: r.Counted(), room: max(r.Window-r.MaxOutput, 0)}
	if r.Pictures > 0 { // how a model counts pictures says nothing of words
		return
	}
	sent := r.Total
	if bare {
		sent -= r.ToolTokens
	}
	err := s.windows().LearnRatio(ctx, reply.Model, sent, reply.Usage.Prompt)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("how the model counts is not kept", "model", reply.Model, "err", err)
	}
}

// Window says for !status which tier the prompt has, and how full the window is.
func (s *Session) Window(ctx context.Context, past []history.Message) ([]string, error) {
	tier, err := s.tier(ctx, past, true)
	if err != nil {
		return nil, err
	}
	lock, err := s.windows().Lock(ctx, string(s.talk))
	if err != nil {
		return nil, err
	}
	in, err := s.inputs(ctx)
	if err != nil {
		return nil, err
	}
	d, err := s.windows().Decide(ctx, in)
	if err != nil {
		return nil, err
	}
	line := s.text(ctx, "status.tier", "tier", fmt.Sprint(tier), "window", fmt.Sprint(d.Window),
		"source", s.text(ctx, "status.from."+string(d.Source)))
	if lock != nil && lock.Tier == tier {
		line = s.text(ctx, "status.tier_since", "tier", fmt.Sprint(tier), "window", fmt.Sprint(lock.Window),
			"source", s.text(ctx, "status.from."+string(lock.Source)), "at", lock.At.In(s.cfg.Location).Format(minute))
		if d.Tier != tier {
			line = i18n.Sentences(line, s.text(ctx, "status.tier_next", "window", fmt.Sprint(d.Window)))
		}
	}
	lines := []string{line}
	if u := s.usage; u.room > 0 {
		lines = append(lines, s.text(ctx, "status.window", "percent", fmt.Sprint(100*u.expected/u.room)))
	}
	return lines, nil
}
