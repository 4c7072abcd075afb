package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"reverie/internal/store"
	"reverie/internal/text"
)

// field is one argument of a tool, read from a struct field's tags:
//
//	json  its name
//	doc   its description for the model; none = accepted, but not offered
//	brief its description for the smallest windows; "-" = left out there
//	enum  the only values, separated by commas
//	must  enum and required
//	rule  required; verbatim (white space alone counts as a text); min=N, max=N
//
// The Go type is string ("" = not given), int (0 = not given), *bool, a list of strings, or
// json.RawMessage for any JSON object.
type field struct {
	name, doc string
	brief     string // "" = as doc
	enum      []string
	required  bool
	verbatim  bool
	min, max  int // 0 = any
	object    bool
	kind      reflect.Kind
	index     int
}

// fieldsOf reads the arguments of a tool from its struct. It panics on a mistake in the tags; the
// catalog is built at start, so every test finds it.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		f := field{name: sf.Tag.Get("json"), doc: sf.Tag.Get("doc"), brief: sf.Tag.Get("brief"), kind: sf.Type.Kind(), index: i}
		if !slices.Contains(argumentTypes, sf.Type) {
			panic("tool: " + t.Name() + "." + sf.Name + ": arguments are string, int, *bool, []string or json.RawMessage")
		}
		f.object = sf.Type == reflect.TypeFor[json.RawMessage]()
		must := sf.Tag.Get("must")
		if enum := cmp.Or(must, sf.Tag.Get("enum")); enum != "" {
			f.enum, f.required = strings.Split(enum, ","), must != ""
		}
		for rule := range strings.SplitSeq(sf.Tag.Get("rule"), ",") {
			key, value, _ := strings.Cut(rule, "=")
			n, err := strconv.Atoi(value)
			switch {
			case rule == "required":
				f.required = true
			case rule == "verbatim":
				f.verbatim = true
			case key == "min" && err == nil:
				f.min = n
			case key == "max" && err == nil:
				f.max = n
			case rule != "":
				panic("tool: " + t.Name() + "." + sf.Name + ": unknown rule " + rule)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

var argumentTypes = []reflect.Type{reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[*bool](), reflect.TypeFor[[]string](),
	reflect.TypeFor[json.RawMessage]()}

type property struct {
	Type        string    `json:"type"`
	Items       *property `json:"items,omitempty"`
	Enum        []string  `json:"enum,omitempty"`
	Minimum     int       `json:"minimum,omitempty"`
	Maximum     int       `json:"maximum,omitempty"`
	Description string    `json:"description,omitempty"`
}

// schemaOf returns the JSON schema of an object with fields. Its bytes are stable, so that local
// servers reuse the cached prompt. closed adds additionalProperties: false.
func schemaOf(fields []field, closed bool) json.RawMessage {
	var properties, required []string
	for _, f := range fields {
		if f.doc == "" {
			continue
		}
		p := property{Enum: f.enum, Minimum: f.min, Maximum: f.max, Description: f.doc}
		switch {
		case f.object:
			p.Type = "object"
		case f.kind == reflect.String:
			p.Type = "string"
		case f.kind == reflect.Int:
			p.Type = "integer"
		case f.kind == reflect.Pointer:
			p.Type = "boolean"
		case f.kind == reflect.Slice:
			p.Type, p.Items = "array", &property{Type: "string"}
		}
		properties = append(properties, fmt.Sprintf("%s:%s", quoted(f.name), quoted(p)))
		if f.required {
			required = append(required, f.name)
		}
	}
	schema := `{"type":"object","properties":{` + strings.Join(properties, ",") + `}`
	if required != nil {
		schema += `,"required":` + string(quoted(required))
	}
	if closed {
		schema += `,"additionalProperties":false`
	}
	return json.RawMessage(schema + `}`)
}

// briefFields returns the fields offered in the smallest windows.
func briefFields(fields []field) (shown []field) {
	for _, f := range fields {
		if f.brief == "-" {
			continue
		}
		f.doc = cmp.Or(f.brief, f.doc)
		shown = append(shown, f)
	}
	return shown
}

func quoted(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("tool: schema: " + err.Error()) // strings and lists of them always encode
	}
	return b
}

// faults lists everything wrong with the arguments of a call, one sentence each.
type faults []string

func (f faults) Error() string { return strings.Join(f, "; ") }

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f faults) refuse(e entry) refusal {
	var b strings.Builder
	b.WriteString(e.name + " was not run. Change this and call it again:\n")
	for _, text := range f {
		b.WriteString("- " + text + "\n")
	}
	b.WriteString("A valid example: " + e.example)
	return refusal(b.String())
}

// decode fills the struct dst from a model's arguments, and returns everything wrong with them. It
// accepts unambiguous slips: no arguments at all as "" or null, null or "" for an omitted one, "5"
// or 5.0 for 5, "true" for true, one string for a list, Add for add, taskId for task_id.
func decode(raw string, fields []field, dst reflect.Value) (found faults) {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal([]byte(cmp.Or(strings.TrimSpace(raw), "null")), &sent); err != nil {
		return faults{explainJSON(err)}
	}
	values := map[string]json.RawMessage{}
	var unknown faults
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		at := slices.IndexFunc(fields, func(f field) bool { return foldName(f.name) == foldName(name) })
		if at < 0 {
			unknown.add("%s: there is no such argument; remove it. There are: %s", clip(name), cmp.Or(fieldNames(fields), "none"))
			continue
		}
		values[fields[at].name] = sent[name]
	}
	for _, f := range fields {
		v, fault := dst.Field(f.index), ""
		if value := values[f.name]; value != nil {
			fault = f.set(value, v)
		}
		switch {
		case fault != "":
			found.add("%s: %s", f.name, fault)
		case f.required && v.IsZero():
			found.add("%s: is missing; send %s", f.name, f.describeValid())
		}
	}
	return append(found, unknown...)
}

// foldName normalizes a name's spelling: taskId, task-id.
func foldName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// encode returns the decoded arguments as a JSON object with typed values.
func encode(fields []field, src reflect.Value) string {
	sent := map[string]any{}
	for _, f := range fields {
		if v := src.Field(f.index); !v.IsZero() {
			sent[f.name] = v.Interface()
		}
	}
	return string(quoted(sent))
}

// equal reports whether object has the values of compact and no duplicate keys. compact has no
// white space.
func equal(object, compact string) bool {
	var x, y map[string]any
	var b bytes.Buffer
	return json.Compact(&b, []byte(object)) == nil && b.Len() == len(compact) &&
		json.Unmarshal([]byte(object), &x) == nil && json.Unmarshal([]byte(compact), &y) == nil && reflect.DeepEqual(x, y)
}

func fieldNames(fields []field) string {
	return strings.Join(store.Map(fields, func(f field) string { return f.name }), ", ")
}

func explainJSON(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return "the arguments must be one JSON object in braces, not a JSON " + kind.Value
	case err.Error() == "unexpected end of JSON input":
		return "the arguments end in the middle, as if they had been cut off; send all of them again, and keep them short"
	}
	return fmt.Sprintf("the arguments are not valid JSON (%v); send one JSON object", err)
}

// set stores one value in v. It returns the fault, or "".
func (f field) set(raw json.RawMessage, v reflect.Value) string {
	var text string
	isText := json.Unmarshal(raw, &text) == nil
	if !isText {
		text = string(raw)
	}
	word := strings.ToLower(strings.TrimSpace(text))
	switch {
	case word == "" && !(f.verbatim && isText): // also null
		return ""
	case f.object:
		var sent map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &sent) == nil {
			v.SetBytes([]byte(text))
			return ""
		}
	case f.enum != nil && slices.Contains(f.enum, word):
		v.SetString(word)
		return ""
	case f.enum != nil && isText:
		return clip(text) + " is not possible; send " + f.describeValid()
	case f.kind == reflect.String && isText:
		v.SetString(text)
		return ""
	case f.kind == reflect.Pointer && (word == "true" || word == "false"):
		yes := word == "true"
		v.Set(reflect.ValueOf(&yes))
		return ""
	case f.kind == reflect.Slice && (isText || raw[0] == '['):
		if list, ok := listOf(text); ok {
			v.Set(reflect.ValueOf(list))
			return ""
		}
	case f.kind == reflect.Int:
		n, err := strconv.ParseFloat(word, 64)
		if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
			break
		}
		if n != 0 && (n < float64(f.min) || f.max != 0 && n > float64(f.max)) {
			return "is out of range; send " + f.describeValid()
		}
		v.SetInt(int64(n))
		return ""
	}
	return "is " + jsonKind(raw) + "; send " + f.describeValid()
}

// listOf parses a list of strings: JSON, or separated by commas. It drops empty ones.
func listOf(text string) (list []string, ok bool) {
	parts := strings.Split(text, ",")
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		parts = nil
		if json.Unmarshal([]byte(text), &parts) != nil {
			return nil, false
		}
	}
	for _, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			list = append(list, part)
		}
	}
	return list, true
}

func (f field) describeValid() string {
	switch {
	case f.enum != nil:
		return "one of " + strings.Join(f.enum, ", ")
	case f.kind == reflect.Pointer:
		return "true or false"
	case f.object:
		return "a JSON object"
	case f.kind == reflect.String:
		return `text in "quotes"`
	case f.kind == reflect.Slice:
		return `a list of texts, such as ["one", "two"]`
	case f.max != 0:
		return fmt.Sprintf("a whole number from %d to %d", f.min, f.max)
	case f.min != 0:
		return fmt.Sprintf("a whole number of at least %d", f.min)
	}
	return "a whole number"
}

// jsonKind describes a JSON value, without repeating a long one.
func jsonKind(raw []byte) string {
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "the text " + clip(strings.Trim(string(raw), `"`))
	case 't', 'f':
		return "true or false"
	}
	return "the number " + clip(string(raw))
}

// clip quotes a model's text, shortened.
func clip(s string) string {
	return strconv.Quote(strings.ToValidUTF8(text.Clip(s, 40), "\uFFFD"))
}

// sentNames lists the names of the arguments that were sent. Their order is that of the struct.
func sentNames(args any) []string {
	v := reflect.ValueOf(args)
	var names []string
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Tag.Get("json"))
		}
	}
	return names
}
