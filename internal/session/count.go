package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// Tokens are estimated by the class of their characters, and each model counts them in
// its own way. The server says with each answer how many there were; what that makes of
// the estimate is kept per model, and everything that weighs a window goes by it.

// usage is what the latest request of a conversation took.
type usage struct {
	reply    llm.Reply
	expected int // tokens of the request
	room     int // what the window has for one; 0 = not known
}

// Bounds of what is believed: a smaller share means that the server did not read, or did
// not count, all that was sent; a larger one that it counts something else.
const (
	leastDense = 0.67
	mostDense  = 5.0
	leastTotal = 300 // tokens; in less the frame of the messages weighs too much
)

// density is how many tokens were counted for one by estimate; false = there is nothing
// to be learned from it.
func density(estimated, counted int) (float64, bool) {
	if estimated < leastTotal || counted <= 0 {
		return 1, false
	}
	d := float64(counted) / float64(estimated)
	return d, d >= leastDense && d <= mostDense
}

// learned is a factor after another observation: at once when more is counted, as a request
// that is too large is refused, and by a quarter of the way when less is.
func learned(before, seen float64, answers int) float64 {
	if answers == 0 || seen >= before {
		return seen
	}
	return before + (seen-before)/4
}

// dense is how many tokens the first model of role counts for one by estimate; 1 = nothing is known.
func (m *Manager) dense(ctx context.Context, role string) (float64, error) {
	factor, _, err := m.modelFactor(ctx, m.firstModel(role))
	return factor, err
}

// modelFactor is what is stored of a model, and from how many answers it was learned.
func (m *Manager) modelFactor(ctx context.Context, model string) (factor float64, answers int, err error) {
	err = m.cfg.DB.QueryRowContext(ctx, `SELECT factor, answers FROM model_count WHERE model = ?`, model).Scan(&factor, &answers)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 1, 0, nil
	case err != nil:
		return 1, 0, fmt.Errorf("session: read how a model counts: %w", err)
	}
	return factor, answers, nil
}

// count learns from an answer how its model counts. r is what was sent, bare without
// the tools. What cannot be stored is learned again with the next one.
func (s *Session) count(ctx context.Context, r prompt.Report, bare bool, reply llm.Reply) {
	if reply.Model == "" {
		return // there is none
	}
	s.usage = usage{reply: reply, expected: r.Counted(), room: max(r.Window-r.MaxOutput, 0)}
	sent := r.Total
	if bare {
		sent -= r.ToolTokens
	}
	seen, ok := density(sent, reply.Usage.Prompt)
	if !ok || r.Pictures > 0 { // how a model counts pictures says nothing of words
		return
	}
	factor, answers, err := s.modelFactor(ctx, reply.Model)
	if err == nil {
		_, err = s.cfg.DB.ExecContext(ctx, `INSERT INTO model_count (model, factor, answers, at) VALUES (?1, ?2, 1, ?3)
			ON CONFLICT (model) DO UPDATE SET factor = ?2, answers = answers + 1, at = ?3`,
			reply.Model, learned(factor, seen, answers), s.cfg.Now().UnixMilli())
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("how the model counts is not kept", "model", reply.Model, "err", err)
	}
}

// usageLine says for !status how full the window is and what the last answer took; "" = nothing is known.
func (s *Session) usageLine(ctx context.Context) string {
	var line string
	if s.usage.room > 0 {
		line = s.text(ctx, "status.window", "percent", fmt.Sprint(100*s.usage.expected/s.usage.room))
	}
	u := s.usage.reply
	if u.Usage == (llm.Usage{}) {
		return line
	}
	began := s.text(ctx, "status.at_once")
	if d := u.First.Round(100 * time.Millisecond); d > 0 {
		began = s.text(ctx, "status.after", "time", i18n.Span(d).In(s.cfg.Messages.For(ctx, s.room)))
	}
	key := "status.answer"
	if u.Usage.Cached > 0 {
		key = "status.answer_cached"
	}
	return i18n.Sentences(line, s.text(ctx, key, "read", fmt.Sprint(u.Usage.Prompt), "cached", fmt.Sprint(u.Usage.Cached), "began", began,
		"wrote", fmt.Sprint(u.Usage.Output)))
}
