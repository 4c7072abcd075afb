package tool

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// field is one argument of a tool, read from a struct field's tags:
//
//	json  its name
//	doc   what the model is told about it; none = it is taken, but not offered
//	brief what it is told instead where the window is smallest; "-" = nothing of the argument
//	enum  the only values, separated by commas
//	rule  required; min=N, max=N; unset0 (0 means: not given)
//
// The Go type is string (empty = not given), int (0 = not given), *bool, or a list
// of strings.
type field struct {
	name, doc string
	brief     string // "" = as doc
	enum      []string
	required  bool
	unset0    bool
	min, max  int
	kind      reflect.Kind
	index     int
}

// fieldsOf reads the arguments of a tool from its struct. It panics over a
// mistake in the tags: the catalog is built at start, so every test sees it.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		sf := t.Field(i)
		f := field{name: sf.Tag.Get("json"), doc: sf.Tag.Get("doc"), brief: sf.Tag.Get("brief"), kind: sf.Type.Kind(), index: i, min: math.MinInt, max: math.MaxInt}
		if sf.Type != reflect.TypeFor[string]() && sf.Type != reflect.TypeFor[int]() && sf.Type != reflect.TypeFor[*bool]() && sf.Type != reflect.TypeFor[[]string]() {
			panic("tool: " + t.Name() + "." + sf.Name + ": arguments are string, int, *bool or []string")
		}
		if enum := sf.Tag.Get("enum"); enum != "" {
			f.enum = strings.Split(enum, ",")
		}
		for rule := range strings.SplitSeq(sf.Tag.Get("rule"), ",") {
			key, value, _ := strings.Cut(rule, "=")
			n, err := strconv.Atoi(value)
			switch {
			case key == "":
			case key == "required":
				f.required = true
			case key == "unset0":
				f.unset0 = true
			case key == "min" && err == nil:
				f.min = n
			case key == "max" && err == nil:
				f.max = n
			default:
				panic("tool: " + t.Name() + "." + sf.Name + ": unknown rule " + rule)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// schemaOf writes the JSON schema of an object with fields, in their order:
// the same bytes every time, or local servers would compute the prompt anew.
// closed says in it that there are no others.
func schemaOf(fields []field, closed bool) json.RawMessage {
	var b bytes.Buffer
	var required []string
	b.WriteString(`{"type":"object","properties":{`)
	for i, f := range slices.DeleteFunc(slices.Clone(fields), func(f field) bool { return f.doc == "" }) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(f.name))
		b.WriteString(`:{"type":"` + map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Pointer: "boolean", reflect.Slice: "array"}[f.kind] + `"`)
		if f.kind == reflect.Slice {
			b.WriteString(`,"items":{"type":"string"}`)
		}
		if f.enum != nil {
			b.WriteString(`,"enum":`)
			b.Write(quoted(f.enum))
		}
		if f.min != math.MinInt {
			fmt.Fprintf(&b, `,"minimum":%d`, f.min)
		}
		if f.max != math.MaxInt {
			fmt.Fprintf(&b, `,"maximum":%d`, f.max)
		}
		b.WriteString(`,"description":`)
		b.Write(quoted(f.doc))
		b.WriteByte('}')
		if f.required {
			required = append(required, f.name)
		}
	}
	b.WriteByte('}')
	if required != nil {
		b.WriteString(`,"required":`)
		b.Write(quoted(required))
	}
	if closed {
		b.WriteString(`,"additionalProperties":false`)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// briefly are the fields as they are shown where the window is smallest.
func briefly(fields []field) (shown []field) {
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
		panic("tool: schema: " + err.Error()) // strings and lists of them always marshal
	}
	return b
}

// faults is everything wrong with the arguments of one call, a sentence each.
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

// decode fills the struct dst from what a model wrote, and returns everything
// wrong with it. Slips that leave no doubt are accepted: no arguments at all as
// "" or null, null or "" for something left out, "5" or 5.0 for 5, "true" for
// true, one text for a list of it, Add for add, taskId for task_id.
func decode(raw string, fields []field, dst reflect.Value) faults {
	names, values, err := members(raw)
	if err != nil {
		return faults{err.Error()}
	}
	var found faults
	seen := map[string]bool{}
	for i, name := range names {
		at := slices.IndexFunc(fields, func(f field) bool { return folded(f.name) == folded(name) })
		if at >= 0 {
			name = fields[at].name
		}
		switch {
		case at < 0:
			found.add("%s: there is no such argument; remove it. There are: %s", clip(name), fieldNames(fields))
		case seen[name]:
			found.add("%s: is there twice; send it once", name)
		default:
			if fault := fields[at].set(values[i], dst.Field(fields[at].index)); fault != "" {
				found.add("%s: %s", name, fault)
			}
		}
		seen[name] = true
	}
	for _, f := range fields {
		if f.required && dst.Field(f.index).IsZero() && !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, f.name+": ") }) {
			found.add("%s: is missing; send %s", f.name, f.wanted())
		}
	}
	return found
}

// folded is a name without what models write differently in it: taskId, task-id.
func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

// encode is what decode read, as a JSON object with each value in its type.
func encode(fields []field, src reflect.Value) string {
	sent := map[string]any{}
	for _, f := range fields {
		if v := src.Field(f.index); !v.IsZero() {
			sent[f.name] = v.Interface()
		}
	}
	return string(quoted(sent))
}

// equal reports whether two JSON objects say the same.
func equal(a, b string) bool {
	var x, y map[string]any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func fieldNames(fields []field) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// members takes the JSON object in raw apart, in the order it was written.
func members(raw string) (names []string, values []json.RawMessage, err error) {
	raw = strings.TrimSpace(raw)
	if raw == "" || raw == "null" {
		return nil, nil, nil
	}
	dec := json.NewDecoder(strings.NewReader(raw))
	if start, err := dec.Token(); err != nil {
		return nil, nil, explainJSON(err)
	} else if start != json.Delim('{') {
		return nil, nil, fmt.Errorf("the arguments must be one JSON object in braces, not %s", kindOf([]byte(raw)))
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, nil, explainJSON(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, nil, explainJSON(err)
		}
		names, values = append(names, name.(string)), append(values, value) // the decoder lets only strings be keys
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, explainJSON(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("something follows after the JSON object; send one object only, and call the tool once for each thing")
	}
	return names, values, nil
}

func explainJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the arguments end in the middle, as if they had been cut off; send all of them again, and keep them short")
	}
	return fmt.Errorf("the arguments are not valid JSON (%v); send one JSON object", err)
}

// set puts one value into v. It returns what is wrong with it, or "".
func (f field) set(raw json.RawMessage, v reflect.Value) string {
	if string(raw) == "null" || f.kind != reflect.String && string(raw) == `""` {
		return ""
	}
	var text string
	isText := json.Unmarshal(raw, &text) == nil && raw[0] == '"'
	switch f.kind {
	case reflect.String:
		if !isText {
			return "is " + kindOf(raw) + "; send " + f.wanted()
		}
		return f.setText(text, v)
	case reflect.Slice:
		return f.setList(text, isText, raw, v)
	case reflect.Int:
		number := string(raw)
		if isText {
			number = strings.TrimSpace(text)
		}
		return f.setNumber(number, raw, v)
	default:
		if !isText {
			text = string(raw)
		}
		yes, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(text)))
		if err != nil || len(strings.TrimSpace(text)) < len("true") { // ParseBool also knows 1 and t
			return "is " + kindOf(raw) + "; send " + f.wanted()
		}
		v.Set(reflect.ValueOf(&yes))
		return ""
	}
}

func (f field) setText(text string, v reflect.Value) string {
	if f.enum == nil {
		if strings.TrimSpace(text) != "" {
			v.SetString(text)
		}
		return ""
	}
	word := strings.ToLower(strings.TrimSpace(text))
	if word != "" && !slices.Contains(f.enum, word) {
		return clip(text) + " is not possible; send " + f.wanted()
	}
	v.SetString(word)
	return ""
}

// setList takes a list, also one inside a text, or with commas between its parts.
func (f field) setList(text string, isText bool, raw json.RawMessage, v reflect.Value) string {
	list := []string{}
	if isText && !strings.HasPrefix(strings.TrimSpace(text), "[") {
		list = strings.Split(text, ",")
	} else if isText {
		raw = json.RawMessage(text)
	}
	if len(list) == 0 && json.Unmarshal(raw, &list) != nil {
		return "is " + kindOf(raw) + "; send " + f.wanted()
	}
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	if list = slices.DeleteFunc(list, func(s string) bool { return s == "" }); len(list) > 0 {
		v.Set(reflect.ValueOf(list))
	}
	return ""
}

func (f field) setNumber(number string, raw json.RawMessage, v reflect.Value) string {
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > 1<<53 {
		return "is " + kindOf(raw) + "; send " + f.wanted()
	}
	if n == 0 && f.unset0 {
		return ""
	}
	if n < float64(f.min) || n > float64(f.max) {
		return "is out of range; send " + f.wanted()
	}
	v.SetInt(int64(n))
	return ""
}

// wanted says what a good value is.
func (f field) wanted() string {
	switch {
	case f.enum != nil:
		return "one of " + strings.Join(f.enum, ", ")
	case f.kind == reflect.Pointer:
		return "true or false"
	case f.kind == reflect.String:
		return `text in "quotes"`
	case f.kind == reflect.Slice:
		return `a list of texts, such as ["one", "two"]`
	case f.min != math.MinInt && f.max != math.MaxInt:
		return fmt.Sprintf("a whole number from %d to %d", f.min, f.max)
	case f.min != math.MinInt:
		return fmt.Sprintf("a whole number of at least %d", f.min)
	}
	return "a whole number"
}

// kindOf says what a JSON value is, without repeating a long one.
func kindOf(raw []byte) string {
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

// clip quotes what a model sent, shortened, so that it can be named in an answer.
func clip(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) > most {
		s = s[:runeIndex(s, most)] + "…"
	}
	return strconv.Quote(strings.ToValidUTF8(s, "\uFFFD"))
}

// given lists the arguments in a struct of them that were sent, by name, in the
// order of the struct.
func given(args any) []string {
	v := reflect.ValueOf(args)
	var names []string
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Tag.Get("json"))
		}
	}
	return names
}
