package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"reverie/internal/matrix"
)

type verifyCommand struct {
	JSON bool `help:"Print JSON."`
}

// Run prints what others compare to be sure that they talk to this bot. It
// changes nothing, and may run beside the bot.
func (v verifyCommand) Run(ctx context.Context, c console, path filePath) error {
	cfg, log, err := load(path, c.err, true)
	if err != nil {
		return err
	}
	if cfg.Matrix == nil {
		return usageError{errors.New("the configuration has no matrix: section, so there is nothing to verify")}
	}
	if _, err := os.Stat(cfg.Data); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the data folder %s is not there yet; start the bot once with `bot run`", cfg.Data)
	}
	b, err := openBot(ctx, cfg, log, false)
	if err != nil {
		return err
	}
	defer b.close()
	who, err := matrix.Identify(ctx, b.matrixConfig())
	if err != nil {
		return err
	}
	if v.JSON {
		return printJSON(c.out, who)
	}
	fmt.Fprintf(c.out, "user         %s\ndevice       %s\nfingerprint  %s\n", who.User, who.Device, who.Fingerprint)
	if who.Master != "" {
		fmt.Fprintf(c.out, "identity     %s\n", who.Master)
	}
	fmt.Fprintln(c.out)
	for _, f := range who.Findings {
		if f.OK {
			fmt.Fprintf(c.out, "✓ %s\n", f.What)
		} else {
			fmt.Fprintf(c.out, "✗ %s\n  → %s\n", f.What, f.Remedy)
		}
	}
	_, err = fmt.Fprint(c.out, `
To verify the bot from your Matrix client, with the bot running:
  · open the bot's profile there and choose to verify, or say !verify start in your direct chat with it
  · the client shows seven emoji, the bot shows its own in the chat and in its log: compare them
  · tell the client what you saw, and answer the bot !verify yes CODE or !verify no
Clients that verify by text ask for the fingerprint above.
`)
	return err
}
