package main

import (
	"context"
	"fmt"
	"strings"

	"reverie/internal/prompt"
)

type promptCommand struct {
	Layout string `enum:",stable,classic" default:"" help:"stable or classic; without it, as configured."`
	Room   string `help:"The room whose next prompt to show; without it, a new direct chat with the first owner."`
	JSON   bool   `help:"Print JSON."`
}

// Run prints the prompt that the next message would be sent with, and its
// report. It changes nothing, and may run beside the bot.
func (p promptCommand) Run(ctx context.Context, c console, path configPath) error {
	cfg, log, err := load(path, c.err)
	if err != nil {
		return err
	}
	if p.Layout != "" {
		cfg.Prompt.Layout = p.Layout
	}
	b, err := openBot(ctx, cfg, log, false)
	if err != nil {
		return err
	}
	defer b.close()
	made, err := b.sessions(nil, nil).Preview(ctx, p.Room)
	if err != nil {
		return err
	}
	if p.JSON {
		return printJSON(c.out, struct {
			Layout   prompt.Layout `json:"layout"`
			Messages any           `json:"messages"`
			Tools    any           `json:"tools"`
			Report   prompt.Report `json:"report"`
		}{made.Layout, made.Messages(), b.tools.Specs(), made.Report})
	}
	for _, m := range made.Messages() {
		fmt.Fprintf(c.out, "=== %s ===\n%s\n", m.Role, strings.TrimRight(m.Content, "\n"))
		for _, call := range m.ToolCalls {
			fmt.Fprintf(c.out, "→ %s(%s)\n", call.Name, call.Arguments)
		}
		fmt.Fprintln(c.out)
	}
	fmt.Fprintf(c.out, "=== tools ===\n%s\n\n=== report ===\n%s\n", strings.Join(b.tools.Names(), ", "), made.Report)
	return nil
}
