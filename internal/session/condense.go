package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/skill"
	"reverie/internal/tool"
)

// A condenser asks the model to make a part of the prompt shorter that has
// outgrown its cap. The prompt itself does not wait for that: what is over is
// left out at once, and a note says so.
type condenser struct {
	contributor string // as the assembler reports it
	tool        string // that can really do it; without it nobody is asked
	chore       bool   // that tool is offered for this alone
	// whose says whom the part belongs to, who is asked about it once a day; false
	// if there is nothing that the tool could do.
	whose func(*Session, context.Context, Inbound) (whose string, ok bool, err error)
	what  string
}

var condensers = []condenser{
	{"tasks", "task", false, (*Session).ofRoom, "The open tasks of this room take %d characters, and a prompt has room for %d of them. " +
		"Tidy them up with the task tool: shorten long texts, put duplicates together, and delete what has lost its meaning. " +
		"Keep every schedule, and complete nothing that you do not know to be done."},
	{"memories", "merge_memories", true, (*Session).heaviest, "The memories that you see here take %d characters, and a prompt has room for %d of them. " +
		"Call merge_memories without arguments first: it lists them with their ids. Then put together, a few at a time, those that say the same or " +
		"belong to the same person or thing, until there are clearly fewer characters. Say each fact once, in few words; keep every number, date, name, address, code and quotation."},
	{"skills", "tidy_skills", true, (*Session).ownSkills, "The list of skills takes %d characters, and a prompt has room for %d of them. " +
		"Call tidy_skills without arguments first: it shows the list. Then give the longest summaries a shorter wording that still says when to use the skill, and make small skills that belong together parts of one."},
}

func (s *Session) ofRoom(context.Context, Inbound) (string, bool, error) { return s.room, true, nil }

// ownSkills is whose skills here are tidied up for the sender of in: only their own are.
func (s *Session) ownSkills(_ context.Context, in Inbound) (string, bool, error) {
	if s.cfg.Skills == nil {
		return "", false, nil
	}
	at := s.place(in)
	all, err := s.cfg.Skills.List(at)
	if err != nil {
		return "", false, err
	}
	return in.Sender + " " + string(at.Readers()), slices.ContainsFunc(all, func(k skill.Skill) bool { return k.OwnedAt(at) }), nil
}

// heaviest is that of the scopes of in whose memories are the longest. With an index
// a prompt shows some of them only, and others would take the place of those put together.
func (s *Session) heaviest(ctx context.Context, in Inbound) (string, bool, error) {
	all, err := s.cfg.Memory.Entries(ctx, s.scopes(in)...)
	if err != nil || len(s.cfg.Memory.WorkingSet(all)) < len(all) {
		return "", false, err
	}
	some, err := s.cfg.Memory.Mergeable(ctx, s.access(in))
	if err != nil || len(some) == 0 {
		return "", false, err
	}
	sizes, most := map[memory.Scope]int{}, some[0].Scope
	for _, e := range some {
		if sizes[e.Scope] += len(e.Text); sizes[e.Scope] > sizes[most] {
			most = e.Scope
		}
	}
	return string(most), true, nil
}

// can reports whether there is the tool for it.
func (c condenser) can(tools *tool.Set) bool {
	if c.chore {
		_, ok := tools.Chore(c.tool)
		return ok
	}
	return slices.Contains(tools.Names(), c.tool)
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
	over := s.over
	s.over = oversize{}
	ctx, done, ok := s.whileIdle(work)
	if !ok {
		return
	}
	defer done()
	for _, o := range over.sizes {
		i := slices.IndexFunc(condensers, func(c condenser) bool { return c.contributor == o.Contributor })
		if i < 0 || !condensers[i].can(s.cfg.Tools) {
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
	whose, ok, err := c.whose(s, ctx, in)
	if err != nil || !ok {
		return err
	}
	now := s.cfg.Now()
	done, err := s.cfg.DB.ExecContext(ctx, `INSERT INTO condense (component, whose, asked_at) VALUES (?, ?, ?)
		ON CONFLICT (component, whose) DO UPDATE SET asked_at = excluded.asked_at WHERE asked_at <= ?`,
		c.contributor, whose, now.UnixMilli(), now.Add(-condensed).UnixMilli())
	if err != nil {
		return fmt.Errorf("session: condense: %w", err)
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return err
	}
	if c.chore {
		s.chore = c.tool
		defer func() { s.chore = "" }()
	}
	return s.tooLarge(ctx, in, fmt.Sprintf(c.what, o.Size, o.Max)+" Nobody reads your answer: end with one short line.")
}

// tooLarge lets the model act on what has outgrown its cap, on behalf of the person of
// in, and says nothing of it in the room.
func (s *Session) tooLarge(ctx context.Context, in Inbound, text string) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	told := s.systemEvent(ComponentTooLarge, "", text)
	told.Label = programs(s.place(in).Readers())
	in.ID, in.At = "", told.At
	if err := s.cfg.History.Append(ctx, &told); err != nil {
		return err
	}
	reply, err := s.rounds(ctx, in, func() {})
	if err != nil && !errors.Is(err, errRounds) {
		return err
	}
	answer := history.Message{Room: s.talk, Role: llm.Assistant, Text: reply.Text, At: s.cfg.Now(), Label: s.label}
	return s.cfg.History.Append(ctx, &answer)
}
