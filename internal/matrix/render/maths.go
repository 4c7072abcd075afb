package render

import (
	"bytes"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxFormula is how long a formula may be, in bytes. Without an end it would be
// looked for again from each beginning.
const maxFormula = 4000

var (
	kindFormula = ast.NewNodeKind("Formula")
	kindDisplay = ast.NewNodeKind("Display")
)

// formula is LaTeX within a line.
type formula struct {
	ast.BaseInline
	tex string
}

func (*formula) Kind() ast.NodeKind              { return kindFormula }
func (f *formula) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// display is LaTeX on lines of its own.
type display struct {
	ast.BaseBlock
	end    string
	closed bool
}

func (*display) Kind() ast.NodeKind              { return kindDisplay }
func (*display) IsRaw() bool                     { return true }
func (d *display) Dump(source []byte, level int) { ast.DumpHelper(d, source, level, nil, nil) }

func (d *display) html(source []byte) string {
	s := strings.TrimSpace(string(d.Lines().Value(source)))
	if !d.closed { // what it stands in ended before it did
		return "<p>" + html.EscapeString(s) + "</p>\n"
	}
	at := strings.LastIndex(s, d.end)
	tex, after := s[len(d.end):at], strings.TrimSpace(s[at+len(d.end):])
	if strings.Trim(after, ".,;:") == "" {
		return formulaHTML("div", strings.TrimSpace(tex)+after) + "\n"
	}
	return formulaHTML("div", tex) + "\n<p>" + html.EscapeString(after) + "</p>\n"
}

// formulaHTML is for clients that can draw it; others show the source as code.
func formulaHTML(element, tex string) string {
	tex = html.EscapeString(strings.TrimSpace(tex))
	return "<" + element + ` data-mx-maths="` + tex + `"><code>` + tex + "</code></" + element + ">"
}

// mathFence is what a line begins a formula with, and what ends that.
func mathFence(line []byte) (open, end string) {
	switch {
	case bytes.HasPrefix(line, []byte("$$")):
		return "$$", "$$"
	case bytes.HasPrefix(line, []byte("$")):
		return "$", "$"
	case bytes.HasPrefix(line, []byte(`\(`)):
		return `\(`, `\)`
	case bytes.HasPrefix(line, []byte(`\[`)):
		return `\[`, `\]`
	}
	return "", ""
}

// formulas finds LaTeX within a line: $…$, $$…$$, \(…\) and \[…\].
type formulas struct{}

func (formulas) Trigger() []byte { return []byte{'$', '\\'} }

func (formulas) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	open, end := mathFence(line)
	before := block.PrecendingCharacter()
	if open == "" || before == '$' || unicode.IsLetter(before) || unicode.IsDigit(before) { // US$5, file\(s\)
		return nil
	}
	rest := line[len(open):min(len(line), maxFormula)]
	n := bytes.Index(rest, []byte(end))
	for n > 0 && open == "$" && rest[n-1] == '\\' { // \$ within a formula
		more := bytes.IndexByte(rest[n+1:], '$')
		if more < 0 {
			return nil
		}
		n += 1 + more
	}
	if n < 1 {
		return nil
	}
	tex := string(rest[:n])
	if open == "$" {
		// The rules that keep "$5 and $6" apart: no space inside, no letter or digit behind.
		first, _ := utf8.DecodeRuneInString(tex)
		last, _ := utf8.DecodeLastRuneInString(tex)
		after, _ := utf8.DecodeRune(rest[n+1:])
		if unicode.IsSpace(first) || unicode.IsSpace(last) || after == '$' || unicode.IsLetter(after) || unicode.IsDigit(after) {
			return nil
		}
	}
	if !mathematical(tex, open == `\[`) {
		return nil
	}
	block.Advance(len(open) + n + len(end))
	return &formula{tex: tex}
}

// mathematical tells formulas from words between the same signs.
func mathematical(tex string, bracket bool) bool {
	switch {
	case strings.TrimSpace(tex) == "" || strings.Contains(tex, "`"):
		return false
	case strings.ContainsAny(tex, `\^_={}+*/<>|`):
		return true
	case bracket && strings.Trim(tex, "0123456789,- ") == "": // a reference: \[1\]
		return false
	}
	letters := 0
	for _, r := range tex {
		if letters++; !unicode.IsLetter(r) {
			letters = 0
		}
		if letters > 3 || letters > 1 && strings.ContainsFunc(tex, unicode.IsSpace) {
			return false // words
		}
	}
	return true
}

// displayed finds LaTeX on lines of its own: from $$ or \[ at the beginning of a
// line to the end of the one that closes it.
type displayed struct{}

func (displayed) Trigger() []byte { return []byte{'$', '\\'} }

func (displayed) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	at := pc.BlockOffset()
	if at < 0 {
		return nil, parser.NoChildren
	}
	open, end := mathFence(line[at:])
	if open != "$$" && open != `\[` {
		return nil, parser.NoChildren
	}
	d := &display{end: end}
	rest := line[at+len(open):]
	if n := bytes.Index(rest, []byte(end)); n >= 0 {
		after := bytes.TrimRight(bytes.TrimSpace(rest[n+len(end):]), ".,;:")
		if len(after) > 0 || !mathematical(string(rest[:n]), open == `\[`) {
			return nil, parser.NoChildren
		}
		d.closed = true
	} else if !ends(reader.Source()[segment.Stop:], end) {
		return nil, parser.NoChildren
	}
	d.Lines().Append(text.NewSegment(segment.Start+at-segment.Padding, segment.Stop))
	reader.AdvanceToEOL()
	return d, parser.NoChildren
}

// ends tells whether a formula that has begun ends: soon, and without a blank
// line in it.
func ends(source []byte, end string) bool {
	source = source[:min(len(source), maxFormula)]
	n := bytes.Index(source, []byte(end))
	if n < 0 {
		return false
	}
	for line := range bytes.Lines(source[:n]) {
		if util.IsBlank(line) && bytes.HasSuffix(line, []byte("\n")) {
			return false
		}
	}
	return true
}

func (displayed) Continue(n ast.Node, reader text.Reader, _ parser.Context) parser.State {
	d := n.(*display)
	line, segment := reader.PeekLine()
	if d.closed || util.IsBlank(line) {
		return parser.Close
	}
	d.Lines().Append(segment)
	d.closed = bytes.Contains(line, []byte(d.end))
	reader.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

func (displayed) Close(ast.Node, text.Reader, parser.Context) {}
func (displayed) CanInterruptParagraph() bool                 { return true }
func (displayed) CanAcceptIndentedLine() bool                 { return false }
