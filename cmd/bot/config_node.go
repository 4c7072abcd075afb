package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"reverie/internal/session"
)

// fault is one thing wrong in a config file: where it is, and what to write
// instead. Its text never repeats a value, since any value may be a secret.
type fault struct {
	line int    // 1-based; 0 when no line can be named
	key  string // "llm.models[1].base_url"; empty for the file as a whole
	text string
}

// These keep the answer to a file that is something else entirely short.
const (
	maxFaultsShown = 40
	maxKeySize     = 64
)

// reader carries one config file from YAML nodes into a Config. It goes on
// after a fault, so that a person sees all of them at once.
type reader struct {
	env     func(string) (string, bool)
	lines   map[string]int // key path → line, for faults found after reading
	faults  []fault
	faulty  map[string]bool // their keys
	literal bool            // a secret stands in the file itself
	unset   []string        // secrets whose variable is not set

	needsModel bool
}

// fault notes one thing wrong at key. A key that already has a fault, or lies
// in a section that has one, gets no second: it would only be an echo.
func (r *reader) fault(key, format string, args ...any) {
	for k := key; k != ""; k = above(k) {
		if r.faulty[k] {
			return
		}
	}
	r.add(r.line(key), key, format, args...)
}

func (r *reader) add(line int, key, format string, args ...any) {
	if r.faulty == nil {
		r.faulty = map[string]bool{}
	}
	r.faulty[key] = true
	r.faults = append(r.faults, fault{line, key, fmt.Sprintf(format, args...)})
}

// err is every fault of the file, one a line and in the order of its lines; nil when there is none.
func (r *reader) err(file string) error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b fault) int { return cmp.Compare(a.line, b.line) })
	var lines []string
	for _, f := range r.faults[:min(len(r.faults), maxFaultsShown)] {
		at := []string{file}
		if f.line > 0 {
			at[0] += ":" + strconv.Itoa(f.line)
		}
		if f.key != "" {
			at = append(at, f.key)
		}
		lines = append(lines, strings.Join(append(at, f.text), ": "))
	}
	if more := len(r.faults) - maxFaultsShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// line finds the line of a key, or of the nearest section around it.
func (r *reader) line(key string) int {
	for ; key != ""; key = above(key) {
		if n, ok := r.lines[key]; ok {
			return n
		}
	}
	return 0
}

// above is the section around key.
func above(key string) string { return key[:max(strings.LastIndexAny(key, ".["), 0)] }

// read parses data and fills c from it.
func (r *reader) read(data []byte, c *Config) {
	var root, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&root)
	switch {
	case errors.Is(err, io.EOF), err == nil && root.Content[0].Tag == "!!null":
		r.add(0, "", "the file is empty; `bot init --config another.yaml` writes one to start from")
		return
	case err == nil && root.Content[0].Kind != yaml.MappingNode:
		r.add(root.Content[0].Line, "", "this is not a list of keys; write lines such as `name: Reverie`")
		return
	case err == nil:
		err = dec.Decode(&more)
	}
	switch {
	case err == nil:
		r.add(more.Line, "", "a second document begins here; keep one, and no `---` between keys")
	case errors.Is(err, io.EOF):
		r.value("", root.Content[0], reflect.ValueOf(c).Elem())
	default:
		r.syntax(err)
	}
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntax notes the parser's error with what is mostly behind it. The parser names no line if it is the first, and none
// for an unknown anchor, whose name may be a secret.
func (r *reader) syntax(err error) {
	m := append(yamlError.FindStringSubmatch(err.Error()), "", "", "")
	line, _ := strconv.Atoi(m[1])
	what, _, _ := strings.Cut(m[2], " '")
	if what != "unknown anchor" {
		line = max(line, 1)
	}
	r.add(line, "", "not valid YAML: %s; a value that begins with @, *, ` or %% or has `: ` in it must stand in quotes, "+
		"lines are indented with spaces, not tabs, and every quote and bracket is closed", what)
}

var (
	secretType = reflect.TypeFor[secret]()
	rolesType  = reflect.TypeFor[map[string][]string]()
	proseType  = reflect.TypeFor[prose]()
)

// value fills v from n. The yaml package decodes single values; sections and lists are
// read here: its decoder names no key path, stops at a repeated key and drops bad list entries.
func (r *reader) value(key string, n *yaml.Node, v reflect.Value) {
	t := v.Type()
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(n.Line, key, "YAML aliases are not used here; write the value out, or put a value that begins with * in quotes")
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n.Line, key, "YAML tags are not used here; put a value that begins with ! in quotes")
	case n.Tag == "!!null": // "matrix:" with everything below it commented out: as if it were not there
	case t.Kind() == reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
		r.value(key, n, v.Elem())
	case n.Kind == yaml.MappingNode && (t.Kind() == reflect.Struct || t == rolesType):
		r.keys(key, n, v)
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(t, len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			path := fmt.Sprintf("%s[%d]", key, i)
			if r.lines[path] = item.Line; item.Tag == "!!null" {
				r.add(item.Line, path, "an empty entry; remove it")
			}
			r.value(path, item, v.Index(i))
		}
	case n.Kind == yaml.ScalarNode && t.Kind() == reflect.String && n.Tag != "!!bool":
		r.text(key, n, v)
	case t.Kind() == reflect.Struct:
		r.add(n.Line, key, remedies[t.Kind()], keyNames(t)[0])
	case n.Kind != yaml.ScalarNode && t.Kind() != reflect.Slice && t != rolesType:
		r.add(n.Line, key, "expected a single value here, not a list or further keys")
	case t.Kind() == reflect.String || t.Kind() == reflect.Int && n.Tag != "!!int" || n.Decode(v.Addr().Interface()) != nil:
		r.add(n.Line, key, "%s", remedies[t.Kind()])
	}
}

// remedies say what to write where a value of another kind stands.
var remedies = map[reflect.Kind]string{
	reflect.Map:     "expected one line for each role below it, such as `chat: [local]`",
	reflect.Struct:  "expected keys below it, such as `%s: …`",
	reflect.Slice:   "expected a list: put the value in [brackets], or one entry a line after a dash",
	reflect.Int64:   "write a time with its unit, such as 90s or 2m",
	reflect.Int:     "write a whole number, such as 2048",
	reflect.Bool:    "write true or false",
	reflect.Float32: "write a number, such as 0.7",
	reflect.String:  "expected text; put it in quotes if it is meant literally",
}

// keys fills v, a struct or the map of roles, from the keys of n, and faults those that it does not have.
func (r *reader) keys(key string, n *yaml.Node, v reflect.Value) {
	names, seen := keyNames(v.Type()), map[string]int{}
	if v.Kind() == reflect.Map {
		v.Set(reflect.MakeMap(rolesType))
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		path := strings.TrimPrefix(key+"."+k.Value, ".")
		first := seen[k.Value]
		switch at := slices.Index(names, k.Value); {
		case k.Kind != yaml.ScalarNode || len(k.Value) > maxKeySize || strings.ContainsFunc(k.Value, unicode.IsControl):
			r.add(k.Line, key, "a key must be a single word")
			continue
		case first > 0:
			r.add(k.Line, path, "stands here a second time (first on line %d); keep one", first)
		case at < 0:
			r.add(k.Line, path, "%s", unknownKey(k.Value, names))
		case v.Kind() == reflect.Struct:
			r.lines[path] = k.Line
			r.value(path, val, v.FieldByIndex(configFields(v.Type())[at].Index))
		case val.Tag != "!!null":
			r.lines[path] = k.Line
			list := reflect.New(rolesType.Elem()).Elem()
			r.value(path, val, list)
			v.SetMapIndex(reflect.ValueOf(k.Value), list)
		}
		if first == 0 {
			seen[k.Value] = k.Line
		}
	}
}

// configFields lists the fields of a config struct that may stand in the file.
func configFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("yaml") == "" })
}

// keyNames lists the keys that a section of type t may have.
func keyNames(t reflect.Type) (names []string) {
	if t == rolesType {
		return roleNames
	}
	for _, f := range configFields(t) {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}

// unknownKey says what to do about a key that is none of names.
func unknownKey(key string, names []string) string {
	if key == "<<" {
		return "YAML merge keys are not used here; write the keys out"
	}
	if near := session.Nearest(key, names); len(near) > 0 {
		return "unknown key; did you mean `" + near[0] + "`?"
	}
	return "unknown key; known here: " + strings.Join(names, ", ")
}
