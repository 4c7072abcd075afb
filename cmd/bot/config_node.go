package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"
)

// fault is one thing wrong in a config file: where it is, and what to write
// instead. Its text never repeats a value, since any value may be a secret.
type fault struct {
	line int    // 1-based; 0 when no line can be named
	key  string // "llm.models[1].base_url"; empty for the file as a whole
	text string
}

// configError is every fault of one config file, in the order of its lines.
type configError struct {
	file   string
	faults []fault
}

// maxFaultsShown keeps the answer to a file that is something else entirely readable.
const maxFaultsShown = 40

func (e *configError) Error() string {
	var b strings.Builder
	for i, f := range e.faults {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == maxFaultsShown {
			fmt.Fprintf(&b, "and %d more", len(e.faults)-i)
			break
		}
		b.WriteString(e.file)
		if f.line > 0 {
			fmt.Fprintf(&b, ":%d", f.line)
		}
		b.WriteString(": ")
		if f.key != "" {
			b.WriteString(f.key + ": ")
		}
		b.WriteString(f.text)
	}
	return b.String()
}

// reader carries one config file from YAML nodes into a Config. It goes on
// after a fault, so that a person sees all of them at once.
type reader struct {
	env     func(string) (string, bool)
	lines   map[string]int // key path → line, for faults found after reading
	faults  []fault
	literal bool     // a secret stands in the file itself
	unset   []string // secrets whose variable is not set
	models  bool     // there must be one
}

// fault notes one thing wrong at key. A key that already has a fault, or lies
// in a section that has one, gets no second: it would only be an echo.
func (r *reader) fault(key, format string, args ...any) {
	for _, f := range r.faults {
		if f.key == key || f.key != "" && strings.HasPrefix(key, f.key) && strings.ContainsAny(key[len(f.key):len(f.key)+1], ".[") {
			return
		}
	}
	r.add(r.line(key), key, format, args...)
}

func (r *reader) add(line int, key, format string, args ...any) {
	r.faults = append(r.faults, fault{line, key, fmt.Sprintf(format, args...)})
}

// line finds the line of a key, or of the nearest section around it.
func (r *reader) line(key string) int {
	for key != "" {
		if n, ok := r.lines[key]; ok {
			return n
		}
		key = key[:max(strings.LastIndexAny(key, ".["), 0)]
	}
	return 0
}

// read parses data and fills c from it.
func (r *reader) read(data []byte, c *Config) {
	root, err := parseYAML(data)
	if err != nil {
		line, text := explainYAML(err, data)
		r.add(line, "", "%s", text)
		return
	}
	if root == nil {
		r.add(0, "", "the file is empty; `bot init --config another.yaml` writes one to start from")
		return
	}
	if root.Kind != yaml.MappingNode {
		r.add(root.Line, "", "this is not a list of keys; write lines such as `name: Reverie`")
		return
	}
	r.mapping("", root, reflect.ValueOf(c).Elem())
}

const secondDocument = "a second document begins here"

// parseYAML returns the only document of data, nil when there is none.
func parseYAML(data []byte) (root *yaml.Node, err error) {
	// The parser reports its own errors by panic and could let one of another kind escape.
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, errors.New("yaml: the file cannot be understood")
		}
	}()
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := dec.Decode(&more); err == nil {
		return nil, fmt.Errorf("yaml: line %d: %s; keep one, and no `---` between keys", more.Line, secondDocument)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, nil
	}
	return doc.Content[0], nil
}

var (
	yamlLine  = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	starValue = regexp.MustCompile(`(?m)(^|[\s\[,:-])\*`)
	yamlHints = [][2]string{
		{"cannot start any token", "a value that begins with @, ` or % must stand in quotes, and lines are indented with spaces, not tabs"},
		{"mapping values are not allowed", "check the indentation; a value with `: ` in it must stand in quotes"},
		{"did not find expected", "check the indentation, and that every quote and bracket is closed"},
		{"could not find expected ':'", "every key needs a colon after it"},
		{"escape character", "use 'single quotes' around a value with a backslash"},
	}
)

// explainYAML turns the parser's error into a line and a sentence with a remedy.
func explainYAML(err error, data []byte) (line int, text string) {
	m := yamlLine.FindStringSubmatch(strings.SplitN(err.Error(), "\n", 2)[0])
	if m == nil {
		return 0, "not valid YAML"
	}
	line, _ = strconv.Atoi(m[1])
	if strings.HasPrefix(m[2], "unknown anchor") { // the parser's own words would repeat the value
		if at := starValue.FindIndex(data); at != nil {
			line = 1 + bytes.Count(data[:at[1]], []byte("\n"))
		}
		return line, "a value that begins with * must stand in quotes, such as \"*:example.org\""
	}
	if strings.HasPrefix(m[2], secondDocument) {
		return line, m[2]
	}
	text = "not valid YAML: " + m[2]
	for _, h := range yamlHints {
		if strings.Contains(m[2], h[0]) {
			return max(line, 1), text + "; " + h[1] // the parser names no line when it is the first
		}
	}
	return line, text
}

// mapping fills the struct v from the keys of n.
func (r *reader) mapping(key string, n *yaml.Node, v reflect.Value) {
	fields := configFields(v.Type())
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Tag.Get("yaml")
	}
	r.keys(key, n, names, func(path string, at int, val *yaml.Node) {
		r.value(path, val, v.FieldByIndex(fields[at].Index))
	})
}

// roles fills the map v: one list for each role.
func (r *reader) roles(key string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		r.add(n.Line, key, "expected one line for each role below it, such as `chat: [local]`")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	r.keys(key, n, roleNames, func(path string, at int, val *yaml.Node) {
		if val.Tag == "!!null" {
			return
		}
		list := reflect.New(v.Type().Elem()).Elem()
		r.value(path, val, list)
		v.SetMapIndex(reflect.ValueOf(roleNames[at]), list)
	})
}

// keys hands every key of n that stands in names to set, and faults the others.
func (r *reader) keys(key string, n *yaml.Node, names []string, set func(path string, at int, val *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			r.add(k.Line, key, "a key must be a single word")
			continue
		}
		path := k.Value
		if key != "" {
			path = key + "." + k.Value
		}
		if first, twice := seen[k.Value]; twice {
			r.add(k.Line, path, "stands here a second time (first on line %d); keep one", first)
			continue
		}
		seen[k.Value] = k.Line
		at := slices.Index(names, k.Value)
		if at < 0 {
			r.add(k.Line, path, "%s", unknownKey(key, k.Value, names))
			continue
		}
		r.lines[path] = k.Line
		set(path, at, n.Content[i+1])
	}
}

// value fills v from n according to v's type.
func (r *reader) value(key string, n *yaml.Node, v reflect.Value) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(n.Line, key, "YAML aliases are not used here; write the value out, or put a value that begins with * in quotes")
		return
	case n.Style&yaml.TaggedStyle != 0:
		r.add(n.Line, key, "YAML tags are not used here; put a value that begins with ! in quotes")
		return
	case n.Tag == "!!null": // "matrix:" with everything below it commented out: as if it were not there
		return
	}
	switch {
	case v.Kind() == reflect.Pointer:
		fresh := reflect.New(v.Type().Elem())
		r.value(key, n, fresh.Elem())
		v.Set(fresh)
	case v.Kind() == reflect.Struct:
		if n.Kind != yaml.MappingNode {
			r.add(n.Line, key, "expected keys below it, such as `%s: …`", configFields(v.Type())[0].Tag.Get("yaml"))
			return
		}
		r.mapping(key, n, v)
	case v.Kind() == reflect.Slice:
		r.list(key, n, v)
	case v.Type() == rolesType:
		r.roles(key, n, v)
	default:
		r.scalar(key, n, v)
	}
}

func (r *reader) list(key string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		r.add(n.Line, key, "expected a list: put the value in [brackets], or one entry a line after a dash")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		r.lines[path] = item.Line
		if item.Tag == "!!null" {
			r.add(item.Line, path, "an empty entry; remove it")
			continue
		}
		r.value(path, item, v.Index(i))
	}
}

var (
	secretType   = reflect.TypeFor[secret]()
	durationType = reflect.TypeFor[time.Duration]()
	rolesType    = reflect.TypeFor[map[string][]string]()
	proseType    = reflect.TypeFor[prose]()
)

func (r *reader) scalar(key string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.ScalarNode {
		r.add(n.Line, key, "expected a single value here, not a list or further keys")
		return
	}
	if v.Type() == proseType {
		if strings.ContainsFunc(n.Value, func(c rune) bool { return c != '\n' && c != '\t' && unicode.IsControl(c) }) {
			r.add(n.Line, key, "contains a control character; write plain text")
			return
		}
		v.SetString(n.Value)
		return
	}
	if v.Kind() == reflect.String {
		if text, ok := r.text(key, n, v.Type() == secretType); ok {
			v.SetString(text)
		}
		return
	}
	remedy := ""
	switch {
	case v.Type() == durationType:
		remedy = "write a time with its unit, such as 90s or 2m"
		if d, err := time.ParseDuration(n.Value); err == nil {
			v.SetInt(int64(d))
			return
		}
	case v.Kind() == reflect.Int:
		remedy = "write a whole number, such as 2048"
		if i, err := strconv.Atoi(n.Value); err == nil && n.Tag == "!!int" {
			v.SetInt(int64(i))
			return
		}
	case v.Kind() == reflect.Bool:
		remedy = "write true or false"
		if n.Tag == "!!bool" {
			v.SetBool(strings.EqualFold(n.Value, "true"))
			return
		}
	case v.Kind() == reflect.Float32:
		remedy = "write a number, such as 0.7"
		if f, err := strconv.ParseFloat(n.Value, 32); err == nil && (n.Tag == "!!int" || n.Tag == "!!float") {
			v.SetFloat(f)
			return
		}
	default:
		panic("config: no reader for " + v.Type().String()) // a test walks every field
	}
	r.add(n.Line, key, "%s", remedy)
}

// text reads a text value and puts the environment's variables into it.
func (r *reader) text(key string, n *yaml.Node, hidden bool) (string, bool) {
	if n.Tag == "!!bool" {
		r.add(n.Line, key, "expected text; put it in quotes if it is meant literally")
		return "", false
	}
	text, ok := r.expand(key, n, hidden)
	if !ok {
		return "", false
	}
	if strings.ContainsFunc(text, unicode.IsControl) {
		r.add(n.Line, key, "contains a line break or another control character; write it on one line")
		return "", false
	}
	if hidden && text != "" && !strings.Contains(n.Value, "${") {
		r.literal = true
	}
	return text, true
}

var variable = regexp.MustCompile(`\$?\$\{([^}]*)(\}?)`)
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand replaces every ${NAME} by that environment variable; $${ stands for a literal ${.
// A secret whose variable is not set is empty: most commands do not need it.
func (r *reader) expand(key string, n *yaml.Node, hidden bool) (string, bool) {
	ok, unset := true, false
	text := variable.ReplaceAllStringFunc(n.Value, func(found string) string {
		m := variable.FindStringSubmatch(found)
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		if m[2] == "" || !variableName.MatchString(m[1]) {
			ok = false
			r.add(n.Line, key, "${ begins the name of an environment variable: write ${NAME}, or $${ for the two characters themselves")
			return ""
		}
		value, set := r.env(m[1])
		switch {
		case !set && hidden:
			unset = true
			r.unset = append(r.unset, fmt.Sprintf("%s: the environment variable %s is not set", key, m[1]))
		case !set:
			ok = false
			r.add(n.Line, key, "the environment variable %s is not set; set it, or write the value another way", m[1])
		}
		return value
	})
	if unset {
		return "", ok
	}
	return text, ok
}

// configFields lists the fields of a config struct that may stand in the file.
func configFields(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Tag.Get("yaml") == "" })
}

// laterSections are in the design but not in this release.
var laterSections = []string{"tasks", "tools", "mcp", "skills"}

// otherNames are what the same thing is called elsewhere.
var otherNames = map[string]string{
	"homeserver_url": "homeserver", "user_id": "user", "username": "user", "token": "access_token", "device": "device_name",
	"owner": "owners", "admins": "owners", "allowed_users": "allow", "allowlist": "allow",
	"url": "base_url", "api_base": "base_url", "key": "api_key", "context_size": "window", "context": "window",
	"max_tokens": "max_output", "max_output_tokens": "max_output", "inference_backends": "llm", "logging": "log", "lang": "language",
}

// unknownKey says what to do about a key that section does not have.
func unknownKey(section, key string, names []string) string {
	if section == "" && slices.Contains(laterSections, key) {
		return "this section is not in this release yet; remove it"
	}
	if key == "<<" {
		return "YAML merge keys are not used here; write the keys out"
	}
	if near := nearest(key, names); near != "" {
		return "unknown key; did you mean `" + near + "`?"
	}
	if other := otherNames[strings.ToLower(key)]; slices.Contains(names, other) {
		return "unknown key; here it is called `" + other + "`"
	}
	if home := homeOf(key); home != "" && section == "" {
		return "unknown key; it belongs below `" + home + ":`"
	}
	return "unknown key; known here: " + strings.Join(names, ", ")
}

// homeOf names the section that has key, empty when none or several do.
func homeOf(key string) string {
	home := ""
	for _, f := range configFields(reflect.TypeFor[Config]()) {
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			continue
		}
		for _, inner := range configFields(t) {
			if inner.Tag.Get("yaml") == key {
				if home != "" {
					return ""
				}
				home = f.Tag.Get("yaml")
			}
		}
	}
	return home
}

// nearest returns the name closest to word, empty when none is close.
func nearest(word string, names []string) string {
	best, least := "", 1+min(2, len(word)/3)
	for _, name := range names {
		if d := distance(strings.ToLower(strings.ReplaceAll(word, "-", "_")), name); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is the number of single-byte edits between a and b.
func distance(a, b string) int {
	if len(a) > 64 { // a key nobody mistyped
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
