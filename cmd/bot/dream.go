package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/chat"
	"reverie/internal/command"
	"reverie/internal/dream"
	dreamt "reverie/internal/dream/report"
	"reverie/internal/harvest"
	"reverie/internal/i18n"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/session"
	"reverie/internal/trust"
)

// openDreamer builds the dreamer, which consolidates memory.
func (b *bot) openDreamer() *dream.Dreamer {
	level := b.cfg.Level()
	c := dream.Config{
		DB: b.db, Store: b.memory, Dir: b.cfg.Data, Prompts: os.DirFS(b.cfg.Data), Default: reverie.Data,
		Location: b.cfg.Zone, Log: b.log, Tasks: b.tasks,
		Trusted: func(user string) bool { return level(user) >= trust.User },
		Budget: dreamt.Budget{Calls: b.cfg.Dreaming.Budget.Calls, Tokens: b.cfg.Dreaming.Budget.Tokens,
			Time: time.Duration(b.cfg.Dreaming.Budget.Minutes) * time.Minute},
	}
	if len(b.cfg.LLM.Models) > 0 {
		c.Ask = func(ctx context.Context, role, prompt string) (string, error) {
			answer, err := b.ask(ctx, role, prompt)
			if errors.Is(err, errTruncated) {
				return answer, nil // keep the complete part
			}
			return answer, err
		}
		c.Model = func() string { return strings.Join(b.models.Role("dreaming"), " ") }
		if b.cfg.Harvest.Enabled {
			c.Harvester = b.harvester
		}
	}
	return dream.Open(c)
}

func (b *bot) openDreamSchedule() *dream.Nightly {
	c := dream.NightlyConfig{Dreamer: b.dreamer, Schedule: b.cfg.Dreaming.When, Quiet: b.background.WaitQuiet, Log: b.log}
	if len(b.cfg.LLM.Models) > 0 {
		c.Answers = func(ctx context.Context) bool {
			return slices.ContainsFunc(b.models.Role("dreaming"), func(name string) bool { return b.models.Probe(ctx, name) == nil })
		}
	}
	return dream.OpenNightly(c)
}

// tidyPhases maps an oversized prompt part to the dream phase that shrinks it.
var tidyPhases = map[string]dream.Phase{"memories": dream.Dedup, "tasks": dream.Tasks}

// dreamHooks returns the functions behind !dream and the clean-up of oversized prompt parts.
func (b *bot) dreamHooks() *command.Dreams {
	tidy := func(part string) {
		if phase, ok := tidyPhases[part]; ok {
			b.nightly.Tidy(phase)
		}
	}
	return &command.Dreams{Wake: b.nightly.Wake, Tidy: tidy, Status: b.nightly.Status,
		Undo: func(ctx context.Context, say i18n.Say) (string, error) {
			r, err := b.dreamer.Undo(ctx, "")
			if errors.Is(err, dream.ErrNothing) || errors.Is(err, dream.ErrBusy) {
				return i18n.FromError(err).In(say), nil
			}
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s (%s)", r.Summary(say), r.Run), nil // repeated, it undoes the dream before
		}}
}

// reportDream sends the digest to the owner, if configured, and open questions to people.
func (s *service) reportDream(ctx context.Context, r dreamt.Report) {
	s.counted.Dreamed()
	if s.cfg.Dreaming.Notice {
		if err := s.sendDigest(ctx, r); err != nil {
			s.log.Warn("cannot send the dream's report to the owner", "err", err)
		}
	}
	s.askQuestions(ctx)
}

func (s *service) sendDigest(ctx context.Context, r dreamt.Report) error {
	ownScope := memory.Private(s.cfg.Owner())
	room, err := s.asker.RoomFor(ctx, ownScope)
	if err != nil || room == "" {
		return err // the report is in the data folder
	}
	if s.cfg.Dreaming.Questions > 0 {
		r.Questions = nil // sent as separate notices
	}
	text := r.Digest(s.messages.For(ctx, room), func(of memory.Scope) bool { return of == memory.Shared || of == ownScope })
	if text == "" {
		return nil
	}
	return s.transport.Send(ctx, room, chat.Outgoing{ID: r.Run, Text: text, Notice: true})
}

type dreamCommand struct {
	Undo *dreamUndoCommand `arg:"subcommand:undo" help:"Revert a dream; the last one if none is given."`

	DryRun bool     `arg:"--dry-run" help:"Only show what would be done."`
	Phase  []string `arg:"separate" help:"Only this part: harvest, dedup, contradiction, stale or tasks. May be repeated."`
}

func (n dreamCommand) Run(ctx context.Context, c console, b *bot) error {
	o := dream.Options{DryRun: n.DryRun, Now: true}
	for _, p := range n.Phase {
		o.Phases = append(o.Phases, dream.Phase(p))
	}
	if err := o.Check(); err != nil {
		return usageError{err}
	}
	r, err := b.dreamer.Dream(ctx, o)
	return b.printDream(c, r, err)
}

type dreamUndoCommand struct {
	Dream string `arg:"positional" placeholder:"RUN" help:"The dream, as its report names it."`
}

func (u dreamUndoCommand) Run(ctx context.Context, c console, b *bot) error {
	r, err := b.dreamer.Undo(ctx, u.Dream)
	return b.printDream(c, r, err)
}

func (b *bot) printDream(c console, r dreamt.Report, failed error) error {
	if r.Run == "" {
		return failed
	}
	return errors.Join(failed, c.print(r, "%s", r.Text(b.cfg.Zone)))
}

func (b *bot) openHarvester() *harvest.Harvester {
	return harvest.Open(harvest.Config{
		DB: b.db, Store: b.memory, Ask: b.ask, Prompts: os.DirFS(b.cfg.Data), Default: reverie.Data,
		Window: func(role string) (int, int) { return b.models.Window(role) }, Level: b.cfg.Level(), WaitIdle: b.background.Wait,
		LastMessageAt: func(ctx context.Context, room string) (time.Time, error) {
			return session.LastMessageAt(ctx, b.db, room)
		},
		Messages: b.cfg.Harvest.Messages, Idle: b.cfg.Harvest.Idle, CallsPerDay: b.cfg.Harvest.Calls,
		Profiles: b.profiles(), Now: time.Now, Log: b.log,
	})
}

// errTruncated comes with the beginning of an answer.
var errTruncated = errors.New("the answer was cut off at its maximum length; max_output of the model may be too small")

// ask sends one prompt to a model of role, for background work. A truncated answer is returned with errTruncated.
func (b *bot) ask(ctx context.Context, role, prompt string) (string, error) {
	temperature := float32(0.1)
	reply, err := b.models.Complete(ctx, role,
		llm.Request{Messages: []llm.Message{{Role: llm.User, Content: prompt}}, Think: llm.ThinkOff, Temperature: &temperature}, nil)
	if err != nil {
		return "", err
	}
	if reply.Finish == "length" {
		return reply.Text, errTruncated
	}
	return reply.Text, nil
}
