// Package callstest has answers of models for tests: tool calls in the forms of small models and
// wrong chat templates, and prose that resembles calls.
package callstest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Call is the intended tool call. Arguments is a JSON object.
type Call struct{ Name, Arguments string }

// Answer is one answer of a model. A native one has a real call, with Name and Arguments as the
// model wrote them; any other is text only.
type Answer struct {
	Shape  string
	Text   string
	Native []Call
	Want   []Call // the intended calls; none = prose
	Prose  string // the visible part
}

// Calls are twenty calls with difficult quoting.
var Calls = []Call{
	{"append_memory", `{"entry":"Ada's sister Jana lives in Brno."}`},
	{"append_memory", `{"entry":"Grace said \"never again\" about ferries","about":"Grace"}`},
	{"append_memory", `{"entry":"First line\nSecond line"}`},
	{"append_memory", `{"entry":"Brackets { } [ ] and a <tag> & more","kind":"fact"}`},
	{"append_memory", `{"entry":"Größe: 42 µm, naïve café, 東京 🚂"}`},
	{"append_memory", `{"entry":"The notes are in C:\\Users\\ada"}`},
	{"append_memory", `{"entry":"Commas, colons: and semicolons; here, there: everywhere"}`},
	{"append_memory", `{"entry":"Bob prefers tea","about":"Bob","kind":"preference","source":"chat"}`},
	{"append_memory", `{"entry":"See https://example.org/a?b=c&d=e#f // no comment"}`},
	{"append_memory", `{"entry":"true"}`},
	{"task", `{"action":"add","content":"Water the plants","schedule_type":"daily","at":"09:00"}`},
	{"task", `{"action":"add","content":"Buy milk","priority":5}`},
	{"task", `{"action":"add","content":"Look at the oven","priority":1,"schedule_type":"interval","interval_seconds":3600}`},
	{"task", `{"action":"list"}`},
	{"task", `{"action":"add","content":"Pay the rent","schedule_type":"monthly","at":"08:00","day_of_month":1}`},
	{"task", `{"action":"add","content":"The news","schedule_type":"daily","at":"07:30","ai_prompt":"Say what is new","background":true}`},
	{"search_memory", `{"query":"Jana Brno","k":5}`},
	{"search_memory", `{"query":"what's for dinner"}`},
	{"read_file", `{"path":"data/skills","offset":1,"limit":20}`},
	{"add_skill", `{"skill_name":"tea","summary":"How to make tea","documentation":"1. Boil water.\n2. Pour it \"gently\".\n3. Wait {three minutes}."}`},
}

// shapes are the forms: each renders a call as an answer.
var shapes = []struct {
	name string
	make func(Call) Answer
}{
	{"native, arguments in a string", native(func(c Call) Call { return Call{c.Name, quote(c.Arguments)} })},
	{"native, arguments in a fence", native(func(c Call) Call { return Call{c.Name, "```json\n" + c.Arguments + "\n```"} })},
	{"native, last bracket missing", native(func(c Call) Call { return Call{c.Name, strings.TrimSuffix(c.Arguments, "}")} })},
	{"native, comma too many", native(func(c Call) Call { return Call{c.Name, strings.TrimSuffix(c.Arguments, "}") + ",}"} })},
	{"native, all values are text", native(func(c Call) Call { return Call{c.Name, stringly(c.Arguments)} })},
	{"native, arguments in arguments", native(func(c Call) Call { return Call{c.Name, `{"arguments": ` + c.Arguments + `}`} })},
	{"native, name with a prefix", native(func(c Call) Call { return Call{"functions." + c.Name, c.Arguments} })},
	{"native, line ends in text, keys without quotes", native(func(c Call) Call {
		return Call{c.Name, bareKeys(strings.ReplaceAll(c.Arguments, `\n`, "\n"))}
	})},
	{"tags", text(func(c Call) string { return "<tool_call>\n" + object(c) + "\n</tool_call>" })},
	{"tags, not closed", text(func(c Call) string { return "<tool_call>\n" + object(c) })},
	{"tags, arguments in a string", text(func(c Call) string {
		return `<tool_call>{"name": "` + c.Name + `", "arguments": ` + quote(c.Arguments) + `}</tool_call>`
	})},
	{"tags after words", after("I'll do that right away. ", func(c Call) string { return "<tool_call>" + object(c) + "</tool_call>" })},
	{"tags, one bracket missing", text(func(c Call) string { return "<tool_call>\n" + strings.TrimSuffix(object(c), "}") + "\n</tool_call>" })},
	{"fence after words", after("Sure, noted:\n\n", func(c Call) string { return "```json\n" + object(c) + "\n```" })},
	{"bare", text(object)},
	{"bare, parameters", text(func(c Call) string {
		return `{"type": "function", "name": "` + c.Name + `", "parameters": ` + c.Arguments + `}`
	})},
	{"bare, as in the protocol", text(func(c Call) string {
		return `[{"id": "call_1", "type": "function", "function": {"name": "` + c.Name + `", "arguments": ` + quote(c.Arguments) + `}}]`
	})},
	{"function tags with parameters", text(func(c Call) string {
		return "<tool_call>\n<function=" + c.Name + ">\n" + each(c, "<parameter=%s>\n%s\n</parameter>\n") + "</function>\n</tool_call>"
	})},
	{"words after it", text(func(c Call) string { return object(c) + "\n\nI have done that for you." })},

	{"native, doubly quoted", native(func(c Call) Call { return Call{c.Name, quote(quote(c.Arguments))} })},
	{"native, name in other letters", native(func(c Call) Call { return Call{strings.ReplaceAll(c.Name, "_", "-"), c.Arguments} })},
	{"tags of Mistral", text(func(c Call) string { return `[TOOL_CALLS][` + object(c) + `]` })},
	{"tags of Mistral, newer", text(func(c Call) string { return `[TOOL_CALLS]` + c.Name + `[ARGS]` + c.Arguments })},
	{"tags of Llama", text(func(c Call) string { return `<|python_tag|>` + object(c) + `<|eom_id|>` })},
	{"function tag of Llama", text(func(c Call) string { return `<function=` + c.Name + `>` + c.Arguments + `</function>` })},
	{"made-up result", text(func(c Call) string {
		return "<tool_call>\n" + object(c) + "\n</tool_call>\n<tool_response>\n{\"ok\": true}\n</tool_response>\nDone!"
	})},
	{"fence alone", text(func(c Call) string { return "```\n" + object(c) + "\n```" })},
	{"fence with tags", text(func(c Call) string { return "```xml\n<tool_call>\n" + object(c) + "\n</tool_call>\n```" })},
	{"bare after words", after("Let me see to it.\n\n", object)},
	{"in single quotes", text(func(c Call) string {
		return "<tool_call>\n{'name': '" + c.Name + "', 'arguments': " + pyDict(c) + "}\n</tool_call>"
	})},
	{"in capital letters", text(func(c Call) string { return "<TOOL_CALL>" + object(c) + "</TOOL_CALL>" })},
	{"in the line of words", after("I'll call the tool: ", object)},
	{"closing tag alone", text(func(c Call) string { return object(c) + "\n</tool_call>" })},
}

// Malformed has each call in every shape.
func Malformed() []Answer {
	var all []Answer
	for _, s := range shapes {
		for _, c := range Calls {
			a := s.make(c)
			a.Shape, a.Want = s.name, []Call{c}
			all = append(all, a)
		}
	}
	return all
}

func native(f func(Call) Call) func(Call) Answer {
	return func(c Call) Answer { return Answer{Native: []Call{f(c)}} }
}

func text(f func(Call) string) func(Call) Answer { return after("", f) }

func after(words string, f func(Call) string) func(Call) Answer {
	return func(c Call) Answer { return Answer{Text: words + f(c), Prose: strings.TrimSpace(words)} }
}

func object(c Call) string { return `{"name": "` + c.Name + `", "arguments": ` + c.Arguments + `}` }

// quote returns s as a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(b)
}

var member = regexp.MustCompile(`"(\w+)":("(?:[^"\\]|\\.)*"|[^,}]+)`)

// members returns the arguments of a call in order: key and value, as JSON.
func members(arguments string) [][]string {
	var all [][]string
	for _, m := range member.FindAllStringSubmatch(arguments, -1) {
		all = append(all, m[1:])
	}
	return all
}

// plain returns a JSON value as text.
func plain(value string) string {
	var s string
	if json.Unmarshal([]byte(value), &s) == nil {
		return s
	}
	return value
}

func stringly(arguments string) string {
	var parts []string
	for _, m := range members(arguments) {
		parts = append(parts, quote(m[0])+": "+quote(plain(m[1])))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func bareKeys(arguments string) string {
	return regexp.MustCompile(`([{,])"(\w+)":`).ReplaceAllString(arguments, "$1$2: ")
}

func each(c Call, format string) string {
	var b strings.Builder
	for _, m := range members(c.Arguments) {
		fmt.Fprintf(&b, format, m[0], plain(m[1]))
	}
	return b.String()
}

// literal returns a JSON value in Python's notation.
func literal(value string) string {
	switch value {
	case "true":
		return "True"
	case "false":
		return "False"
	}
	if value[0] != '"' {
		return value
	}
	s := strconv.Quote(plain(value))
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s[1:len(s)-1], `\"`, `"`), "'", `\'`) + "'"
}

func pyDict(c Call) string {
	var parts []string
	for _, m := range members(c.Arguments) {
		parts = append(parts, "'"+m[0]+"': "+literal(m[1]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
