package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"reverie/internal/llm/discover"
	"reverie/internal/matrix/gate"
	"reverie/internal/tty"
)

// initCommand writes a configuration to start from.
type initCommand struct{}

// answers is what a new configuration depends on.
type answers struct {
	Timezone        string
	Homeserver      string // empty = the matrix: section is written commented out
	User, Owner     string
	PasswordFile    bool // the account's password stands in a file beside the configuration
	ModelURL, Model string
	KeyVariable     string // environment variable with the model server's key; empty = it wants none
}

// defaultAnswers make a configuration that loads as it stands.
func defaultAnswers() answers {
	return answers{Timezone: "Local", ModelURL: "http://127.0.0.1:11434/v1", Model: "qwen3:8b"}
}

// Run asks what nobody can guess, if there is a terminal to ask on, and writes the file.
func (initCommand) Run(ctx context.Context, c console, path filePath) error {
	// Found out before any question, so that nobody answers in vain.
	if _, err := os.Lstat(string(path)); err == nil {
		return alreadyThere(string(path))
	}
	if err := os.MkdirAll(filepath.Dir(string(path)), 0o700); err != nil {
		return fmt.Errorf("%s cannot be written: %w; name another file with --config", path, err)
	}
	a := defaultAnswers()
	if tty.IsTerminal(c.in) {
		if found, err := discover.Detect(ctx, os.Getenv); err == nil && found.URL != discover.Rehearsal {
			a.ModelURL, a.Model = found.URL, found.Model
		}
		if err := ask(ctx, c.in, c.out, &a); err != nil {
			return err
		}
	}
	if err := writeConfig(string(path), a); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "Wrote %s; every key in it is explained.\n", path)
	nextSteps(c.out, a)
	return nil
}

// ask asks on a terminal for what the defaults in a do not say. It looks only at the form of an
// answer: `bot doctor` looks whether it is right.
func ask(ctx context.Context, in io.Reader, out io.Writer, a *answers) error {
	lines := tty.ReadLines(in)
	fmt.Fprintln(out, "Enter takes the answer in brackets, Ctrl-D ends and writes nothing.")
	for _, q := range []struct {
		text   string
		answer *string
		good   func(string) bool
	}{
		{"The address of your Matrix homeserver, such as https://matrix.example.org. Empty = no Matrix for now", &a.Homeserver,
			func(s string) bool { return s == "" || webAddress(s) }},
		{"The full Matrix id of the bot's own account, such as @reverie:example.org", &a.User, isPerson},
		{"Your own full Matrix id, such as @me:example.org. You may do everything", &a.Owner,
			func(s string) bool { return isPerson(s) && s != a.User }},
		{"The address of the language model server, such as http://127.0.0.1:11434/v1", &a.ModelURL,
			func(s string) bool { return s == discover.Rehearsal || webAddress(s) }},
		{"The environment variable that holds the key of that server, such as LLM_KEY. Empty = it needs none", &a.KeyVariable,
			func(s string) bool { return s == "" || variableName.MatchString(s) }},
		{"The model, by its name on that server", &a.Model, func(s string) bool { return s != "" }},
		{"The time zone for reminders and dates, such as Europe/Berlin. Local = as this machine is set", &a.Timezone, isZone},
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
			fmt.Fprintf(out, "  %q will not do.\n", given.Text)
		}
	}
	return nil
}

func isPerson(s string) bool { return strings.HasPrefix(s, "@") && gate.CheckPattern(s) == nil }

func webAddress(s string) bool { return checkURL(new(reader), "", s, "") != nil }

func isZone(s string) bool {
	_, err := time.LoadLocation(s)
	return err == nil && s != ""
}

func alreadyThere(path string) error {
	return fmt.Errorf("%s is there already and stays as it is; name another file with --config, or move this one away first", path)
}

//go:embed config.yaml.tmpl
var configTemplate string

//go:embed config_matrix.yaml.tmpl
var matrixTemplate string

// renderConfig returns the commented configuration for a. What a lacks is written commented out.
func renderConfig(a answers) []byte {
	unless := func(holds bool) string {
		if holds {
			return ""
		}
		return "# "
	}
	matrix := strings.NewReplacer(
		"{{homeserver}}", quoteYAML(cmp.Or(a.Homeserver, "https://matrix.example.org")),
		"{{user}}", quoteYAML(cmp.Or(a.User, "@reverie:example.org")),
		"{{owner}}", quoteYAML(cmp.Or(a.Owner, "@me:example.org")),
		"{{#password}}", unless(!a.PasswordFile),
		"{{#password_file}}", unless(a.PasswordFile),
	).Replace(matrixTemplate)
	if a.Homeserver == "" {
		matrix = commentOut(matrix)
	}
	key := "# api_key: ${LLM_KEY}"
	if a.KeyVariable != "" {
		key = "api_key: ${" + a.KeyVariable + "}"
	}
	return []byte(strings.NewReplacer(
		"{{matrix}}", matrix, "{{api_key}}", key,
		"{{timezone}}", quoteYAML(a.Timezone), "{{model_url}}", quoteYAML(a.ModelURL), "{{model}}", quoteYAML(a.Model),
	).Replace(configTemplate))
}

// quoteYAML writes s as a YAML scalar, which a JSON string is.
func quoteYAML(s string) string {
	b, _ := json.Marshal(s) // of a string: never fails
	return string(b)
}

func commentOut(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = "# " + l
		}
	}
	return strings.Join(lines, "")
}

// writeConfig writes the configuration for a to path (0600). It never overwrites: whatever is there stays.
func writeConfig(path string, a answers) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // EXCL: refuses links as well
	if errors.Is(err, fs.ErrExist) {
		return alreadyThere(path)
	}
	if err == nil {
		_, err = f.Write(renderConfig(a))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// nextSteps says what to do with the file that was written.
func nextSteps(out io.Writer, a answers) {
	if a.KeyVariable != "" {
		fmt.Fprintf(out, "The key of the language model comes from the environment:  export %s=…\n", a.KeyVariable)
	}
	if a.Homeserver == "" {
		fmt.Fprintln(out, "`bot chat` talks here in the terminal. For Matrix, fill in the matrix: section; `bot doctor` checks everything.")
		return
	}
	fmt.Fprintf(out, "The password of %s comes from the environment:  export MATRIX_PASSWORD=…\nThen `bot doctor` checks everything, and `bot run` starts.\n", a.User)
}
