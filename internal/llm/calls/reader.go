// Package calls finds the tool calls that a language model wrote as text, and mends their names
// and arguments. It reads the forms of the models that people run at home:
//
//   - JSON with a name and arguments: bare, in a list, in a fence, or in the tags of a chat template
//     (<tool_call>, <|python_tag|>, [TOOL_CALLS]);
//   - NAME[ARGS]{…} behind [TOOL_CALLS];
//   - <function=NAME> with <parameter=KEY> or a JSON object in it;
//   - what this program itself writes for models without tools: [Called the tool NAME with {…}].
//
// What is a call and what only shows one is decided by where it stands:
//
//   - A call ends the answer: only other calls, a result that the model made up, or marks of
//     a chat template may follow it. The words before the first call are the prose.
//   - An answer that opens with a call on lines of its own is a call, too. The words behind it
//     were written before there was a result, and are left out.
//   - In a fence, and without the tags of a chat template, it has to name an offered tool.
//     A fence that holds anything else is prose, as are blockquotes, `code`, the definition of
//     a tool, and a call with text on both sides.
//   - What stands word for word in the request is a quotation, and no call: a file or page
//     cannot have a call made by being repeated.
//   - Arguments such as "..." are an example, and no call.
package calls

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Tool is a tool that the model is offered. Parameters is a JSON schema of an object.
type Tool struct {
	Name       string
	Parameters json.RawMessage
}

// Call is a call of a tool. Arguments is a JSON object, unless the model wrote something that none
// can be made of.
type Call struct{ Name, Arguments string }

// A model gone wild writes more than this.
const (
	most      = 128     // calls of one answer
	mostLooks = 200     // places of one answer where a call may begin
	mostBytes = 100_000 // of JSON that is broken
)

// Reader reads the answers to one request.
type Reader struct {
	tools map[string]known // by folded name
	given []string
	read  string // given without blanks; made when it is needed
}

// known is what a Reader needs to know of a tool.
type known struct {
	name       string
	properties []string
}

// New returns a Reader of answers of a model that is offered tools. given is what it was given to
// read besides its own earlier answers.
func New(tools []Tool, given []string) *Reader {
	r := &Reader{tools: map[string]known{}, given: given}
	for _, tool := range tools {
		t := known{name: tool.Name}
		var schema struct{ Properties map[string]json.RawMessage }
		if json.Unmarshal(tool.Parameters, &schema) == nil {
			t.properties = slices.Collect(maps.Keys(schema.Properties))
		}
		r.tools[folded(tool.Name)] = t
	}
	return r
}

// piece is a part of an answer that holds calls and nothing else.
type piece struct {
	from, to int
	calls    []Call
	fenced   bool
}

// Split parts an answer into its prose and its calls. cut says that the output limit ended it:
// what is incomplete then is not completed.
func (r *Reader) Split(text string, cut bool) (prose string, calls []Call) {
	if len(r.tools) == 0 {
		return text, nil
	}
	var pieces []piece
	for at, looks := 0, 0; at < len(text) && looks < mostLooks; looks++ {
		from := r.opening(text, at)
		if from < 0 {
			break
		}
		if p, ok := r.sequence(text, from, cut); ok {
			pieces, at = append(pieces, p), max(p.to, from+1)
		} else {
			at, _ = r.skip(text, from)
		}
	}
	if len(pieces) == 0 {
		return text, nil
	}
	ends := strings.TrimSpace(text[pieces[len(pieces)-1].to:]) == ""
	if first := pieces[0]; !ends && (strings.TrimSpace(text[:first.from]) != "" || first.fenced || !endsLine(text[first.to:])) {
		return text, nil
	}
	start := -1
	for i, p := range pieces {
		if p.fenced && (!ends || i < len(pieces)-1) {
			continue
		}
		if calls = append(calls, p.calls...); start < 0 {
			start = p.from
		}
	}
	return strings.TrimSpace(text[:start]), calls[:min(len(calls), most)]
}

// Shown is how much of an answer that is still being written people may see: what will be prose
// whatever follows. It may take back a word while that is not decided.
func (r *Reader) Shown(text string) string {
	if len(r.tools) == 0 {
		return text
	}
	for at, looks := 0, 0; at < len(text); looks++ {
		from := r.opening(text, at)
		if from < 0 {
			break
		}
		next, decided := r.skip(text, from)
		p, ok := piece{}, false
		if decided = decided && next < len(text) && looks < mostLooks; decided {
			p, ok = r.sequence(text, from, false)
		}
		if !decided || ok && (!p.fenced || strings.TrimSpace(text[p.to:]) == "") {
			text = text[:from]
			break
		}
		at = next
	}
	return strings.TrimSpace(text[:len(text)-len(partialOpening.FindString(text))])
}

// partialOpening is the end of a text that may become the beginning of a call.
var partialOpening = regexp.MustCompile("(?:(?:^|\n)[ \t]*(?:`{1,2}|~{1,2})|<[^<>\n]{0,60}|\\[\\s*(?:\\w[\\w ]{0,20}|\\{\\s*)?|\\{\\s*)$")

var (
	// callTag begins a call in the words of a chat template, or in JSON, wherever it stands in a line.
	callTag = regexp.MustCompile(`(?i)<tool_calls?>|<function=|<\|python_tag\|>|\[TOOL_CALLS\]|\[Called the tool |\[?\s*\{\s*["']`)
	// callMark is what chat templates and Markdown put around calls.
	callMark = regexp.MustCompile("(?i)^(?:</?(?:tool_calls?|function|s)>|<\\|[^|<>\n]{1,40}\\|>|" +
		"\\[/?TOOL_CALLS\\]|\\[Called the tool |(?:```+|~~~+)[\\w+-]*)")
	// madeUp begins what a model takes for the result of its call.
	madeUp = regexp.MustCompile(`^(?:</?tool_(?:response|result|output)|\[TOOL_RESULTS\]|` +
		`<\|(?:im_start|start_header_id)\|>|Observation:|\[Result of the tool )`)
)

// opening is where, from at on, a call may begin; -1 = nowhere.
func (r *Reader) opening(text string, at int) int {
	for at < len(text) {
		end := at + strings.IndexByte(text[at:]+"\n", '\n')
		begin := strings.LastIndexByte(text[:at], '\n') + 1
		first := begin + len(text[begin:end]) - len(strings.TrimLeft(text[begin:end], " \t"))
		if first < end && text[first] == '>' { // a quotation
			at = end + 1
			continue
		}
		if first >= at && begins(text[first:]) {
			return first
		}
		for _, m := range callTag.FindAllStringIndex(text[at:end], -1) {
			if strings.Count(text[begin:at+m[0]], "`")%2 == 0 {
				return at + m[0]
			}
		}
		at = end + 1
	}
	return -1
}

// begins reports whether a line that begins so may begin a call.
func begins(s string) bool {
	return callMark.MatchString(s) && !strings.HasPrefix(s, "</") || strings.HasPrefix(s, "{")
}

// skip is where to look on when what begins at from is no call. decided is false while a text that
// is still being written may make it one.
func (r *Reader) skip(text string, from int) (next int, decided bool) {
	s := text[from:]
	switch {
	case s[0] == '`' || s[0] == '~':
		fence := s[:len(s)-len(strings.TrimLeft(s, s[:1]))]
		if closing := regexp.MustCompile("\n[ \t]*" + fence + "[ \t]*(?:\n|$)").FindStringIndex(s); closing != nil {
			return from + closing[1], true
		}
		return len(text), false
	case s[0] == '{', s[0] == '[' && !callMark.MatchString(s):
		n, closed := jsonEnd(s) // where quotes are in disorder, not even its end is sure
		return from + n, closed && !callKey.MatchString(s)
	}
	return from + 1, closingTag.MatchString(s)
}

// callKey begins an object that may be a call.
var callKey = regexp.MustCompile(`^[\[\s]*\{\s*["']?(?:name|tool|function|type|id|arg|param|input)`)

var closingTag = regexp.MustCompile(`(?i)</(?:tool_calls?|function)>`)

// sequence reads the calls that stand one behind the other from from on.
func (r *Reader) sequence(text string, from int, cut bool) (piece, bool) {
	p := piece{from: from}
	tagged, inFence := false, false
	for at := from; ; {
		at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n,;"))
		if rest := strings.TrimLeft(text[at:], "]})"); len(p.calls) > 0 && rest != text[at:] {
			at = len(text) - len(rest)
			p.to = at
			continue
		}
		rest := text[at:]
		if rest == "" {
			p.to = len(text)
			break
		}
		if len(p.calls) > 0 && madeUp.MatchString(rest) {
			p.to = len(text)
			break
		}
		if mark := callMark.FindString(rest); mark != "" {
			if fence := mark[0] == '`' || mark[0] == '~'; fence {
				p.fenced, inFence = p.fenced || !tagged, !inFence
			} else {
				tagged = true
			}
			at += len(mark)
			p.to = at
			continue
		}
		calls, n := r.value(rest, tagged && !p.fenced, cut)
		if n == 0 {
			break
		}
		p.calls = append(p.calls, calls...)
		at += n
		p.to = at
	}
	return p, len(p.calls) > 0 && (!inFence || p.to == len(text))
}

// quotes reports whether a text of the answer stands in what the model was given to read.
func (r *Reader) quotes(said string) bool {
	if r.read == "" {
		r.read = dense(strings.Join(r.given, "\x00"))
	}
	return strings.Contains(r.read, dense(said))
}

// dense is a text without blanks and the marks of blockquotes.
func dense(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '>' || c == '‹' || c == '<' {
			return -1
		}
		return c
	}, s)
}

// find is the offered tool of that name, also where it is written in another way:
// functions.append_memory, appendMemory, append-memory.
func (r *Reader) find(name string) (known, bool) {
	t, ok := r.tools[folded(name)]
	if i := strings.LastIndexAny(name, ".:"); !ok && i >= 0 {
		t, ok = r.tools[folded(name[i+1:])]
	}
	return t, ok
}

// folded is a name without what models write differently in it.
func folded(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// endsLine reports whether nothing else stands in the line that s continues.
func endsLine(s string) bool {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line) == ""
}
