// Package calls finds tool calls that a language model wrote as text, and repairs their names and
// arguments. It reads the forms of common open models:
//
//   - JSON with a name and arguments: bare, in a list, in a fence, or in the tags of a chat template
//     (<tool_call>, <|python_tag|>, [TOOL_CALLS]);
//   - NAME[ARGS]{…} behind [TOOL_CALLS];
//   - <function=NAME> with <parameter=KEY> or a JSON object in it;
//   - the form that this program writes for models without tools: [Called the tool NAME with {…}].
//
// The position decides whether it is a call or only shows one:
//
//   - A call ends the answer: only other calls, a result that the model made up, or marks of
//     a chat template may follow it. The text before the first call is the prose.
//   - An answer that opens with a call on lines of its own is a call, too. The text after it
//     was written before there was a result, and is dropped.
//   - In a fence, and without the tags of a chat template, it has to name an offered tool.
//     A fence that holds anything else is prose, as are blockquotes, `code`, the definition of
//     a tool, and a call with text on both sides.
//   - Text that occurs word for word in the request is a quotation, not a call: a file or page
//     cannot cause a call by being repeated.
//   - Arguments such as "..." are an example, not a call.
package calls

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"

	"reverie/internal/lazyregexp"
)

// Tool is a tool offered to the model. Parameters is the JSON schema of an object.
type Tool struct {
	Name       string
	Parameters json.RawMessage
}

// hasProperty reports whether the schema names a property.
func (t Tool) hasProperty(name string) bool {
	var schema struct{ Properties map[string]json.RawMessage }
	_ = json.Unmarshal(t.Parameters, &schema) // a faulty schema names none
	return schema.Properties[name] != nil
}

// Call is a tool call. Arguments is a JSON object, or the model's own text if it could not be
// repaired.
type Call struct{ Name, Arguments string }

// Limits for runaway answers.
const (
	maxCalls      = 128     // calls of one answer
	maxOpenings   = 200     // places of one answer where a call may begin
	maxBrokenJSON = 100_000 // bytes of broken JSON that are repaired
)

// Reader reads the answers to one request.
type Reader struct {
	tools      map[string]Tool // by folded name
	given      []string
	givenDense string // given without white space; built on first use
}

// New returns a Reader of answers by a model that is offered tools. given is the text of the
// request without the model's own earlier answers.
func New(tools []Tool, given []string) *Reader {
	r := &Reader{tools: map[string]Tool{}, given: given}
	for _, t := range tools {
		r.tools[foldName(t.Name)] = t
	}
	return r
}

// segment is a part of an answer that consists of calls only.
type segment struct {
	from, to int
	calls    []Call
	fenced   bool
}

// Split separates an answer into prose and calls. cut says that the output limit ended it; then
// incomplete parts are not completed.
func (r *Reader) Split(text string, cut bool) (prose string, calls []Call) {
	if len(r.tools) == 0 {
		return text, nil
	}
	var pieces []segment
	for at, looks := 0, 0; at < len(text) && looks < maxOpenings; looks++ {
		from := r.nextOpening(text, at)
		if from < 0 {
			break
		}
		if p, ok := r.readCalls(text, from, cut); ok {
			pieces, at = append(pieces, p), max(p.to, from+1)
		} else {
			at, _ = r.skipOpening(text, from)
		}
	}
	if len(pieces) == 0 {
		return text, nil
	}
	ends := strings.TrimSpace(text[pieces[len(pieces)-1].to:]) == ""
	first := pieces[0]
	line, _, _ := strings.Cut(text[first.to:], "\n")
	if !ends && (strings.TrimSpace(text[:first.from]+line) != "" || first.fenced) {
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
	return strings.TrimSpace(text[:start]), calls[:min(len(calls), maxCalls)]
}

// VisibleProse returns the part of a growing answer that is certainly prose. Its end may shrink while that
// is undecided.
func (r *Reader) VisibleProse(text string) string {
	if len(r.tools) == 0 {
		return text
	}
	for at, looks := 0, 0; at < len(text); looks++ {
		from := r.nextOpening(text, at)
		if from < 0 {
			break
		}
		next, decided := r.skipOpening(text, from)
		p, ok := segment{}, false
		if decided = decided && next < len(text) && looks < maxOpenings; decided {
			p, ok = r.readCalls(text, from, false)
		}
		if !decided || ok && (!p.fenced || strings.TrimSpace(text[p.to:]) == "") {
			text = text[:from]
			break
		}
		at = next
	}
	end := text[max(0, len(text)-maxPartial):]
	return strings.TrimSpace(text[:len(text)-len(partialOpening().FindString(end))])
}

// maxPartial is how many bytes at the end of a text are searched for partialOpening, which reads all it is given.
const maxPartial = 200

// partialOpening matches an end of text that may become the start of a call.
var partialOpening = lazyregexp.New("(?:(?:^|\n)[ \t]*(?:`{1,2}|~{1,2})|<[^<>\n]{0,60}|\\[\\s*(?:\\w[\\w ]{0,20}|\\{\\s*)?|\\{\\s*)$")

var (
	// callTag matches the start of a call anywhere in a line. The call is in a chat template's
	// words or in JSON.
	callTag = lazyregexp.New(`(?i)<tool_calls?>|<function=|<\|python_tag\|>|\[TOOL_CALLS\]|\[Called the tool |\[?\s*\{\s*["']`)
	// callMark matches what chat templates and Markdown put around calls.
	callMark = lazyregexp.New("(?i)^(?:</?(?:tool_calls?|function|s)>|<\\|[^|<>\n]{1,40}\\|>|" +
		"\\[/?TOOL_CALLS\\]|\\[Called the tool |(?:```+|~~~+)[\\w+-]*)")
	// inventedResult matches the start of a tool result that the model invented.
	inventedResult = lazyregexp.New(`^(?:</?tool_(?:response|result|output)|\[TOOL_RESULTS\]|` +
		`<\|(?:im_start|start_header_id)\|>|Observation:|\[Result of the tool )`)
)

// nextOpening returns the next position from at on where a call may begin; -1 = none.
func (r *Reader) nextOpening(text string, at int) int {
	for at < len(text) {
		end := at + strings.IndexByte(text[at:]+"\n", '\n')
		begin := strings.LastIndexByte(text[:at], '\n') + 1
		first := begin + len(text[begin:end]) - len(strings.TrimLeft(text[begin:end], " \t"))
		if first < end && text[first] == '>' { // a quotation
			at = end + 1
			continue
		}
		mark := callMark().FindString(text[first:])
		if first >= at && (mark != "" && !strings.HasPrefix(mark, "</") || strings.HasPrefix(text[first:], "{")) {
			return first
		}
		if !strings.ContainsAny(text[at:end], "<[{") { // most lines have none, and looking for these is fast
			at = end + 1
			continue
		}
		for _, m := range callTag().FindAllStringIndex(text[at:end], -1) {
			if strings.Count(text[begin:at+m[0]], "`")%2 == 0 {
				return at + m[0]
			}
		}
		at = end + 1
	}
	return -1
}

// skipOpening returns where to continue when the text at from is no call. decided is false while a growing
// text may still become one.
func (r *Reader) skipOpening(text string, from int) (next int, decided bool) {
	s := text[from:]
	switch {
	case s[0] == '`' || s[0] == '~':
		fence := s[:len(s)-len(strings.TrimLeft(s, s[:1]))]
		if closing := regexp.MustCompile("\n[ \t]*" + fence + "[ \t]*(?:\n|$)").FindStringIndex(s); closing != nil {
			return from + closing[1], true
		}
		return len(text), false
	case s[0] == '{', s[0] == '[' && !callMark().MatchString(s):
		n, closed := jsonEnd(s) // with unbalanced quotes even its end is uncertain
		return from + n, closed && !callKey().MatchString(s)
	}
	return from + 1, closingTag().MatchString(s)
}

// callKey matches the start of an object that may be a call.
var callKey = lazyregexp.New(`^[\[\s]*\{\s*["']?(?:name|tool|function|type|id|arg|param|input)`)

var closingTag = lazyregexp.New(`(?i)</(?:tool_calls?|function)>`)

// readCalls parses consecutive calls from from on.
func (r *Reader) readCalls(text string, from int, cut bool) (segment, bool) {
	p := segment{from: from}
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
		if len(p.calls) > 0 && inventedResult().MatchString(rest) {
			p.to = len(text)
			break
		}
		if mark := callMark().FindString(rest); mark != "" {
			if fence := mark[0] == '`' || mark[0] == '~'; fence {
				p.fenced, inFence = p.fenced || !tagged, !inFence
			} else {
				tagged = true
			}
			at += len(mark)
			p.to = at
			continue
		}
		calls, n := r.readValue(rest, tagged && !p.fenced, cut)
		if n == 0 {
			break
		}
		p.calls = append(p.calls, calls...)
		at += n
		p.to = at
	}
	return p, len(p.calls) > 0 && (!inFence || p.to == len(text))
}

// isQuotation reports whether said occurs in the text given to the model.
func (r *Reader) isQuotation(said string) bool {
	if r.givenDense == "" {
		r.givenDense = withoutSpaceAndAngleBrackets(strings.Join(r.given, "\x00"))
	}
	return strings.Contains(r.givenDense, withoutSpaceAndAngleBrackets(said))
}

// withoutSpaceAndAngleBrackets removes white space and blockquote marks.
func withoutSpaceAndAngleBrackets(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '>' || c == '‹' || c == '<' {
			return -1
		}
		return c
	}, s)
}

// lookup returns the offered tool of that name, also in another spelling: functions.append_memory,
// appendMemory, append-memory.
func (r *Reader) lookup(name string) (Tool, bool) {
	t, ok := r.tools[foldName(name)]
	if i := strings.LastIndexAny(name, ".:"); !ok && i >= 0 {
		t, ok = r.tools[foldName(name[i+1:])]
	}
	return t, ok
}

// foldName normalizes a name's spelling.
func foldName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}
