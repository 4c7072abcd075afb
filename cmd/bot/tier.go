package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	"reverie/cmd/bot/config"
	"reverie/internal/vram"
	"reverie/internal/window"
)

type tierCommand struct{}

// tierReport explains the tier of a new conversation, and lists those of the rooms.
type tierReport struct {
	window.Decision
	VRAM  vram.Report   `json:"vram"`
	Asked []string      `json:"asked"` // detection steps of the model's server
	Rooms []window.Lock `json:"rooms"`
}

// Run explains the tier. It changes nothing; the bot may run at the same time.
func (t tierCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, _, err := loadConfig(path, c.err, true)
	if err != nil {
		return err
	}
	b, err := openBot(ctx, cfg, slog.New(slog.DiscardHandler), false) // the report includes the warnings
	if err != nil {
		return err
	}
	defer b.close()
	b.window.Detect(ctx)
	r, err := b.tier(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, r)
	}
	return r.print(c.out, cfg)
}

// tier decides from what is known now.
func (b *bot) tier(ctx context.Context) (tierReport, error) {
	windows := window.Store{DB: b.db, Location: b.cfg.Zone}
	d, err := windows.Decide(ctx, b.window.Inputs())
	if err != nil {
		return tierReport{}, err
	}
	m, found := b.window.ChatModel()
	if !found.Answered && m.Window == 0 {
		d.Warnings = append(d.Warnings, "the model server does not answer; this is what is known without it")
	}
	rooms, err := windows.Locks(ctx)
	return tierReport{Decision: d, VRAM: b.window.Inputs().VRAM, Asked: found.Steps, Rooms: rooms}, err
}

func (r tierReport) print(w io.Writer, cfg *config.Config) error {
	fmt.Fprintf(w, "A new conversation gets %s.\n", r.Decision)
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "Note: %s.\n", text)
	}
	list := func(title string, lines []string) {
		fmt.Fprintf(w, "\n%s\n", title)
		for _, l := range lines {
			fmt.Fprintf(w, "  %s\n", l)
		}
	}
	list("What the server of "+r.Model+" says", r.Asked)
	list("GPU memory: "+string(r.VRAM.State)+", "+r.VRAM.Reason, r.VRAM.Steps)
	list("How it was decided, the most trusted source first", r.Steps)
	if len(r.Rooms) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nTiers of the rooms; they change with a new conversation, model or configuration")
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "  room\ttier\twindow\tsource\tsince\twhy")
	for _, l := range r.Rooms {
		fmt.Fprintf(table, "  %s\t%d\t%d\t%s\t%s\t%s\n", l.Room, l.Tier, l.Window, l.Source,
			l.At.In(cfg.Zone).Format("2006-01-02 15:04"), l.Reason)
	}
	return table.Flush()
}
