package calls

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/kaptinlin/jsonrepair"

	"reverie/internal/lazyregexp"
)

// The keys under which models write the parts of a call.
var (
	nameKeys = []string{"name", "tool", "tool_name", "function"}
	argKeys  = []string{"arguments", "args", "parameters", "input"}
)

// readValue parses the calls at the start of s. n is their length; 0 = none. tagged means that s is
// inside the tags of a chat template. Then unknown names count as calls, because the error names
// the offered tools.
func (r *Reader) readValue(s string, tagged, cut bool) (calls []Call, n int) {
	switch {
	case s[0] == '{', s[0] == '[':
		return r.readJSON(s, tagged, cut)
	case s[0] == '<':
		return r.readMarkup(s, tagged, cut)
	case tagged:
		return r.namedCall(s, cut)
	}
	return nil, 0
}

// namedHead matches a name before its arguments.
var namedHead = lazyregexp.New(`^([A-Za-z_][\w.-]*)(?:\[ARGS\]| with |\s)\s*\{`)

// namedCall parses a call whose name precedes its arguments.
func (r *Reader) namedCall(s string, cut bool) ([]Call, int) {
	m := namedHead().FindStringSubmatch(s)
	if m == nil {
		return nil, 0
	}
	t, ok := r.lookup(m[1])
	if !ok {
		return nil, 0
	}
	begin := len(m[0]) - 1
	for end := range candidateLengths(s[begin:]) {
		if arguments, ok := asObject(s[begin:begin+end], cut); ok {
			return r.singleCall(s[:begin+end], t.Name, arguments)
		}
	}
	if isIncompleteJSON(s[begin:], cut) {
		return truncatedCall(s, t.Name)
	}
	return nil, 0
}

// truncatedCall returns a truncated call. Its arguments are not JSON, so its tool reports an error.
func truncatedCall(s, name string) ([]Call, int) { return []Call{{Name: name, Arguments: s}}, len(s) }

// singleCall returns a single call, unless it is an example or a quotation.
func (r *Reader) singleCall(source, name, arguments string) ([]Call, int) {
	if placeholder().MatchString(arguments) || r.isQuotation(source) {
		return nil, 0
	}
	return []Call{{Name: name, Arguments: arguments}}, len(source)
}

// placeholder matches a placeholder in place of a value.
var placeholder = lazyregexp.New(`"\s*(?:\.\.\.|…|<[^<>"]{1,40}>)\s*"`)

// readJSON parses calls written as JSON, valid or broken.
func (r *Reader) readJSON(s string, tagged, cut bool) ([]Call, int) {
	for end := range candidateLengths(s) {
		text := s[:end]
		whole, ok := repairJSON(text, cut)
		if !ok {
			continue
		}
		calls, ok := r.callsIn(whole, tagged, 0)
		if !ok || len(calls) == 0 {
			continue
		}
		if slices.ContainsFunc(calls, func(c Call) bool { return placeholder().MatchString(c.Arguments) }) || r.isQuotation(text) {
			return nil, 0
		}
		return calls, end
	}
	m := nameInJSON().FindStringSubmatch(s)
	if m == nil || !tagged && !isIncompleteJSON(s, cut) {
		return nil, 0
	}
	if t, ok := r.lookup(m[1]); ok {
		return truncatedCall(s[:untilMark(s)], t.Name)
	}
	return nil, 0
}

// nameInJSON matches the name at the start of a call.
var nameInJSON = lazyregexp.New(`^[\[\s]*\{\s*["'](?:name|tool|function|tool_name)["']\s*:\s*["']([\w.-]+)["']` +
	`\s*,\s*["'](?:arguments|args|parameters|input)["']`)

// callsIn extracts calls from a JSON value. ok is false if any part of it is not a call.
func (r *Reader) callsIn(raw json.RawMessage, tagged bool, depth int) (calls []Call, ok bool) {
	var list []json.RawMessage
	if depth > 3 {
		return nil, false
	}
	if json.Unmarshal(raw, &list) == nil {
		for _, item := range list {
			more, ok := r.callsIn(item, tagged, depth+1)
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
			return r.callsIn(inner, tagged, depth+1)
		}
	}
	var name string
	_, named := firstKey(fields, nameKeys)
	key, arguments := firstKey(fields, argKeys)
	if json.Unmarshal(named, &name) != nil || name == "" || key == "" || isDefinition(fields, arguments) {
		return nil, false
	}
	t, offered := r.lookup(name)
	if offered {
		name = t.Name
	}
	return []Call{{Name: name, Arguments: asArguments(arguments)}}, offered || tagged
}

// isDefinition reports whether an object describes a tool instead of calling it.
func isDefinition(fields map[string]json.RawMessage, arguments json.RawMessage) bool {
	var schema struct{ Properties json.RawMessage }
	return fields["description"] != nil || json.Unmarshal(arguments, &schema) == nil && schema.Properties != nil
}

func firstKey(fields map[string]json.RawMessage, keys []string) (string, json.RawMessage) {
	for _, k := range keys {
		if v, ok := fields[k]; ok {
			return k, v
		}
	}
	return "", nil
}

// asArguments returns a JSON value as the text of arguments.
func asArguments(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

var (
	markupHead = lazyregexp.New(`^<function=["']?([\w.-]+)["']?\s*>`)
	markupPart = lazyregexp.New(`(?s)<parameter=["']?([\w.-]+)["']?>(.*?)(?:</parameter>|$)`)
	markupEnd  = lazyregexp.New(`</(?:function|tool_call)>`)
)

// readMarkup parses a call in tags: <function=NAME><parameter=KEY>…, or with JSON inside.
func (r *Reader) readMarkup(s string, tagged, cut bool) ([]Call, int) {
	m := markupHead().FindStringSubmatch(s)
	if m == nil {
		return nil, 0
	}
	name := m[1]
	if t, ok := r.lookup(name); ok {
		name = t.Name
	} else if !tagged {
		return nil, 0
	}
	body, after := s[len(m[0]):], len(s)
	if at := markupEnd().FindStringIndex(body); at != nil {
		body, after = body[:at[0]], len(m[0])+at[1]
	} else if cut {
		return truncatedCall(s, name)
	}
	body = strings.TrimSpace(body)
	if arguments, ok := asObject(body, false); ok && body != "" {
		return r.singleCall(s[:after], name, arguments)
	}
	fields := map[string]string{}
	for _, m := range markupPart().FindAllStringSubmatch(body, -1) {
		fields[m[1]] = strings.TrimSpace(m[2])
	}
	arguments, err := json.Marshal(fields)
	if err != nil || len(fields) == 0 && body != "" {
		return nil, 0
	}
	return r.singleCall(s[:after], name, string(arguments))
}

// scan visits the characters of s outside quotes, with their bracket depth. It stops when visit
// returns false. inText reports whether s ends inside quotes.
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

// jsonEnd returns the length of the bracketed value at the start of s. closed is false if it does
// not end.
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

// isIncompleteJSON reports whether s is incomplete: it ends inside quotes, or was cut with open brackets.
// Brackets missing otherwise are forgotten ones.
func isIncompleteJSON(s string, cut bool) bool {
	depth := 1
	inText := scan(s, func(_, d int) bool { depth = d; return d > 0 })
	return cut && depth > 0 || inText && !strings.ContainsAny(s[len(s)-1:], "}]\"'")
}

// candidateLengths yields possible lengths of the JSON value at the start of s: up to its closing bracket,
// or, with unbalanced quotes, up to the last bracket before a mark or the end.
func candidateLengths(s string) iter.Seq[int] {
	return func(yield func(int) bool) {
		n, closed := jsonEnd(s)
		if closed && !yield(n) {
			return
		}
		end := untilMark(s)
		last := strings.LastIndexAny(s[:end], "}]") + 1
		if last > 0 && last != n && strings.Trim(s[last:end], " \t\r\n\"'") == "" && !yield(last) {
			return
		}
		if !closed && !strings.Contains(s[last:end], "\n") {
			yield(end)
		}
	}
}

// untilMark returns the length of s before the next mark.
func untilMark(s string) int {
	if at := nextMark().FindStringIndex(s); at != nil {
		return at[0]
	}
	return len(s)
}

var nextMark = lazyregexp.New("(?i)</(?:tool_calls?|function)>|<\\|[a-z_]+\\|>|\n[ \t]*```")

// repairJSON returns text as valid JSON. Truncated text is not completed.
func repairJSON(text string, cut bool) (json.RawMessage, bool) {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), true
	}
	if len(text) > maxBrokenJSON || isIncompleteJSON(text, cut) {
		return nil, false
	}
	mended, err := jsonrepair.Repair(text)
	if err != nil || !json.Valid([]byte(mended)) {
		return nil, false
	}
	return json.RawMessage(mended), true
}

// asObject returns text as a JSON object. It unwraps fences and JSON strings, and repairs broken
// JSON.
func asObject(text string, cut bool) (string, bool) {
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\uFEFF"))
	if text == "" || text == "null" || text == "{}" {
		return "{}", true
	}
	if body, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSuffix(body, "```"), "json"))
	}
	for range 3 { // nested JSON strings
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
	whole, ok := repairJSON(text, cut)
	if !ok || whole[0] != '{' {
		return "", false
	}
	return string(whole), true
}

// Repair corrects a call: the name to that of an offered tool, the arguments to a JSON object, where
// that is unambiguous. Calls of other tools stay unchanged.
func (r *Reader) Repair(c Call, cut bool) Call {
	t, offered := r.lookup(c.Name)
	if !offered {
		return c
	}
	c.Name = t.Name
	arguments, ok := asObject(c.Arguments, cut)
	if !ok {
		return c
	}
	c.Arguments = arguments
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return c
	}
	key, inner := firstKey(fields, argKeys)
	if key == "" || t.hasProperty(key) {
		return c
	}
	for k := range fields {
		if k != key && !slices.Contains(nameKeys, k) {
			return c
		}
	}
	if wrapped, ok := asObject(asArguments(inner), cut); ok {
		c.Arguments = wrapped
	}
	return c
}
