package render

import (
	"bytes"
	"encoding/json"
	"html"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	rendered "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"reverie/internal/lazyregexp"
)

// MaxSize limits the text of one event: Markdown and HTML together, as JSON. The specification
// limits the whole event to 65,536 bytes; encryption takes a third of that.
const MaxSize = 40_000

// maxDepth limits nested HTML; clients cut deeper nesting off.
const maxDepth = 60

// markdown has no HTML blocks: text between tags is Markdown, and each tag is handled on its own by
// renderTag.
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(slices.DeleteFunc(parser.DefaultBlockParsers(), func(p util.PrioritizedValue) bool {
			return p.Value == parser.NewHTMLBlockParser()
		})...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(formulaParser{}, 50),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 60))...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(safeNodes{}, 100)),
	)),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithRendererOptions(
		rendered.WithHardWraps(), // line breaks are kept in a chat
		renderer.WithNodeRenderers(util.Prioritized(nodeRenderer{}, 50)),
	),
)

// allowed is the HTML that the Matrix specification allows, without images and colours. Clients
// would fetch images from any server.
var allowed = allowedHTML()

var languageClass = lazyregexp.New(`^language-[[A-Za-z0-9_+#.-]+$`)

func allowedHTML() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("del", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "p", "ul", "ol", "li", "sup", "sub",
		"b", "i", "u", "strong", "em", "s", "code", "hr", "br", "div", "pre", "span", "caption",
		"table", "thead", "tbody", "tr", "th", "td", "details", "summary")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto", "matrix")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowAttrs("class").Matching(languageClass()).OnElements("code")
	p.AllowAttrs("data-mx-maths").OnElements("span")
	return p
}

// toHTML returns the HTML of a text whose Markdown fits into one event, or "".
func toHTML(md string) string {
	md = strings.ToValidUTF8(md, "\uFFFD")
	if len(md) > MaxSize || excessive(md) {
		return ""
	}
	out := PlainBody(strings.TrimRight(allowed.Sanitize(strictTables.Replace(convert(md))), "\n"))
	if tooDeep(out) {
		return ""
	}
	if in, ok := strings.CutPrefix(out, "<p>"); ok {
		if in, ok = strings.CutSuffix(in, "</p>"); ok && !strings.Contains(in, "<p>") {
			out = in
		}
	}
	if out == html.EscapeString(strings.TrimSpace(PlainBody(md))) {
		return ""
	}
	return out
}

// strictTables rewrites tables for strict clients: no white space before rows, and always a body.
var strictTables = strings.NewReplacer(
	"<table>\n<thead>\n<tr>", "<table><thead><tr>",
	"</thead>\n<tbody>", "</thead><tbody>",
	"</thead>\n</table>", "</thead><tbody></tbody></table>")

// convert returns "" if goldmark fails. Then the message is shown without formatting.
func convert(md string) (out string) {
	defer func() {
		if recover() != nil {
			out = ""
		}
	}()
	var buf bytes.Buffer
	if err := markdown.Convert([]byte(md), &buf); err != nil {
		return ""
	}
	return buf.String()
}

// nestMarker matches the marker of a quote or list item. The marker is at the beginning of a line.
var nestMarker = lazyregexp.New(`^[ \t]*(?:>|[-+*][ \t]|[0-9]{1,9}[.)][ \t])`)

// excessive reports whether rendering would be slow or the result much larger than md: a line with
// more nested quotes and lists than maxDepth, or table rows that get many empty cells.
func excessive(md string) bool {
	columns := 0
	for line := range strings.SplitSeq(md, "\n") {
		for depth := 0; ; depth++ {
			m := nestMarker().FindString(line)
			if m == "" {
				break
			}
			if depth == maxDepth {
				return true
			}
			line = line[len(m):]
		}
		if strings.Trim(line, "|-: \t\r\v\f") == "" {
			columns = max(columns, strings.Count(line, "|")+1)
		}
	}
	return columns*strings.Count(md, "\n") > 4*len(md)+1000
}

var anyTag = lazyregexp.New(`<(/?)([a-z0-9]+)[^>]*?>`)

func tooDeep(s string) bool {
	depth := 0
	for _, t := range anyTag().FindAllStringSubmatch(s, -1) {
		switch {
		case t[2] == "br" || t[2] == "hr": // void elements
		case t[1] == "/":
			depth--
		default:
			if depth++; depth > maxDepth {
				return true
			}
		}
	}
	return false
}

// roomPing matches text with which older clients notify a whole room, whatever m.mentions says.
var roomPing = lazyregexp.New(`(?i)(^|\W)@(room)\b`)

// PlainBody returns the plain text body: the Markdown itself. An invisible word joiner keeps @room from
// notifying everybody.
func PlainBody(md string) string { return roomPing().ReplaceAllString(md, "$1@\u2060$2") }

// HTML renders Markdown as formatted_body. It returns "" if the text needs no formatting, cannot be
// shown safely, or does not fit into one event together with its HTML.
func HTML(md string) string {
	html := toHTML(md)
	if JSONSize(PlainBody(md))+JSONSize(html) > MaxSize {
		return ""
	}
	return html
}

// Size returns the size of a text in an event, in bytes of JSON. A text that is too large counts
// without its HTML.
func Size(md string) int { return JSONSize(PlainBody(md)) + JSONSize(toHTML(md)) }

// JSONSize returns the size of a string as JSON, in bytes.
func JSONSize(s string) int {
	b, _ := json.Marshal(s) //nolint:errchkjson // a string
	return len(b)
}
