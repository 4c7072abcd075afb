package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	reverie "reverie"
	"reverie/internal/dream"
	"reverie/internal/llm"
	"reverie/internal/matrix"
	"reverie/internal/trust"
)

// HarvestConfig says when conversations are read for what is worth remembering.
type HarvestConfig struct {
	Enabled  bool          `yaml:"enabled"`
	Messages int           `yaml:"messages"` // of people, in one room, since it was read last
	Idle     time.Duration `yaml:"idle"`     // nobody has said anything in the room
	Calls    int           `yaml:"calls"`    // requests in 24 hours, beside those of dreams
}

func (b *bot) openHarvester() (*dream.Harvester, error) {
	level, err := b.cfg.level()
	if err != nil {
		return nil, err
	}
	return dream.OpenHarvester(dream.HarvestConfig{
		DB: b.db, Store: b.memory, Ask: b.ask, Prompts: os.DirFS(b.cfg.Data), Default: reverie.Data,
		Window: func(role string) (int, int) { return b.models.Window(role) }, Level: level,
		Quiet:    b.giveWay,
		Messages: b.cfg.Harvest.Messages, Idle: b.cfg.Harvest.Idle, Calls: b.cfg.Harvest.Calls, Location: b.cfg.location(), Log: b.log,
	})
}

// trusted is who is learned from: whoever may talk to the bot now, and who sits at the machine.
func (c *Config) trusted() (func(user string) bool, error) {
	if c.Matrix == nil {
		return func(user string) bool { return user == terminalUser }, nil
	}
	allowed, err := matrix.Allowed(c.Matrix.User, c.Matrix.Owners, c.Matrix.Allow, c.Matrix.Bots)
	if err != nil {
		return nil, fmt.Errorf("matrix: %w", err)
	}
	return func(user string) bool { return user == terminalUser || allowed(user) }, nil
}

// level is how far the words that user addresses to the bot are trusted.
func (c *Config) level() (func(user string) trust.Integrity, error) {
	trusted, err := c.trusted()
	if err != nil {
		return nil, err
	}
	return func(user string) trust.Integrity {
		switch {
		case user == terminalUser, c.Matrix != nil && slices.Contains(c.Matrix.Owners, user):
			return trust.Owner
		case trusted(user):
			return trust.User
		}
		return trust.Foreign
	}, nil
}

// runHarvest reads conversations for what is worth remembering until ctx ends.
func (b *bot) runHarvest(ctx context.Context) error {
	if !b.cfg.Harvest.Enabled {
		return nil
	}
	return b.harvester.Run(ctx)
}

// giveWay waits until nobody waits for an answer; see session.Manager.Background. Where nobody can
// write, nobody waits.
func (b *bot) giveWay(ctx context.Context) (context.Context, func(), error) {
	if b.background == nil {
		return ctx, func() {}, ctx.Err()
	}
	return b.background(ctx)
}

// errCutOff comes with the beginning of an answer.
var errCutOff = errors.New("the answer was cut off at its greatest length; max_output of the model may be too small")

// ask puts one prompt to a model of role, for work in the background. An answer that was
// cut off comes as far as it goes, with errCutOff.
func (b *bot) ask(ctx context.Context, role, prompt string) (string, error) {
	warmth := float32(0.1)
	reply, err := b.models.Complete(ctx, role, llm.Request{Messages: []llm.Message{{Role: llm.User, Content: prompt}}, Think: llm.ThinkOff, Temperature: &warmth}, nil)
	if err != nil {
		return "", err
	}
	if reply.Finish == "length" {
		return reply.Text, errCutOff
	}
	return reply.Text, nil
}
