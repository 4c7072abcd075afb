package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	reverie "reverie"
	"reverie/internal/dream"
	"reverie/internal/llm"
	"reverie/internal/task"
)

// openDreamer makes the one who puts the memory in order.
func (b *bot) openDreamer() (*dream.Dreamer, error) {
	c := dream.Config{
		DB: b.db, Store: b.memory, Dir: b.cfg.Data, Prompts: os.DirFS(b.cfg.Data), Default: reverie.Data,
		Location: b.cfg.location(), Log: b.log,
	}
	if len(b.cfg.LLM.Models) > 0 {
		c.Ask = b.askRole
		c.Model = func() string { return strings.Join(b.models.Role("dreaming"), " ") }
	}
	return dream.Open(c)
}

// askRole puts one prompt to the models of role. An answer that was cut off is given
// as far as it goes.
func (b *bot) askRole(ctx context.Context, role, text string) (string, error) {
	cold := float32(0)
	reply, err := b.models.Complete(ctx, role, llm.Request{Messages: []llm.Message{{Role: llm.User, Content: text}}, Temperature: &cold}, nil)
	return reply.Text, err
}

// dreamTimes is when to dream.
func (c *Config) dreamTimes(now time.Time) (task.Schedule, error) {
	s := task.Schedule{Type: "cron", Expression: c.Dreaming.Schedule, Zone: c.Dreaming.Zone}
	return s.Validate(now, time.UTC)
}

// runDreams dreams at its times until ctx ends. after waits until nobody has said
// anything for so long; nil = nobody can.
func (b *bot) runDreams(ctx context.Context, after func(context.Context, time.Duration) (context.Context, func(), error), tell func(context.Context, dream.Report)) error {
	if b.cfg.Dreaming.Schedule == "" {
		return nil
	}
	times, err := b.cfg.dreamTimes(time.Now())
	if err != nil {
		return err
	}
	d, err := b.openDreamer()
	if err != nil {
		return err
	}
	return (&dream.Nightly{Dreamer: d, Schedule: times, Quiet: after, Tell: tell, Log: b.log}).Run(ctx)
}

type dreamCommand struct {
	Now  dreamNowCommand  `cmd:"" default:"withargs" help:"Dream now (the default)."`
	Undo dreamUndoCommand `cmd:"" help:"Take a dream back, the last one if none is named."`
}

type dreamNowCommand struct {
	DryRun bool     `help:"Only show what would be done."`
	Phase  []string `help:"Only this part: dedup, contradiction or stale. May be given several times."`
	Talk   bool     `help:"Leave what was learned in the last ten minutes alone, as it is done at night."`
	JSON   bool     `help:"Print JSON."`
}

// Run dreams once.
func (n dreamNowCommand) Run(ctx context.Context, c console, path configPath) error {
	o := dream.Options{DryRun: n.DryRun, Now: !n.Talk}
	for _, p := range n.Phase {
		o.Phases = append(o.Phases, dream.Phase(p))
	}
	if err := o.Check(); err != nil {
		return usageError{err}
	}
	return withDreamer(ctx, c, path, n.JSON, func(d *dream.Dreamer) (dream.Report, error) { return d.Dream(ctx, o) })
}

type dreamUndoCommand struct {
	Dream string `arg:"" optional:"" name:"run" help:"The dream, as its report names it."`
	JSON  bool   `help:"Print JSON."`
}

// Run takes a dream back.
func (u dreamUndoCommand) Run(ctx context.Context, c console, path configPath) error {
	return withDreamer(ctx, c, path, u.JSON, func(d *dream.Dreamer) (dream.Report, error) { return d.Undo(ctx, u.Dream) })
}

func withDreamer(ctx context.Context, c console, path configPath, asJSON bool, do func(*dream.Dreamer) (dream.Report, error)) error {
	b, err := openMemory(ctx, c, path)
	if err != nil {
		return err
	}
	defer b.close()
	d, err := b.openDreamer()
	if err != nil {
		return err
	}
	r, err := do(d)
	if r.Run != "" {
		var shown error
		if asJSON {
			shown = printJSON(c.out, r)
		} else {
			_, shown = fmt.Fprint(c.out, r.Text(b.cfg.location()))
		}
		err = errors.Join(err, shown)
	}
	return err
}
