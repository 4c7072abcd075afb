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
	"regexp"
	"slices"
	"strings"
	"time"

	"reverie/internal/matrix"
)

// initCommand writes a configuration to start from.
type initCommand struct{}

// answers is what a new configuration depends on.
type answers struct {
	Timezone        string
	Homeserver      string // empty = the matrix: section is written commented out
	User, Owner     string
	Token           bool // the account logs in with an access token, not a password
	PasswordFile    bool // … or its password stands in a file beside the configuration
	ModelURL, Model string
	KeyVariable     string // environment variable with the model server's key; empty = it wants none
}

// defaultAnswers make a configuration that loads as it stands.
func defaultAnswers() answers {
	return answers{Timezone: "Local", ModelURL: "http://127.0.0.1:11434/v1", Model: "qwen3:8b"}
}

// Run asks what nobody can guess, if there is a terminal to ask on, and writes the file.
// With the password it also logs the bot in, so that `bot run` needs none.
func (initCommand) Run(ctx context.Context, c console, path filePath) error {
	// Found out before any question, so that nobody answers in vain.
	if _, err := os.Lstat(string(path)); err == nil {
		return alreadyThere(string(path))
	}
	if err := tryFolder(string(path)); err != nil {
		return fmt.Errorf("%s cannot be written: %w; name another file with --config", path, err)
	}
	folder := filepath.Dir(string(path))
	_, err := os.Stat(folder)
	newFolder := errors.Is(err, fs.ErrNotExist)
	n := &newConfig{answers: defaultAnswers()}
	if isTerminal(c.in) {
		agree := "writes " + string(path)
		if newFolder {
			agree += " in a new folder"
		}
		n.Timezone = systemZone(os.Getenv("TZ"), "/")
		if n, err = ask(ctx, c.in, c.out, n.answers, agree, nil); err != nil {
			return err
		}
	}
	if err := writeConfig(string(path), n.answers); err != nil {
		return err
	}
	if newFolder {
		fmt.Fprintf(c.out, "Made the folder %s.\n", folder)
	}
	fmt.Fprintf(c.out, "Wrote %s; every key in it is explained.\n", path)
	loggedIn := n.password != ""
	if loggedIn {
		if err := firstLogin(ctx, c, path, n.password); err != nil {
			fmt.Fprintf(c.out, "%s is not logged in yet: %v\n", n.User, err)
			loggedIn = false
		}
	}
	return nextSteps(c.out, string(path), n.answers, loggedIn)
}

// firstLogin logs the bot in as the first `bot run` does, with a password that stands in no file.
func firstLogin(ctx context.Context, c console, path filePath, password string) error {
	cfg, err := loadConfig(string(path), true)
	if err != nil {
		return err
	}
	cfg.Matrix.Password = secret(password)
	fmt.Fprintf(c.out, "Logging %s in …\n", cfg.Matrix.User)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	b, err := openBot(ctx, cfg, newLogger(c.err, LogConfig{Level: "warn"}), true)
	if err != nil {
		return err
	}
	defer b.close()
	_, err = matrix.Open(ctx, b.matrixConfig())
	return err
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
		"{{#password}}", unless(!a.Token && !a.PasswordFile),
		"{{#password_file}}", unless(a.PasswordFile),
		"{{#access_token}}", unless(a.Token),
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

// quoteYAML writes s as a YAML scalar. A JSON string is one; plain words need no quotes.
func quoteYAML(s string) string {
	if plainYAML.MatchString(s) && !slices.Contains([]string{"null", "true", "false"}, strings.ToLower(s)) {
		return s
	}
	b, _ := json.Marshal(s) // of a string: never fails
	return string(b)
}

var plainYAML = regexp.MustCompile(`^[A-Za-z][A-Za-z/_-]*$`)

func commentOut(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			lines[i] = "# " + l
		}
	}
	return strings.Join(lines, "")
}

// writeConfig writes the configuration for a to path (0600, folder 0700). It
// never overwrites: whatever is there stays.
func writeConfig(path string, a answers) (err error) {
	text := renderConfig(a)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // EXCL: refuses links as well
	if errors.Is(err, fs.ErrExist) {
		return alreadyThere(path)
	}
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		// Half a file would stand in the way of the next try.
		return fmt.Errorf("write configuration: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// nextSteps says what to do with the file that was written.
func nextSteps(out io.Writer, path string, a answers, loggedIn bool) error {
	var steps []string
	if a.KeyVariable != "" {
		steps = append(steps, "The key of the language model comes from the environment:  export "+a.KeyVariable+"=…")
	}
	switch {
	case a.Homeserver == "":
		steps = append(steps, "`bot chat` talks here in the terminal. For Matrix, fill in the matrix: section; "+
			"`bot doctor` checks everything.")
	case loggedIn:
		steps = append(steps, a.User+" is logged in, and needs no password any more.",
			"Copy "+filepath.Join(filepath.Dir(path), "data/matrix/recovery.key")+
				" to a safe place: with it the bot's encryption identity can be restored.")
	case a.Token:
		steps = append(steps, "The access token of "+a.User+" comes from the environment:  export MATRIX_TOKEN=…")
	default:
		steps = append(steps, "The password of "+a.User+" comes from the environment:  export MATRIX_PASSWORD=…")
	}
	if a.Homeserver != "" {
		steps = append(steps, "Then `bot doctor` checks everything, and `bot run` starts.")
	}
	_, err := fmt.Fprintln(out, strings.Join(steps, "\n"))
	return err
}
