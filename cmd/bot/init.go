package main

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"reverie/internal/matrix"
)

// initCommand writes a configuration to start from.
type initCommand struct{}

// answers is what a new configuration depends on.
type answers struct {
	Name, Timezone  string
	Homeserver      string // empty = the matrix: section is written commented out
	User, Owner     string
	ModelName       string
	ModelURL, Model string
	KeyVariable     string // environment variable with the model server's key; empty = it wants none
}

// defaultAnswers make a configuration that loads as it stands.
func defaultAnswers() answers {
	return answers{Name: "Reverie", Timezone: "Local", ModelName: "local", ModelURL: "http://127.0.0.1:11434/v1", Model: "qwen3:8b"}
}

// Run asks the few things that nobody can guess, if there is a terminal to ask
// on, and writes the file.
func (initCommand) Run(c console, path configPath) error {
	// Asked before any question, so that nobody answers in vain.
	if _, err := os.Lstat(string(path)); err == nil {
		return alreadyThere(string(path))
	}
	a := defaultAnswers()
	if isTerminal(c.in) {
		var err error
		if a, err = ask(c.in, c.out, a); err != nil {
			return err
		}
	}
	if err := writeConfig(string(path), a); err != nil {
		return err
	}
	return nextSteps(c.out, string(path), a)
}

func alreadyThere(path string) error {
	return fmt.Errorf("%s is there already and stays as it is; name another file with --config, or move this one away first", path)
}

//go:embed config.yaml.tmpl
var configTemplate string

// renderConfig returns the commented configuration for a.
func renderConfig(a answers) ([]byte, error) {
	t := template.New("config").Option("missingkey=error")
	t.Funcs(template.FuncMap{
		"quote": quoteYAML,
		"matrix": func(a answers) (string, error) {
			var b bytes.Buffer
			if err := t.ExecuteTemplate(&b, "matrix", a); err != nil {
				return "", err
			}
			if a.Homeserver != "" {
				return b.String(), nil
			}
			return commentOut(b.String()), nil
		},
	})
	if _, err := t.Parse(configTemplate); err != nil {
		return nil, fmt.Errorf("configuration template: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, a); err != nil {
		return nil, fmt.Errorf("configuration template: %w", err)
	}
	return b.Bytes(), nil
}

// quoteYAML writes s as a YAML scalar. A JSON string is one; plain words need no quotes.
func quoteYAML(s string) (string, error) {
	if plainYAML.MatchString(s) && !slices.Contains([]string{"null", "true", "false"}, strings.ToLower(s)) {
		return s, nil
	}
	b, err := json.Marshal(s)
	return string(b), err
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
	text, err := renderConfig(a)
	if err != nil {
		return err
	}
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

// question is one thing asked on the terminal.
type question struct {
	text    string
	answer  *string
	check   func(string) bool
	remedy  string
	skipped func() bool // nil = always asked
}

// maxTries ends a dialogue that goes nowhere.
const maxTries = 5

// ask asks on a terminal; an empty line takes the default in brackets.
func ask(in io.Reader, out io.Writer, a answers) (answers, error) {
	lines := bufio.NewScanner(in)
	noMatrix := func() bool { return a.Homeserver == "" }
	person := func(s string) bool { return strings.HasPrefix(s, "@") && matrix.CheckPattern(s) == nil }
	for _, q := range []question{
		{"Address of your Matrix homeserver, such as https://matrix.example.org (empty = no Matrix for now)", &a.Homeserver,
			func(s string) bool { return s == "" || webAddress(s) }, "a full address is needed, beginning with https://", nil},
		{"Matrix id of the bot's account, such as @reverie:example.org", &a.User, person, "a full id is needed, such as @reverie:example.org", noMatrix},
		{"Your own Matrix id, such as @me:example.org", &a.Owner, func(s string) bool { return person(s) && s != a.User },
			"your own full id is needed, such as @me:example.org, not the bot's", noMatrix},
		{"Address of the language model server", &a.ModelURL, func(s string) bool { return webAddress(s) || s == rehearsalURL },
			"a full address is needed, such as http://127.0.0.1:11434/v1", nil},
		{"Name of the model on that server", &a.Model, func(s string) bool { return s != "" }, "a name is needed, such as qwen3:8b", nil},
		{"Environment variable that holds the server's key (empty = it needs none)", &a.KeyVariable,
			func(s string) bool { return s == "" || variableName.MatchString(s) }, "write the variable's name, such as LLM_KEY, not the key", nil},
	} {
		if q.skipped != nil && q.skipped() {
			continue
		}
		if err := q.ask(lines, out); err != nil {
			return answers{}, err
		}
	}
	return a, nil
}

func (q question) ask(lines *bufio.Scanner, out io.Writer) error {
	for range maxTries {
		fmt.Fprint(out, q.text)
		if *q.answer != "" {
			fmt.Fprintf(out, " [%s]", *q.answer)
		}
		fmt.Fprint(out, ": ")
		if !lines.Scan() {
			return errors.Join(errors.New("no more answers; nothing was written"), lines.Err())
		}
		given := strings.TrimSpace(lines.Text())
		if given == "" {
			given = *q.answer
		}
		if q.check(given) {
			*q.answer = given
			return nil
		}
		fmt.Fprintf(out, "  %s\n", q.remedy)
	}
	return errors.New("no usable answer; nothing was written. `bot init < /dev/null` writes a file to edit by hand")
}

func webAddress(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}

// nextSteps says what to do with the file that was written.
func nextSteps(out io.Writer, path string, a answers) error {
	steps := []string{"Wrote " + path + "; every key in it is explained."}
	if a.KeyVariable != "" {
		steps = append(steps, "The key of the language model comes from the environment:  export "+a.KeyVariable+"=…")
	}
	if a.Homeserver != "" {
		steps = append(steps, "The password of "+a.User+" comes from the environment:  export MATRIX_PASSWORD=…",
			"Then `bot doctor` checks everything, and `bot run` starts.")
	} else {
		steps = append(steps, "`bot chat` talks here in the terminal. For Matrix, fill in the matrix: section; `bot doctor` checks everything.")
	}
	_, err := fmt.Fprintln(out, strings.Join(steps, "\n"))
	return err
}
