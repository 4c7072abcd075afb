package calls

import (
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// The keys under which models write the parts of a call.
var (
	nameKeys = []string{"name", "tool", "tool_name", "function"}
	argKeys  = []string{"arguments", "args", "parameters", "input"}
)

// value reads one value that holds calls from the beginning of s. n is its length; 0 = there is none.
// tagged says that it stands in the tags of a chat template; then any name will do, because the answer
// to an unknown one names the tools.
func (r *Reader) value(s string, tagged, cut bool) (calls []Call, n int) {
	switch {
	case s[0] == '{', s[0] == '[':
		return r.jsonValue(s, tagged, cut)
	case s[0] == '<':
		return r.markup(s, tagged, cut)
	case tagged:
		return r.named(s, cut)
	}
	return nil, 0
}

// namedHead is a name before its arguments.
var namedHead = regexp.MustCompile(`^([A-Za-z_][\w.-]*)(?:\[ARGS\]| with |\s)\s*\{`)

// named reads a call whose name stands before its arguments.
func (r *Reader) named(s string, cut bool) ([]Call, int) {
	m := namedHead.FindStringSubmatch(s)
	if m == nil {
		return nil, 0
	}
	t, ok := r.find(m[1])
	if !ok {
		return nil, 0
	}
	begin := len(m[0]) - 1
	for end := range extents(s[begin:]) {
		if arguments, ok := jsonObject(s[begin:begin+end], cut); ok {
			return r.one(s[:begin+end], t.name, arguments)
		}
	}
	if unfinished(s[begin:], cut) {
		return broken(s, t.name)
	}
	return nil, 0
}

// broken is a call that ends in the middle. Its arguments are no JSON, so that its tool asks for them again.
func broken(s, name string) ([]Call, int) { return []Call{{Name: name, Arguments: s}}, len(s) }

// one is a single call, unless it is only shown.
func (r *Reader) one(source, name, arguments string) ([]Call, int) {
	if example.MatchString(arguments) || r.quotes(source) {
		return nil, 0
	}
	return []Call{{Name: name, Arguments: arguments}}, len(source)
}

// example finds a value that only holds the place of one.
var example = regexp.MustCompile(`"\s*(?:\.\.\.|…|<[^<>"]{1,40}>)\s*"`)

// jsonValue reads calls that are written as JSON, also as broken JSON.
func (r *Reader) jsonValue(s string, tagged, cut bool) ([]Call, int) {
	for end := range extents(s) {
		text := s[:end]
		whole, ok := repaired(text, cut)
		if !ok {
			continue
		}
		calls, ok := r.shape(whole, tagged, 0)
		if !ok || len(calls) == 0 {
			continue
		}
		if slices.ContainsFunc(calls, func(c Call) bool { return example.MatchString(c.Arguments) }) || r.quotes(text) {
			return nil, 0
		}
		return calls, end
	}
	m := nameInJSON.FindStringSubmatch(s)
	if m == nil || !tagged && !unfinished(s, cut) {
		return nil, 0
	}
	if t, ok := r.find(m[1]); ok {
		return broken(s[:region(s)], t.name)
	}
	return nil, 0
}

// nameInJSON is the name in the beginning of a call.
var nameInJSON = regexp.MustCompile(`^[\[\s]*\{\s*["'](?:name|tool|function|tool_name)["']\s*:\s*["']([\w.-]+)["']` +
	`\s*,\s*["'](?:arguments|args|parameters|input)["']`)

// shape reads calls from a JSON value. ok is false when anything in it is none.
func (r *Reader) shape(raw json.RawMessage, tagged bool, depth int) (calls []Call, ok bool) {
	var list []json.RawMessage
	if depth > 3 {
		return nil, false
	}
	if json.Unmarshal(raw, &list) == nil {
		for _, item := range list {
			more, ok := r.shape(item, tagged, depth+1)
			if !ok {
				return nil, false
			}
			calls = append(calls, more...)
		}
		return calls, true
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return nil, false
	}
	for _, k := range []string{"tool_calls", "function"} { // as in the protocol
		if inner := fields[k]; len(inner) > 0 && (inner[0] == '{' || inner[0] == '[') {
			return r.shape(inner, tagged, depth+1)
		}
	}
	var name string
	_, named := first(fields, nameKeys)
	key, arguments := first(fields, argKeys)
	if json.Unmarshal(named, &name) != nil || name == "" || key == "" || defines(fields, arguments) {
		return nil, false
	}
	t, offered := r.find(name)
	if offered {
		name = t.name
	}
	return []Call{{Name: name, Arguments: asArguments(arguments)}}, offered || tagged
}

// defines reports whether an object describes a tool, and does not call it.
func defines(fields map[string]json.RawMessage, arguments json.RawMessage) bool {
	var schema struct{ Properties json.RawMessage }
	return fields["description"] != nil || json.Unmarshal(arguments, &schema) == nil && schema.Properties != nil
}

func first(fields map[string]json.RawMessage, keys []string) (string, json.RawMessage) {
	for _, k := range keys {
		if v, ok := fields[k]; ok {
			return k, v
		}
	}
	return "", nil
}

// asArguments is a JSON value as the text of arguments.
func asArguments(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

var (
	markupHead = regexp.MustCompile(`^<function=["']?([\w.-]+)["']?\s*>`)
	markupPart = regexp.MustCompile(`(?s)<parameter=["']?([\w.-]+)["']?>(.*?)(?:</parameter>|$)`)
	markupEnd  = regexp.MustCompile(`</(?:function|tool_call)>`)
)

// markup reads a call written with tags: <function=NAME><parameter=KEY>…, or with JSON in it.
func (r *Reader) markup(s string, tagged, cut bool) ([]Call, int) {
	m := markupHead.FindStringSubmatch(s)
	if m == nil {
		return nil, 0
	}
	name := m[1]
	if t, ok := r.find(name); ok {
		name = t.name
	} else if !tagged {
		return nil, 0
	}
	body, after := s[len(m[0]):], len(s)
	if at := markupEnd.FindStringIndex(body); at != nil {
		body, after = body[:at[0]], len(m[0])+at[1]
	} else if cut {
		return broken(s, name)
	}
	body = strings.TrimSpace(body)
	if arguments, ok := jsonObject(body, false); ok && body != "" {
		return r.one(s[:after], name, arguments)
	}
	fields := map[string]string{}
	for _, m := range markupPart.FindAllStringSubmatch(body, -1) {
		fields[m[1]] = strings.TrimSpace(m[2])
	}
	arguments, err := json.Marshal(fields)
	if err != nil || len(fields) == 0 && body != "" {
		return nil, 0
	}
	return r.one(s[:after], name, string(arguments))
}

// scan visits the characters of s that stand in no text in quotes, with the depth of the brackets
// around them, until visit returns false. inText tells that s ends in a text in quotes.
func scan(s string, visit func(at, depth int) bool) (inText bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == '\\':
			i++
			continue
		case quote != 0:
			if c == quote {
				quote = 0
			}
			continue
		case c == '"', c == '\'' && i > 0 && strings.IndexByte("{[(,:= \n", s[i-1]) >= 0:
			quote = c
			continue
		case c == '{' || c == '[' || c == '(':
			depth++
		case c == '}' || c == ']' || c == ')':
			depth--
		}
		if !visit(i, depth) {
			return false
		}
	}
	return quote != 0
}

// jsonEnd is the length of the value in brackets that s begins with. closed is false when it does not end.
func jsonEnd(s string) (n int, closed bool) {
	n = len(s)
	scan(s, func(at, depth int) bool {
		if depth == 0 {
			n, closed = at+1, true
		}
		return depth > 0
	})
	return n, closed
}

// unfinished reports whether more should follow: of a text, or of all that the output limit cut. Brackets
// that are missing otherwise are forgotten ones.
func unfinished(s string, cut bool) bool {
	depth := 1
	inText := scan(s, func(_, d int) bool { depth = d; return d > 0 })
	return cut && depth > 0 || inText && !strings.ContainsAny(s[len(s)-1:], "}]\"'")
}

// extents yields how long the JSON value may be that s begins with: up to the bracket that ends it, or, where
// its quotes are in disorder, up to the last bracket before a mark or the end of s.
func extents(s string) iter.Seq[int] {
	return func(yield func(int) bool) {
		n, closed := jsonEnd(s)
		if closed && !yield(n) {
			return
		}
		end := region(s)
		last := strings.LastIndexAny(s[:end], "}]") + 1
		if last > 0 && last != n && strings.Trim(s[last:end], " \t\r\n\"'") == "" && !yield(last) {
			return
		}
		if !closed && !strings.Contains(s[last:end], "\n") {
			yield(end)
		}
	}
}

// region is how much of s stands before the next mark.
func region(s string) int {
	if at := regionEnd.FindStringIndex(s); at != nil {
		return at[0]
	}
	return len(s)
}

var regionEnd = regexp.MustCompile("(?i)</(?:tool_calls?|function)>|<\\|[a-z_]+\\|>|\n[ \t]*```")

// repaired is text as valid JSON. What was cut is not completed.
func repaired(text string, cut bool) (json.RawMessage, bool) {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), true
	}
	if len(text) > mostBytes || unfinished(text, cut) {
		return nil, false
	}
	mended, err := jsonrepair.Repair(text)
	if err != nil || !json.Valid([]byte(mended)) {
		return nil, false
	}
	return json.RawMessage(mended), true
}

// jsonObject is text as a JSON object: also in a fence, in a JSON string, or broken.
func jsonObject(text string, cut bool) (string, bool) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\uFEFF"))
	if text == "" || text == "null" || text == "{}" {
		return "{}", true
	}
	if body, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSuffix(body, "```"), "json"))
	}
	for range 3 { // a string that holds it, and a string that holds that
		var inner string
		if json.Unmarshal([]byte(text), &inner) != nil {
			break
		}
		if text = strings.TrimSpace(inner); text == "" {
			return "{}", true
		}
	}
	if !strings.HasPrefix(text, "{") {
		return "", false
	}
	whole, ok := repaired(text, cut)
	if !ok || whole[0] != '{' {
		return "", false
	}
	return string(whole), true
}

// Mend makes the name of a call that of an offered tool, and its arguments a JSON object, where
// that leaves no doubt. Calls of other tools stay as they are.
func (r *Reader) Mend(c Call, cut bool) Call {
	t, offered := r.find(c.Name)
	if !offered {
		return c
	}
	c.Name = t.name
	arguments, ok := jsonObject(c.Arguments, cut)
	if !ok {
		return c
	}
	c.Arguments = arguments
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return c
	}
	key, inner := first(fields, argKeys)
	if key == "" || slices.Contains(t.properties, key) {
		return c
	}
	for k := range fields {
		if k != key && !slices.Contains(nameKeys, k) {
			return c
		}
	}
	if wrapped, ok := jsonObject(asArguments(inner), cut); ok {
		c.Arguments = wrapped
	}
	return c
}
