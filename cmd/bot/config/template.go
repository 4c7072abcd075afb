package config

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reverie/internal/lazyregexp"
	"reverie/internal/store"
	"strings"
)

// Answers holds the values of a new configuration.
type Answers struct {
	Data, Timezone  string
	Homeserver      string // empty = the matrix: section is commented out
	User, Owner     string
	PasswordFile    bool // the password is in a file beside the configuration
	ModelURL, Model string
	KeyVariable     string // environment variable of the model server's key; empty = none
}

// DefaultAnswers returns values for a valid configuration.
func DefaultAnswers() Answers {
	return Answers{Data: "./data", Timezone: "Local", ModelURL: "http://127.0.0.1:11434/v1", Model: "qwen3:8b"}
}

// ErrExists is the error for an existing configuration file.
func ErrExists(path string) error {
	return fmt.Errorf("%s is there already and stays as it is; name another file with --config, or move this one away first", path)
}

//go:embed config.yaml.tmpl
var configTemplate string

//go:embed config_matrix.yaml.tmpl
var matrixTemplate string

// textLine matches a line that is not blank.
var textLine = lazyregexp.New(`(?m)^.*\S.*$`)

// Render returns the commented configuration for a. Missing values are commented out.
func Render(a Answers) []byte {
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
		matrix = textLine().ReplaceAllString(matrix, "# $0")
	}
	key := "# api_key: ${LLM_KEY}"
	if a.KeyVariable != "" {
		key = "api_key: ${" + a.KeyVariable + "}"
	}
	return []byte(strings.NewReplacer(
		"{{matrix}}", matrix, "{{api_key}}", key,
		"{{data}}", quoteYAML(a.Data),
		"{{timezone}}", quoteYAML(a.Timezone), "{{model_url}}", quoteYAML(a.ModelURL), "{{model}}", quoteYAML(a.Model),
	).Replace(configTemplate))
}

// quoteYAML returns s as a YAML scalar; JSON strings are valid ones.
func quoteYAML(s string) string {
	b, _ := json.Marshal(s) // cannot fail
	return string(b)
}

// Write creates the configuration for a at path (mode 0600). It never overwrites a file.
func Write(path string, a Answers) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // O_EXCL also refuses links
	if errors.Is(err, fs.ErrExist) {
		return ErrExists(path)
	}
	if err == nil {
		_, err = f.Write(Render(a))
		err = errors.Join(err, f.Close())
	}
	return store.Wrap(err, "write configuration")
}
