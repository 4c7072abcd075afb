package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

// A condenser asks the model to make a part of the prompt shorter that has
// outgrown its cap. The prompt itself does not wait for that: what is over is
// left out at once, and a note says so.
type condenser struct {
	contributor string // as the assembler reports it
	tool        string // that can really do it; without it nobody is asked
	what        string
}

var condensers = []condenser{
	{"tasks", "task", "The open tasks of this room take %d characters, and a prompt has room for %d of them. " +
		"Tidy them up with the task tool: shorten long texts, put duplicates together, and delete what has lost its meaning. " +
		"Keep every schedule, and complete nothing that you do not know to be done."},
}

// condensed is how long it takes until the model is asked again.
const condensed = 24 * time.Hour

// oversize is what the last turn's prompt reported, and on whose behalf it was made.
type oversize struct {
	in    Inbound
	sizes []prompt.Oversize
}

// condense has the model tidy up what has outgrown its cap, while nobody waits: it
// gives way to the next message, and the answer is not said. Each part is asked
// about once a day at most, whatever comes of it.
func (s *Session) condense(work context.Context) {
	ctx, cancel := context.WithCancel(work)
	defer cancel()
	s.mu.Lock()
	over := s.over
	s.over = oversize{}
	if len(s.lane) > 0 {
		s.mu.Unlock()
		return
	}
	s.interrupt = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.interrupt = nil
		s.mu.Unlock()
	}()
	for _, o := range over.sizes {
		i := slices.IndexFunc(condensers, func(c condenser) bool { return c.contributor == o.Contributor })
		if i < 0 || !slices.Contains(s.cfg.Tools.Names(), condensers[i].tool) {
			continue
		}
		err := s.ask(ctx, over.in, condensers[i], o)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.log.Warn("part of the prompt not condensed", "part", o.Contributor, "err", err)
		}
	}
}

// ask puts one request to condense to the model, unless that was done lately.
func (s *Session) ask(ctx context.Context, in Inbound, c condenser, o prompt.Oversize) error {
	now := s.cfg.Now()
	done, err := s.cfg.DB.ExecContext(ctx, `INSERT INTO condense (component, whose, asked_at) VALUES (?, ?, ?)
		ON CONFLICT (component, whose) DO UPDATE SET asked_at = excluded.asked_at WHERE asked_at <= ?`,
		c.contributor, s.room, now.UnixMilli(), now.Add(-condensed).UnixMilli())
	if err != nil {
		return fmt.Errorf("session: condense: %w", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	return s.event(ctx, in, fmt.Sprintf(c.what, o.Size, o.Max)+" Nobody reads your answer: end with one short line.")
}

// event lets the model act on something that the program tells it, on behalf of the
// person of in, and says nothing of it in the room.
func (s *Session) event(ctx context.Context, in Inbound, text string) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	in.ID, in.At = "", s.cfg.Now()
	told := history.Message{Room: s.room, Role: llm.User, Text: text, At: in.At,
		Header: s.cfg.Prompt.Header(in.At.In(s.cfg.Location), "system event", true)}
	if err := s.cfg.History.Append(ctx, &told); err != nil {
		return err
	}
	reply, err := s.rounds(ctx, in, func() {})
	if err != nil && !errors.Is(err, errRounds) {
		return err
	}
	answer := history.Message{Room: s.room, Role: llm.Assistant, Text: reply.Text, At: s.cfg.Now()}
	return s.cfg.History.Append(ctx, &answer)
}
