package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// prose is text of several lines that is taken as it stands: no variable in it is
// replaced.
type prose string

// secret is text that nobody may see by accident: however it is printed,
// logged or marshalled, "(hidden)" comes out. string(s) is the only way in.
type secret string

const hidden = "(hidden)"

func (secret) String() string               { return hidden }
func (secret) Format(w fmt.State, _ rune)   { _, _ = io.WriteString(w, hidden) } // every verb, also %x and %d
func (secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }       // JSON and YAML too
func (secret) LogValue() slog.Value         { return slog.StringValue(hidden) }

// text fills v, a string, and puts the environment's variables into it.
func (r *reader) text(key string, n *yaml.Node, v reflect.Value) {
	control, remedy := unicode.IsControl, "contains a line break or another control character; write it on one line"
	text, ok := n.Value, true
	if v.Type() == proseType {
		control = func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }
		remedy = "contains a control character; write plain text"
	} else if text, ok = r.expand(key, n, v.Type() == secretType); !ok {
		return
	}
	if strings.ContainsFunc(text, control) {
		r.add(n.Line, key, "%s", remedy)
		return
	}
	r.literal = r.literal || v.Type() == secretType && text != "" && !strings.Contains(n.Value, "${")
	v.SetString(text)
}

var variable = regexp.MustCompile(`\$?\$\{([^}]*)(\}?)`)
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces every ${NAME} by that environment variable; $${ stands for a literal ${.
// A secret whose variable is not set is empty: most commands do not need it.
func (r *reader) expand(key string, n *yaml.Node, hidden bool) (text string, ok bool) {
	faults, unset := len(r.faults), len(r.unset)
	text = variable.ReplaceAllStringFunc(n.Value, func(found string) string {
		m := variable.FindStringSubmatch(found)
		value, set := r.env(m[1])
		switch {
		case strings.HasPrefix(found, "$$"):
			return found[1:]
		case m[2] == "" || !variableName.MatchString(m[1]):
			r.add(n.Line, key, "${ begins the name of an environment variable: write ${NAME}, or $${ for the two characters themselves")
		case !set && hidden:
			r.unset = append(r.unset, fmt.Sprintf("%s: the environment variable %s is not set", key, m[1]))
		case !set:
			r.add(n.Line, key, "the environment variable %s is not set; set it, or write the value another way", m[1])
		}
		return value
	})
	if len(r.unset) > unset {
		text = ""
	}
	return text, len(r.faults) == faults
}

// secretFile fills *s from file, if one is given. key is that of the secret itself.
func (c *Config) secretFile(r *reader, dir, key string, s *secret, file string) {
	if file == "" {
		return
	}
	if *s != "" {
		r.fault(key+"_file", "the secret is given twice; keep either this or %s", key[strings.LastIndexByte(key, '.')+1:])
		return
	}
	file = resolve(dir, file)
	data, err := readSmall(file, maxSecretSize)
	if err != nil {
		r.fault(key+"_file", "%v", err)
		return
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00") {
		r.fault(key+"_file", "%s must hold the secret on one line and nothing else", file)
		return
	}
	*s = secret(text)
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
		c.warn("%s_file: every user of this machine can read %s; chmod 600 %s", key, file, file)
	}
}

// readSmall reads a file, but no more than limit bytes of it.
func readSmall(path string, limit int64) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.Mode()&(os.ModeDir|os.ModeDevice) != 0 { // a pipe is fine: <(command) in a shell
		return nil, fmt.Errorf("%s is a folder or a device, not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes; this cannot be the right file", path, limit)
	}
	return data, err
}

// resolve makes a path from the file absolute: relative to dir, ~/ being the home folder.
func resolve(dir, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
