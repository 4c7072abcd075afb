package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"reverie/internal/lazyregexp"
	"reverie/internal/text"
)

// fault is an error in the file: its place, and what to write instead. Its text never contains a
// value, which may be a secret.
type fault struct {
	line int    // 1-based; 0 = unknown
	key  string // "llm.models[1].base_url"; empty for the file as a whole
	text string
}

// reader fills a Config from YAML nodes. It continues after a fault, so that all are reported.
type reader struct {
	env          func(string) (string, bool)
	lines        map[string]int // key path → line, for faults found after reading
	faults       []fault
	literal      bool     // a secret stands in the file itself
	unsetSecrets []string // secrets whose variable is not set
	removed      []string // keys of earlier versions

	needsModel bool
}

// addFault records a fault at key, on its line or that of the nearest section. Later faults of the
// same key or section are dropped as consequences.
func (r *reader) addFault(key, format string, args ...any) {
	line := 0
	for k := key; ; k = parentKey(k) {
		if slices.ContainsFunc(r.faults, func(f fault) bool { return f.key == k }) {
			return
		}
		if line = cmp.Or(line, r.lines[k]); k == "" {
			break
		}
	}
	r.faults = append(r.faults, fault{line, key, fmt.Sprintf(format, args...)})
}

// err returns all faults in order of lines, or nil.
func (r *reader) err(file string) error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var lines []string
	for _, f := range r.faults {
		at := []string{file}
		if f.line > 0 {
			at[0] += ":" + strconv.Itoa(f.line)
		}
		if f.key != "" {
			at = append(at, f.key)
		}
		lines = append(lines, strings.Join(append(at, f.text), ": "))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// parentKey returns the section that contains key.
func parentKey(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

func (r *reader) read(data []byte, c *Config) {
	var root, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&root)
	if errors.Is(err, io.EOF) || err == nil && root.Content[0].Tag == "!!null" {
		r.addFault("", "the file is empty; `bot init --config another.yaml` writes one to start from")
		return
	}
	if err == nil {
		if err = dec.Decode(&more); err == nil {
			r.lines[""] = more.Line
			r.addFault("", "a second document begins here; keep one, and no `---` between keys")
		}
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		r.addSyntaxFault(err)
	case root.Content[0].Kind != yaml.MappingNode:
		r.lines[""] = root.Content[0].Line
		r.addFault("", "this is not a list of keys; write lines such as `name: Reverie`")
	default:
		r.value("", root.Content[0], reflect.ValueOf(c).Elem())
	}
}

var yamlError = lazyregexp.New(`^yaml: (?:line (\d+): )?(.*)`)

// addSyntaxFault records a YAML error with its likely cause. The parser omits line 1, and the line
// of an unknown anchor, whose name may be a secret.
func (r *reader) addSyntaxFault(err error) {
	m := append(yamlError().FindStringSubmatch(err.Error()), "", "", "")
	line, _ := strconv.Atoi(m[1])
	what, _, _ := strings.Cut(m[2], " '")
	if what != "unknown anchor" {
		line = max(line, 1)
	}
	r.lines[""] = line
	r.addFault("", "not valid YAML: %s; a value that begins with @, *, ` or %% or has `: ` in it must stand in quotes, "+
		"lines are indented with spaces, not tabs, and every quote and bracket is closed", what)
}

var (
	secretType = reflect.TypeFor[Secret]()
	rolesType  = reflect.TypeFor[map[string][]string]()
	proseType  = reflect.TypeFor[literalText]()
)

// value sets v from n. Sections and lists are decoded here, because the yaml package reports no key
// path, stops at duplicate keys and drops bad entries.
func (r *reader) value(key string, n *yaml.Node, v reflect.Value) {
	t := v.Type()
	switch {
	case n.Kind == yaml.AliasNode:
		r.addFault(key, "YAML aliases are not used here; write the value out, or put a value that begins with * in quotes")
	case n.Style&yaml.TaggedStyle != 0:
		r.addFault(key, "YAML tags are not used here; put a value that begins with ! in quotes")
	case n.Tag == "!!null": // "matrix:" with all keys commented out: treated as absent
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		r.value(key, n, v.Elem())
	case n.Kind == yaml.MappingNode && (t.Kind() == reflect.Struct || t.Kind() == reflect.Map):
		r.readStruct(key, n, v)
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(t, len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			path := fmt.Sprintf("%s[%d]", key, i)
			if r.lines[path] = item.Line; item.Tag == "!!null" {
				r.addFault(path, "an empty entry; remove it")
			}
			r.value(path, item, v.Index(i))
		}
	case n.Kind == yaml.ScalarNode && t.Kind() == reflect.String && n.Tag != "!!bool":
		r.text(key, n, v)
	case t.Kind() == reflect.Struct:
		r.addFault(key, remedies[t.Kind()], keyNames(t)[0])
	case n.Kind != yaml.ScalarNode && t.Kind() != reflect.Slice && t.Kind() != reflect.Map:
		r.addFault(key, "expected a single value here, not a list or further keys")
	case t.Kind() == reflect.String || t.Kind() == reflect.Int && n.Tag != "!!int" || n.Decode(v.Addr().Interface()) != nil:
		r.addFault(key, "%s", remedies[t.Kind()])
	}
}

// remedies says what to write for a value of the wrong kind.
var remedies = map[reflect.Kind]string{
	reflect.Map:     "expected one line for each name below it, such as `chat: [local]` or `TOKEN: ${TOKEN}`",
	reflect.Struct:  "expected keys below it, such as `%s: …`",
	reflect.Slice:   "expected a list: put the value in [brackets], or one entry a line after a dash",
	reflect.Int64:   "write a time with its unit, such as 90s or 2m",
	reflect.Int:     "write a whole number, such as 2048",
	reflect.Bool:    "write true or false",
	reflect.Float32: "write a number, such as 0.7",
	reflect.String:  "expected text; put it in quotes if it is meant literally",
}

// readStruct sets v from the keys of n, and reports unknown keys. v is a struct or a map.
func (r *reader) readStruct(key string, n *yaml.Node, v reflect.Value) {
	names, seen := keyNames(v.Type()), map[string]int{}
	if v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		path := strings.TrimPrefix(key+"."+k.Value, ".")
		if k.Kind != yaml.ScalarNode {
			r.lines[key] = k.Line
			r.addFault(key, "a key must be a single word")
			continue
		}
		r.lines[path] = k.Line
		switch at := slices.Index(names, k.Value); {
		case seen[k.Value] > 0:
			r.addFault(path, "is a duplicate (first on line %d); keep one", seen[k.Value])
			continue
		case slices.Contains(removedKeys, path):
			r.removed = append(r.removed, fmt.Sprintf("%s is not used any more; delete it", path))
		case at < 0 && names != nil:
			r.addFault(path, "%s", unknownKey(k.Value, names))
		case v.Kind() == reflect.Struct:
			r.value(path, val, v.FieldByIndex(configFields(v.Type())[at].Index))
		case val.Tag != "!!null":
			item := reflect.New(v.Type().Elem()).Elem()
			r.value(path, val, item)
			v.SetMapIndex(reflect.ValueOf(k.Value), item)
		}
		seen[k.Value] = k.Line
	}
}

// removedKeys are keys of earlier versions. They have no effect, so that an old file still works.
var removedKeys = []string{"tasks.per_room"}

// configFields returns the fields of a config struct that have a key.
func configFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("yaml") == "" })
}

// keyNames returns the keys of a section of type t; nil = any.
func keyNames(t reflect.Type) (names []string) {
	switch {
	case t == rolesType:
		return roleNames
	case t.Kind() == reflect.Map:
		return nil
	}
	for _, f := range configFields(t) {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}

func unknownKey(key string, names []string) string {
	if near := text.Nearest(key, names); len(near) > 0 {
		return "unknown key; did you mean `" + near[0] + "`?"
	}
	return "unknown key; known here: " + strings.Join(names, ", ")
}

// literalText is multi-line text in which no variable is replaced.
type literalText string

// Secret is text that prints as "(hidden)" in every format, log and encoding. string(s) returns it.
type Secret string

const hidden = "(hidden)"

func (Secret) String() string               { return hidden }
func (Secret) Format(w fmt.State, _ rune)   { _, _ = io.WriteString(w, hidden) } // every verb, also %x and %d
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }       // JSON and YAML too
func (Secret) LogValue() slog.Value         { return slog.StringValue(hidden) }

var variable = lazyregexp.New(`\$?\$\{([^}]*)(\}?)`)
var variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// text sets v, a string, and replaces each ${NAME} by that environment variable; $${ is a literal
// ${. A secret whose variable is not set is empty, as most commands do not need it.
func (r *reader) text(key string, n *yaml.Node, v reflect.Value) {
	if v.Type() == proseType {
		v.SetString(n.Value)
		return
	}
	hidden, unset := v.Type() == secretType, len(r.unsetSecrets)
	text := variable().ReplaceAllStringFunc(n.Value, func(found string) string {
		m := variable().FindStringSubmatch(found)
		value, set := r.env(m[1])
		switch {
		case strings.HasPrefix(found, "$$"):
			return found[1:]
		case m[2] == "" || !variableName().MatchString(m[1]):
			r.addFault(key, "${ begins the name of an environment variable: write ${NAME}, or $${ for the two characters themselves")
		case !set && hidden:
			r.unsetSecrets = append(r.unsetSecrets, fmt.Sprintf("%s: the environment variable %s is not set", key, m[1]))
		case !set:
			r.addFault(key, "the environment variable %s is not set; set it, or write the value another way", m[1])
		}
		return value
	})
	if len(r.unsetSecrets) > unset {
		text = ""
	}
	r.literal = r.literal || hidden && text != "" && !strings.Contains(n.Value, "${")
	v.SetString(text)
}

// secretFile sets *s from file, if given. key is the key of the secret itself.
func (c *Config) secretFile(r *reader, dir, key string, s *Secret, file string) {
	if file == "" {
		return
	}
	if *s != "" {
		r.addFault(key+"_file", "the secret is given twice; keep either this or %s", key[strings.LastIndexByte(key, '.')+1:])
		return
	}
	file = Resolve(dir, file)
	data, err := os.ReadFile(file)
	if err != nil {
		r.addFault(key+"_file", "%v", err)
		return
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\n\x00") {
		r.addFault(key+"_file", "%s must hold the secret on one line and nothing else", file)
		return
	}
	*s = Secret(text)
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o004 != 0 {
		c.warn("%s_file: every user of this machine can read %s; chmod 600 %s", key, file, file)
	}
}

// Resolve makes a path absolute: relative to dir, with ~/ as the home folder.
func Resolve(dir, path string) string {
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
