package calls

import (
	"encoding/json"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kaptinlin/jsonrepair"
)

// The keys under which models write the parts of a call.
var (
	nameKeys  = []string{"name", "tool", "tool_name", "function", "function_name", "action", "recipient_name"}
	argKeys   = []string{"arguments", "args", "parameters", "params", "input", "tool_input", "action_input", "kwargs"}
	listKeys  = []string{"tool_calls", "calls", "function_call", "tool_call"}
	otherKeys = []string{"id", "type", "thought", "call_id"} // of a call without its arguments in an object of their own
)

// value reads one value that holds calls from the beginning of s. n is its length; 0 = there is none.
// tagged says that it stands in the tags of a chat template; then any name will do, because the answer
// to an unknown one names the tools.
func (r *Reader) value(s string, tagged, cut bool) (calls []Call, n int) {
	switch {
	case s[0] == '{', s[0] == '[' && !r.called(strings.TrimLeft(s[1:], " \t\n")):
		return r.jsonValue(s, tagged, cut)
	case s[0] == '[':
		calls, n = r.value(strings.TrimLeft(s[1:], " \t\n"), tagged, cut)
		if n > 0 {
			n += len(s) - len(strings.TrimLeft(s[1:], " \t\n"))
		}
		return calls, n
	case s[0] == '<':
		return r.markup(s, tagged, cut)
	}
	if m := actionLines.FindStringSubmatch(s); m != nil {
		return r.named(s, m[1], len(m[0]), cut)
	}
	name := toolName.FindString(s)
	t, ok := r.find(name)
	if !ok {
		return nil, 0
	}
	if pythonArgs.MatchString(s[len(name):]) && strings.HasSuffix(strings.TrimSuffix(name, ".call"), t.name) {
		return r.python(s, len(name), t, tagged, cut)
	}
	begin := len(name) + len(namedGap.FindString(s[len(name):]))
	if strings.HasPrefix(s[begin:], "<arg_key>") {
		return r.markupOf(s, t.name, begin, cut)
	}
	calls, n = r.named(s, name, begin, cut)
	if n > 0 && !tagged && !t.takes(calls[0].Arguments) { // "task" begins many lines
		return nil, 0
	}
	return calls, n
}

// pythonArgs is how arguments begin that are written as in Python.
var pythonArgs = regexp.MustCompile(`^\(\s*(?:\)|\{|["']|[A-Za-z_]\w*\s*=)`)

// python reads a call that is written as in Python, with its name before begin.
func (r *Reader) python(s string, begin int, t known, tagged, cut bool) ([]Call, int) {
	n, closed := jsonEnd(s[begin:])
	if !closed {
		return broken(s, t.name)
	}
	arguments, ok := jsonObject(t.literals(s[begin+1:begin+n-1]), cut)
	if !ok || !tagged && !t.takes(arguments) {
		return nil, 0
	}
	return r.one(s[:begin+n], t.name, arguments)
}

// takes reports whether a text is an object with the arguments that the tool needs, and with no others
// than it has.
func (t known) takes(arguments string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return false
	}
	for k := range fields {
		if !slices.Contains(t.properties, k) {
			return false
		}
	}
	return !slices.ContainsFunc(t.required, func(k string) bool { return fields[k] == nil })
}

// namedGap is what stands between the name of a tool and its arguments.
var namedGap = regexp.MustCompile("^[ \t\n:]*(?:with )?" +
	"(?:\\[ARGS\\]|<\\|(?:constrain|message)\\|>|<｜tool▁sep｜>|json|code|```(?:json)?|[ \t\n])*")

// named reads the arguments of a tool whose name stands before them.
func (r *Reader) named(s, name string, begin int, cut bool) ([]Call, int) {
	t, ok := r.find(name)
	if !ok || begin >= len(s) || s[begin] != '{' {
		return nil, 0
	}
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
	if _, inner := first(fields, listKeys); inner != nil {
		return r.shape(inner, tagged, depth+1)
	}
	key, name := nameIn(fields)
	argKey, arguments := first(fields, argKeys)
	switch t, offered := r.find(name); {
	case key == "" && len(fields) == 1: // {"append_memory": {…}}
		for only, inner := range fields {
			if t, ok := r.find(only); ok && inner[0] == '{' {
				return []Call{{Name: t.name, Arguments: string(inner)}}, true
			}
		}
		return r.inner(fields, tagged, depth)
	case key == "":
		return r.inner(fields, tagged, depth)
	case !offered && !(tagged && argKey != ""), defines(fields, arguments):
		return nil, false
	case !offered:
		return []Call{{Name: name, Arguments: asArguments(arguments)}}, true
	case argKey != "" && !slices.Contains(t.properties, argKey):
		return []Call{{Name: t.name, Arguments: asArguments(arguments)}}, true
	default: // the arguments stand beside the name
		maps.DeleteFunc(fields, func(k string, _ json.RawMessage) bool { return k == key || slices.Contains(otherKeys, k) })
		flat, err := json.Marshal(fields)
		return []Call{{Name: t.name, Arguments: string(flat)}}, err == nil && (tagged || t.takes(string(flat)))
	}
}

// defines reports whether an object describes a tool, and does not call it.
func defines(fields map[string]json.RawMessage, arguments json.RawMessage) bool {
	var schema struct{ Properties json.RawMessage }
	return fields["description"] != nil || json.Unmarshal(arguments, &schema) == nil && schema.Properties != nil
}

// inner reads a call that stands in a field: {"type": "function", "function": {…}}.
func (r *Reader) inner(fields map[string]json.RawMessage, tagged bool, depth int) ([]Call, bool) {
	if function := fields["function"]; len(function) > 0 && function[0] == '{' {
		return r.shape(function, tagged, depth+1)
	}
	return nil, false
}

// nameIn is the first of the fields that holds the name of a tool.
func nameIn(fields map[string]json.RawMessage) (key, name string) {
	for _, k := range nameKeys {
		if json.Unmarshal(fields[k], &name) == nil && name != "" {
			return k, name
		}
	}
	return "", ""
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
	markupHead = regexp.MustCompile(`^<(?:function=|(?:tool_call|function_call|function|invoke|tool) name=)["']?([\w.-]+)["']?\s*>|` +
		`^<([\w.-]+)>`)
	markupParts = []*regexp.Regexp{
		regexp.MustCompile(`(?s)<parameter=["']?([\w.-]+)["']?>(.*?)(?:</parameter>|$)`),
		regexp.MustCompile(`(?s)<(?:parameter|param|arg) name=["']?([\w.-]+)["']?[^>]*>(.*?)</(?:parameter|param|arg)>`),
		regexp.MustCompile(`(?s)<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>`),
	}
	markupEnd   = regexp.MustCompile(`</(?:function|invoke|tool|tool_call)>`)
	simpleField = regexp.MustCompile(`(?s)<([\w.-]+)>(.*?)</([\w.-]+)>`)
)

// markup reads a call written with tags: <function=NAME><parameter=KEY>…, <invoke name="NAME">…, <NAME>….
func (r *Reader) markup(s string, tagged, cut bool) ([]Call, int) {
	m := markupHead.FindStringSubmatch(s)
	if m == nil {
		return nil, 0
	}
	t, ok := r.find(m[1] + m[2])
	switch {
	case ok:
		return r.markupOf(s, t.name, len(m[0]), cut)
	case tagged && m[1] != "":
		return r.markupOf(s, m[1], len(m[0]), cut)
	}
	return nil, 0
}

// markupOf reads the arguments of a call whose name ends at begin.
func (r *Reader) markupOf(s, name string, begin int, cut bool) ([]Call, int) {
	end, after := len(s), len(s)
	if at := markupEnd.FindStringIndex(s[begin:]); at != nil {
		end, after = begin+at[0], begin+at[1]
	} else if cut {
		return broken(s, name)
	}
	if closing := "</" + name + ">"; strings.HasPrefix(s, "<"+name+">") {
		at := strings.Index(s[begin:], closing)
		if at < 0 {
			return nil, 0
		}
		end, after = begin+at, begin+at+len(closing)
	}
	body := strings.TrimSpace(s[begin:end])
	if arguments, ok := jsonObject(body, false); ok && body != "" && (body[0] == '{' || body[0] == '`') {
		return r.one(s[:after], name, arguments)
	}
	fields := map[string]string{}
	for _, part := range markupParts {
		for _, m := range part.FindAllStringSubmatch(body, -1) {
			fields[m[1]] = strings.TrimSpace(m[2])
		}
	}
	if len(fields) == 0 {
		for _, m := range simpleField.FindAllStringSubmatch(body, -1) {
			if m[1] == m[3] {
				fields[m[1]] = strings.TrimSpace(m[2])
			}
		}
	}
	arguments, err := json.Marshal(fields)
	if err != nil || len(fields) == 0 && body != "" {
		return nil, 0
	}
	return r.one(s[:after], name, string(arguments))
}

var keyword = regexp.MustCompile(`^\s*([A-Za-z_]\w*)\s*=\s*`)

// literals makes an object of arguments that are written as in Python: entry="…", count=5.
// A value without a key is the one that is required.
func (t known) literals(s string) string {
	if s = strings.TrimSpace(s); strings.HasPrefix(s, "{") {
		return s
	}
	var fields []string
	for _, part := range parted(s) {
		key := ""
		if m := keyword.FindStringSubmatch(part); m != nil {
			key, part = m[1], part[len(m[0]):]
		} else if len(t.required) == 1 {
			key = t.required[0]
		}
		fields = append(fields, `"`+key+`": `+strings.TrimSpace(part))
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// parted cuts s at the commas that stand in no bracket and no text.
func parted(s string) (parts []string) {
	from := 0
	scan(s, func(at, depth int) bool {
		if depth == 0 && s[at] == ',' {
			parts, from = append(parts, s[from:at]), at+1
		}
		return true
	})
	if strings.TrimSpace(s[from:]) != "" {
		parts = append(parts, s[from:])
	}
	return parts
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

var regionEnd = regexp.MustCompile("</(?:tool_calls?|function_calls?|function|invoke|tool)>|<\\|[a-z_]+\\|>|\n[ \t]*```|<｜")

// repaired is text as valid JSON. What was cut is not completed.
func repaired(text string, cut bool) (json.RawMessage, bool) {
	text = strings.TrimSpace(text)
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), true
	}
	if unfinished(text, cut) {
		return nil, false
	}
	var inner string
	if escapedStart.MatchString(text) && json.Unmarshal([]byte(`"`+text+`"`), &inner) == nil && json.Valid([]byte(inner)) {
		return json.RawMessage(inner), true
	}
	if len(text) > mostBytes {
		return nil, false
	}
	mended, err := jsonrepair.Repair(text)
	if err != nil || !json.Valid([]byte(mended)) {
		return nil, false
	}
	return json.RawMessage(mended), true
}

var escapedStart = regexp.MustCompile(`^[{\[\s]+\\"`)

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
	if list := []json.RawMessage{}; json.Unmarshal([]byte(text), &list) == nil && len(list) == 1 {
		text = string(list[0])
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
		if whole, ok := repaired(c.Arguments, cut); ok { // the whole call stands in the arguments
			if calls, ok := r.shape(whole, false, 0); ok && len(calls) == 1 {
				return r.Mend(calls[0], cut)
			}
		}
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
		if k != key && !slices.Contains(nameKeys, k) && !slices.Contains(otherKeys, k) {
			return c
		}
	}
	if wrapped, ok := jsonObject(asArguments(inner), cut); ok {
		c.Arguments = wrapped
	}
	return c
}
