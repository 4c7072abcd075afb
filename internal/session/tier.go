package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reverie/internal/history"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// Decision is what is known now of the chat model's window, and the tier that a new
// conversation would get. It asks nobody and changes nothing.
func (m *Manager) Decision(ctx context.Context) (prompt.Decision, error) {
	d, _, err := m.decide(ctx)
	return d, err
}

func (m *Manager) decide(ctx context.Context) (prompt.Decision, prompt.Inputs, error) {
	return m.decideFor(ctx, m.inputs())
}

// decideFor decides on inputs, with what the server enforced when it was last seen.
func (m *Manager) decideFor(ctx context.Context, in prompt.Inputs) (prompt.Decision, prompt.Inputs, error) {
	var seen int64
	err := m.cfg.DB.QueryRowContext(ctx, `SELECT tokens, source, seen_at FROM model_window WHERE model = ?`, in.ID).
		Scan(&in.Last.Tokens, &in.Last.By, &seen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return prompt.Decision{}, in, fmt.Errorf("session: read window: %w", err)
	}
	if in.Last.Tokens > 0 {
		in.Last.By = fmt.Sprintf("%s, on %s", in.Last.By, time.UnixMilli(seen).In(m.cfg.Location).Format(minute))
	}
	return prompt.Decide(in), in, nil
}

// inputs are those of the configuration, or what the chat model's server says alone.
func (m *Manager) inputs() prompt.Inputs {
	if m.cfg.Window != nil {
		return m.cfg.Window()
	}
	if limits := m.cfg.Models.Limits("chat"); len(limits) > 0 {
		return WindowInputs(limits[0])
	}
	return prompt.Inputs{}
}

// WindowInputs are what detection found out, as inputs of a decision.
func WindowInputs(found llm.Detection) prompt.Inputs {
	in := prompt.Inputs{Model: found.Model, ID: found.Model, Ollama: found.Server == llm.Ollama, Trained: found.Trained, Outside: found.Outside}
	said := prompt.Said{Tokens: found.Limit.Tokens, By: found.Limit.Source}
	switch l := found.Limit; {
	case l.Label == llm.Enforced && l.At.IsZero():
		in.Configured = said
	case l.Label == llm.Enforced:
		in.Server = said
	case l.Label == llm.Max:
		in.Hosted = said
	case l.Label == llm.Estimated && l.Least:
		in.Least = said
	case l.Label == llm.Estimated:
		in.Likely = said
	}
	return in
}

// tier is the tier of the room's next request, as an answer to what stands last in
// past. It is locked, and changes at boundaries only. preview changes nothing.
func (s *Session) tier(ctx context.Context, past []history.Message, preview bool) (int, error) {
	d, in, err := s.decide(ctx)
	if err != nil {
		return 0, err
	}
	lock, err := s.tierLock(ctx, s.talk)
	if err != nil {
		return 0, err
	}
	conversation, byPerson := int64(0), false
	if n := len(past); n > 0 {
		conversation, byPerson = past[n-1].Conversation, past[n-1].Role == llm.User
	}
	next := lock.next(d, string(s.talk), conversation, in.ID, in.Settings, byPerson, s.cfg.Now())
	if preview {
		return next.Tier, nil
	}
	if in.Server.Tokens > 0 && in.Server.Tokens != in.Last.Tokens {
		err = s.rememberWindow(ctx, in)
	}
	if lock == nil || *lock != next {
		err = errors.Join(err, s.relock(ctx, lock, next))
	}
	return next.Tier, err
}

// rememberWindow keeps what the server enforces, for when it does not answer.
func (m *Manager) rememberWindow(ctx context.Context, in prompt.Inputs) error {
	_, err := m.cfg.DB.ExecContext(ctx, `INSERT OR REPLACE INTO model_window (model, tokens, source, seen_at) VALUES (?, ?, ?, ?)`,
		in.ID, in.Server.Tokens, in.Server.By, m.cfg.Now().UnixMilli())
	if err != nil {
		return fmt.Errorf("session: remember window: %w", err)
	}
	return nil
}

// relock stores a lock that takes the place of another, which may be nil.
func (s *Session) relock(ctx context.Context, old *TierLock, next TierLock) error {
	if err := s.saveTierLock(ctx, next); err != nil {
		return err
	}
	if old == nil || old.Tier != next.Tier {
		before := 0
		if old != nil {
			before = old.Tier
		}
		s.log.Info("tier", "tier", next.Tier, "before", before, "window", next.Window, "source", next.Source, "sure", next.Sure, "reason", next.Reason)
	}
	return nil
}

// compacted tells that the room's history was rewritten, which the model must read
// anew in any case: the tier may change now. A change of mode is no such thing.
func (s *Session) compacted(ctx context.Context) error {
	d, _, err := s.decide(ctx)
	if err != nil {
		return err
	}
	lock, err := s.tierLock(ctx, s.talk)
	if err != nil || lock == nil {
		return err
	}
	if next := lock.shift(d, atCompaction, s.cfg.Now()); next != *lock {
		return s.relock(ctx, lock, next)
	}
	return nil
}

// orShorter is p, the prompt of the turn t. When that did not fit any more (err says so), because
// the window has become smaller, the tier goes down at once.
func (s *Session) orShorter(ctx context.Context, t prompt.Turn, p prompt.Prompt, err error) (prompt.Prompt, error) {
	var large *prompt.TooLargeError
	if !errors.As(err, &large) {
		return p, err
	}
	d, _, failed := s.decide(ctx)
	lock, missing := s.tierLock(ctx, s.talk)
	lower := min(d.Tier, prompt.TierFor(t.Window))
	if failed != nil || missing != nil || lock == nil || d.Forced || lower >= t.Tier {
		return p, err
	}
	t.Tier = lower
	smaller, failed := s.cfg.Prompt.Assemble(ctx, t)
	if failed != nil {
		return p, err
	}
	next := lock.take(d, lower, atTooLarge, s.cfg.Now())
	next.Window = t.Window
	return smaller, s.relock(ctx, lock, next)
}

// tierLine is the tier of the room in words, for !status.
func (s *Session) tierLine(ctx context.Context, past []history.Message) (string, error) {
	tier, err := s.tier(ctx, past, true)
	if err != nil {
		return "", err
	}
	lock, err := s.tierLock(ctx, s.talk)
	if err != nil {
		return "", err
	}
	d, err := s.Decision(ctx)
	if err != nil {
		return "", err
	}
	if lock == nil || lock.Tier != tier {
		return s.text(ctx, "status.tier", "tier", fmt.Sprint(tier), "window", fmt.Sprint(d.Window), "source", s.text(ctx, "status.from."+string(d.Source))), nil
	}
	line := s.text(ctx, "status.tier_since", "tier", fmt.Sprint(tier), "window", fmt.Sprint(lock.Window),
		"source", s.text(ctx, "status.from."+string(lock.Source)), "at", lock.At.In(s.cfg.Location).Format(minute))
	if d.Tier != tier {
		line = i18n.Sentences(line, s.text(ctx, "status.tier_next", "window", fmt.Sprint(d.Window)))
	}
	return line, nil
}
