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
)

// maxFormula is how long a formula may be, in bytes. Without an end it would be
// looked for again from each beginning.
const maxFormula = 4000

var kindFormula = ast.NewNodeKind("Formula")

// formula is LaTeX.
type formula struct {
	ast.BaseInline
	tex string
}

func (*formula) Kind() ast.NodeKind              { return kindFormula }
func (f *formula) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// formulaHTML is for clients that can draw it; others show the source as code.
func formulaHTML(tex string) string {
	tex = html.EscapeString(strings.TrimSpace(tex))
	return `<span data-mx-maths="` + tex + `"><code>` + tex + "</code></span>"
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

// formulas finds LaTeX: $…$ within a line, and $$…$$, \(…\) and \[…\] within a paragraph.
type formulas struct{}

func (formulas) Trigger() []byte { return []byte{'$', '\\'} }

func (formulas) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	open, end := mathFence(line)
	before := block.PrecendingCharacter()
	if open == "" || before == '$' || unicode.IsLetter(before) || unicode.IsDigit(before) { // US$5, file\(s\)
		return nil
	}
	number, at := block.Position()
	block.Advance(len(open))
	tex := until(block, end)
	behind, _ := block.PeekLine()
	if open == "$" && !oneDollar(tex, behind) || !mathematical(tex, open == `\[`) {
		block.SetPosition(number, at)
		return nil
	}
	return &formula{tex: tex}
}

// until reads up to end, and past it; empty when that does not come soon.
func until(block text.Reader, end string) string {
	var tex strings.Builder
	for tex.Len() < maxFormula {
		line, _ := block.PeekLine()
		n := bytes.Index(line, []byte(end))
		for n > 0 && end == "$" && line[n-1] == '\\' { // \$ within a formula
			more := bytes.IndexByte(line[n+1:], '$')
			if more < 0 {
				return ""
			}
			n += 1 + more
		}
		if n >= 0 {
			tex.Write(line[:n])
			block.Advance(n + len(end))
			return tex.String()
		}
		if line == nil || end == "$" {
			break
		}
		tex.Write(line)
		block.AdvanceLine()
	}
	return ""
}

// oneDollar holds the rules that keep "$5 and $6" apart: no space inside, no letter or digit behind.
func oneDollar(tex string, behind []byte) bool {
	first, _ := utf8.DecodeRuneInString(tex)
	last, _ := utf8.DecodeLastRuneInString(tex)
	after, _ := utf8.DecodeRune(behind)
	return !unicode.IsSpace(first) && !unicode.IsSpace(last) && after != '$' && !unicode.IsLetter(after) && !unicode.IsDigit(after)
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
