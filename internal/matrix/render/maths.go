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

// maxFormula limits a formula, in bytes. Without a limit, each unclosed delimiter would be searched
// to the end.
const maxFormula = 4000

var kindFormula = ast.NewNodeKind("Formula")

// formula is a node with LaTeX.
type formula struct {
	ast.BaseInline
	tex string
}

func (*formula) Kind() ast.NodeKind              { return kindFormula }
func (f *formula) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// formulaHTML renders a formula with data-mx-maths; other clients show its source as code.
func formulaHTML(tex string) string {
	tex = html.EscapeString(strings.TrimSpace(tex))
	return `<span data-mx-maths="` + tex + `"><code>` + tex + "</code></span>"
}

// mathFence returns the delimiters of a formula at the start of a line.
func mathFence(line []byte) (open, end string) {
	for _, pair := range [][2]string{{"$$", "$$"}, {"$", "$"}, {`\(`, `\)`}, {`\[`, `\]`}} {
		if bytes.HasPrefix(line, []byte(pair[0])) {
			return pair[0], pair[1]
		}
	}
	return "", ""
}

// formulaParser parses LaTeX: $…$ within a line, and $$…$$, \(…\) and \[…\] within a paragraph.
type formulaParser struct{}

func (formulaParser) Trigger() []byte { return []byte{'$', '\\'} }

func (formulaParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	open, end := mathFence(line)
	before := block.PrecendingCharacter()
	if open == "" || before == '$' || unicode.IsLetter(before) || unicode.IsDigit(before) { // US$5, file\(s\)
		return nil
	}
	number, at := block.Position()
	block.Advance(len(open))
	tex := readUntil(block, end)
	behind, _ := block.PeekLine()
	if open == "$" && !isDollarFormula(tex, behind) || !looksLikeMath(tex, open == `\[`) {
		block.SetPosition(number, at)
		return nil
	}
	return &formula{tex: tex}
}

// readUntil reads up to and past end. It returns "" if end does not follow within the limits.
func readUntil(block text.Reader, end string) string {
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

// isDollarFormula tells a formula from "$5 and $6": no space inside, no letter or digit after it.
func isDollarFormula(tex string, behind []byte) bool {
	first, _ := utf8.DecodeRuneInString(tex)
	last, _ := utf8.DecodeLastRuneInString(tex)
	after, _ := utf8.DecodeRune(behind)
	return !unicode.IsSpace(first) && !unicode.IsSpace(last) && after != '$' && !unicode.IsLetter(after) && !unicode.IsDigit(after)
}

// looksLikeMath tells formulas from words between the same delimiters.
func looksLikeMath(tex string, bracket bool) bool {
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
