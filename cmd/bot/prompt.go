package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
	"reverie/internal/session"
	"reverie/internal/store"
	"reverie/internal/voice"
)

type promptCommand struct {
	Layout string `help:"The layout to show: stable, classic, tiered, split, layered, phased; default: as configured."`
	Room   string `help:"The room whose next prompt to show; default: a new direct chat with the first owner."`
	Why    bool   `help:"Show what decides how the assistant speaks, instead of the prompt."`
}

// Run prints the prompt and report of the next message. It changes nothing; the bot may run at the same time.
func (p promptCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, log, err := loadConfig(path, c.err, true)
	if err != nil {
		return err
	}
	if p.Layout != "" {
		if !slices.Contains(prompt.Layouts(), prompt.Layout(p.Layout)) {
			return usageError{fmt.Errorf("there is no layout %q; there are %v", p.Layout, prompt.Layouts())}
		}
		cfg.Prompt.Layout = p.Layout
	}
	b, err := openBot(ctx, cfg, log, false)
	if err != nil {
		return err
	}
	defer b.close()
	b.models.Detect(ctx)
	sessions := b.connect(connection{})
	if p.Room != "" {
		rooms, err := session.Rooms(ctx, b.db)
		if err != nil {
			return err
		}
		if !slices.Contains(rooms, history.Timeline(p.Room).Room()) {
			fmt.Fprintf(c.err, "Nobody has written to the bot in %s yet: this is the prompt for a first message there.\n", p.Room)
		}
	}
	next, tools, err := sessions.Preview(ctx, p.Room)
	if err != nil {
		return err
	}
	if p.Why && !c.json { // else it is in the report
		return printStyle(c.out, next.Report.Style)
	}
	if c.json {
		return printJSON(c.out, struct {
			Layout   prompt.Layout `json:"layout"`
			Messages any           `json:"messages"`
			Tools    any           `json:"tools"`
			Report   prompt.Report `json:"report"`
		}{next.Layout, next.Messages(), tools, next.Report})
	}
	names := store.Map(tools, func(t llm.ToolSpec) string { return t.Name })
	fmt.Fprintf(c.out, "%s=== tools ===\n%s\n\n=== report ===\n%s\n",
		formatRequest(next.Messages()), strings.Join(names, ", "), next.Report)
	return nil
}

// printStyle prints how the assistant speaks, what decides it, and what that replaces.
func printStyle(w io.Writer, style []voice.Choice) error {
	if len(style) == 0 {
		fmt.Fprintln(w, "Nothing decides how the assistant speaks: no persona, no style in the configuration or SOUL.md, nothing learned.")
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range style {
		fmt.Fprintf(table, "%s\t%s\t%s", s.Field, s.Value, s.Source)
		for _, o := range s.Instead {
			fmt.Fprintf(table, ", not %s (%s)", o.Value, o.Source)
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

func formatRequest(messages []llm.Message) string {
	var out strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&out, "=== %s ===\n%s\n", m.Role, strings.TrimRight(m.Content, "\n"))
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&out, "→ %s(%s)\n", call.Name, call.Arguments)
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}
