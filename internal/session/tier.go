package session

import (
	"context"
	"errors"
	"fmt"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/settings"
	"reverie/internal/window"
)

// windows returns the store of window sizes and tier locks. It logs tier changes to the room's log.
func (s *Session) windows() window.Store {
	return window.Store{DB: s.cfg.DB, Now: s.cfg.Now, Location: s.cfg.Profiles.Location, Log: s.log}
}

// windowInputs returns what is known of the window of the room's chat model. For a model chosen by
// !model that is only what its server and the configuration say.
func (s *Session) windowInputs(now settings.RoomMode) window.Inputs {
	if now.Model == "" || now.Model == s.firstModel(chatRole) {
		return s.cfg.WindowInputs()
	}
	in := window.InputsOf(s.cfg.Models.Limits(llm.Preferring(chatRole, now.Model))[0])
	in.ID = "model " + now.Model
	return in
}

// tier returns the prompt tier of the next request. That request answers the end of past.
func (s *Session) tier(ctx context.Context, now settings.RoomMode, past []history.Message, preview bool) (int, error) {
	r := window.Request{Talk: string(s.talk)}
	if n := len(past); n > 0 {
		r.Conversation, r.ByPerson = past[n-1].Conversation, past[n-1].Role == llm.User
	}
	return s.windows().Tier(ctx, r, s.windowInputs(now), preview)
}

// noteCompacted records that the history was compacted, so that the tier may change.
func (s *Session) noteCompacted(ctx context.Context) error {
	now, err := s.mode(ctx)
	if err != nil {
		return err
	}
	return s.windows().AfterCompaction(ctx, string(s.talk), s.windowInputs(now))
}

// retryLowerTier returns p, the prompt of t. If p did not fit, as err says, the window has shrunk: the
// tier is lowered at once and the prompt assembled again.
func (s *Session) retryLowerTier(ctx context.Context, t prompt.Turn, p prompt.Prompt, err error) (prompt.Prompt, error) {
	var large *prompt.TooLargeError
	if !errors.As(err, &large) {
		return p, err
	}
	now, failed := s.mode(ctx)
	lower, keep, ok := s.windows().LowerTier(ctx, string(s.talk), s.windowInputs(now), t.Tier, t.Window)
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

// requestSize is the size of the last request of a conversation.
type requestSize struct {
	expected int // tokens of the request
	room     int // tokens that the window has for a request; 0 = not known
}

// learnTokenRatio compares the estimate r of a request with the model's own count. bare means that the
// request had no tools. A failed write is only logged: the next answer repeats it.
func (s *Session) learnTokenRatio(ctx context.Context, r prompt.Report, bare bool, reply llm.Reply) {
	if reply.Model == "" {
		return // no answer
	}
	s.usage = requestSize{expected: r.Counted(), room: max(r.Window-r.MaxOutput, 0)}
	if r.Pictures > 0 { // pictures have another ratio
		return
	}
	sent := r.Total
	if bare {
		sent -= r.ToolTokens
	}
	err := s.windows().LearnRatio(ctx, reply.Model, sent, reply.Usage.Prompt)
	if err != nil && ctx.Err() == nil {
		s.log.Warn("token ratio not stored", "model", reply.Model, "err", err)
	}
}

// WindowStatus returns lines for !status: the prompt's tier and how full the window is.
func (s *Session) WindowStatus(ctx context.Context, past []history.Message) ([]string, error) {
	now, err := s.mode(ctx)
	if err != nil {
		return nil, err
	}
	tier, err := s.tier(ctx, now, past, true)
	if err != nil {
		return nil, err
	}
	lock, err := s.windows().Lock(ctx, string(s.talk))
	if err != nil {
		return nil, err
	}
	d, err := s.windows().Decide(ctx, s.windowInputs(now))
	if err != nil {
		return nil, err
	}
	line := s.text(ctx, "status.tier", "tier", fmt.Sprint(tier), "window", fmt.Sprint(d.Window),
		"source", s.text(ctx, "status.from."+string(d.Source)))
	if lock != nil && lock.Tier == tier {
		line = s.text(ctx, "status.tier_since", "tier", fmt.Sprint(tier), "window", fmt.Sprint(lock.Window),
			"source", s.text(ctx, "status.from."+string(lock.Source)), "at", lock.At.In(s.cfg.Profiles.Location).Format(minute))
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
