package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt"
)

type promptCommand struct {
	Layout string `help:"Show it in this layout: stable, classic, tiered, split, layered, phased; without it, as configured."`
	Room   string `help:"The room whose next prompt to show; without it, a new direct chat with the first owner."`
	Diff   bool   `help:"Show what is new since the last request of the room."`
}

// Run prints the prompt that the next message would be sent with, and its
// report. It changes nothing, and may run beside the bot.
func (p promptCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, log, err := load(path, c.err, true)
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
	if p.Diff {
		return p.diff(ctx, c, b)
	}
	return p.show(ctx, c, b)
}

func (p promptCommand) show(ctx context.Context, c console, b *bot) error {
	sessions := b.sessions(nil, nil)
	if p.Room != "" {
		rooms, err := sessions.Rooms(ctx)
		if err != nil {
			return err
		}
		if !slices.Contains(rooms, history.Talk(p.Room).Room()) {
			fmt.Fprintf(c.err, "Nobody has talked to the bot in %s yet: this is how a first message there would be sent.\n", p.Room)
		}
	}
	made, err := sessions.Preview(ctx, p.Room)
	if err != nil {
		return err
	}
	tools, err := sessions.Tools(ctx, p.Room)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, struct {
			Layout   prompt.Layout `json:"layout"`
			Messages any           `json:"messages"`
			Tools    any           `json:"tools"`
			Report   prompt.Report `json:"report"`
		}{made.Layout, made.Messages(), tools, made.Report})
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	fmt.Fprintf(c.out, "%s=== tools ===\n%s\n\n=== report ===\n%s\n", inWords(made.Messages()), strings.Join(names, ", "), made.Report)
	return nil
}

// inWords is a request as people read it.
func inWords(messages []llm.Message) string {
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

// diff shows what the next request has that the last one had not.
func (p promptCommand) diff(ctx context.Context, c console, b *bot) error {
	if p.Room == "" {
		rooms, err := b.sessions(nil, nil).Rooms(ctx)
		if err != nil {
			return err
		}
		if len(rooms) == 0 {
			return errors.New("nobody has talked to the bot yet: there is no request to compare with")
		}
		p.Room = rooms[0] // the one that was talked in last
	}
	last, err := b.prompt.Sent(ctx, history.Talk(p.Room))
	if errors.Is(err, prompt.ErrNotKept) {
		return fmt.Errorf("nothing is kept of the last request of %s: there was none yet, or its layout is rebuilt for each", p.Room)
	}
	if err != nil {
		return err
	}
	next, err := b.sessions(nil, nil).Preview(ctx, p.Room)
	if err != nil {
		return err
	}
	changes := difference("last request", inWords(last), "next request", inWords(next.Messages()))
	repeated := prompt.Repeated(last, next.Messages())
	if c.json {
		return printJSON(c.out, struct {
			Room     string             `json:"room"`
			Diff     string             `json:"diff"`
			Repeated float64            `json:"repeated"` // share of the last request
			Epoch    prompt.EpochReport `json:"epoch"`
		}{p.Room, changes, repeated, next.Report.Epoch})
	}
	if changes == "" {
		changes = "nothing has changed since\n"
	}
	fmt.Fprint(c.out, changes)
	fmt.Fprintf(c.out, "\n%.1f %% of the last request stands at the beginning of the next one", 100*repeated)
	if next.Report.Epoch.New {
		fmt.Fprintf(c.out, "; a new epoch begins: %s", next.Report.Epoch.Reason)
	}
	fmt.Fprintln(c.out)
	return nil
}

// difference is what two texts differ in, as diff -u writes it; "" = nothing.
func difference(oldName, old, newName, new string) string {
	d := string(diff.Diff(oldName, []byte(old), newName, []byte(new)))
	_, d, _ = strings.Cut(d, "\n") // the command that it stands for
	return d
}
