package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"reverie/cmd/bot/config"
	"reverie/internal/llm/discover"
	"reverie/internal/tty"
)

// initCommand writes an initial configuration.
type initCommand struct{}

// Run asks for values without a default, and writes the file. Without a terminal it does not ask.
func (initCommand) Run(ctx context.Context, c console, path filePath) error {
	// Check first, before the person answers questions.
	if _, err := os.Lstat(string(path)); err == nil {
		return config.ErrExists(string(path))
	}
	if err := os.MkdirAll(filepath.Dir(string(path)), 0o700); err != nil {
		return fmt.Errorf("%s cannot be written: %w; name another file with --config", path, err)
	}
	a := config.DefaultAnswers()
	service := os.Getenv("STATE_DIRECTORY") // its data, if a package installed it
	a.Data = cmp.Or(service, a.Data)
	if tty.IsTerminal(c.in) {
		if found, err := discover.Detect(ctx, os.Getenv); err == nil && found.URL != discover.Rehearsal {
			a.ModelURL, a.Model = found.URL, found.Model
		}
		if err := askAnswers(ctx, c.in, c.out, &a); err != nil {
			return err
		}
	}
	if err := config.Write(string(path), a); err != nil {
		return err
	}
	out := tty.RenamingWriter{W: c.out, Name: c.program}
	fmt.Fprintf(out, "Wrote %s; every key in it is explained.\n", path)
	nextSteps(out, a)
	if service != "" && a.Homeserver != "" {
		fmt.Fprintf(out, "The service reads such variables from %s, one NAME=value a line; `systemctl enable --now reverie` starts it.\n",
			filepath.Join(filepath.Dir(string(path)), "environment"))
	}
	return nil
}

// askAnswers asks for the values in a on a terminal. It checks only their form; `bot doctor` tests them.
func askAnswers(ctx context.Context, in io.Reader, out io.Writer, a *config.Answers) error {
	lines := tty.ReadLines(in)
	fmt.Fprintln(out, "Enter accepts the answer in brackets; Ctrl-D quits without writing anything.")
	for _, q := range []struct {
		text   string
		answer *string
		good   func(string) bool
	}{
		{"The address of your Matrix homeserver, such as https://matrix.example.org. Empty = no Matrix for now", &a.Homeserver,
			func(s string) bool { return s == "" || config.IsAddress(s) }},
		{"The full Matrix id of the bot's own account, such as @reverie:example.org", &a.User, config.IsPerson},
		{"Your own full Matrix id, such as @me:example.org. You may do everything", &a.Owner,
			func(s string) bool { return config.IsPerson(s) && s != a.User }},
		{"The address of the language model server, such as http://127.0.0.1:11434/v1", &a.ModelURL,
			func(s string) bool { return s == discover.Rehearsal || config.IsAddress(s) }},
		{"The environment variable that holds the key of that server, such as LLM_KEY. Empty = no key", &a.KeyVariable,
			func(s string) bool { return s == "" || config.IsVariableName(s) }},
		{"The model, by its name on that server", &a.Model, func(s string) bool { return s != "" }},
		{"The time zone for reminders and dates, such as Europe/Berlin. Local = the zone of this machine", &a.Timezone, isZone},
	} {
		if a.Homeserver == "" && (q.answer == &a.User || q.answer == &a.Owner) {
			continue
		}
		for {
			if fmt.Fprintf(out, "\n%s", q.text); *q.answer != "" {
				fmt.Fprintf(out, " [%s]", *q.answer)
			}
			fmt.Fprint(out, ": ")
			var given tty.Line
			select {
			case given = <-lines:
			case <-ctx.Done():
				return errors.New("interrupted; nothing was written")
			}
			if given.Err != nil {
				return fmt.Errorf("no more answers; nothing was written: %w", given.Err)
			}
			if text := cmp.Or(given.Text, *q.answer); q.good(text) {
				*q.answer = text
				break
			}
			fmt.Fprintf(out, "  %q is not valid.\n", given.Text)
		}
	}
	return nil
}

func isZone(s string) bool {
	_, err := time.LoadLocation(s)
	return err == nil && s != ""
}

// nextSteps prints what to do after the file was written.
func nextSteps(out io.Writer, a config.Answers) {
	if a.KeyVariable != "" {
		fmt.Fprintf(out, "The key of the language model comes from the environment:  export %s=…\n", a.KeyVariable)
	}
	if a.Homeserver == "" {
		fmt.Fprintln(out, "`bot chat` starts a chat in this terminal. For Matrix, fill in matrix:; `bot doctor` checks everything.")
		return
	}
	fmt.Fprintf(out, "The password of %s comes from the environment:  export MATRIX_PASSWORD=…\n", a.User)
	fmt.Fprintln(out, "Then `bot doctor` checks everything, and `bot run` starts.")
}
