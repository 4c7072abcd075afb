package render

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	rendered "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// MaxSize is how large one event's text may be: Markdown and HTML together,
// as JSON. The server's limit is 65,536 bytes for the whole event, of which
// encryption takes a third.
const MaxSize = 40_000

// maxDepth of nested HTML; clients cut deeper nesting off.
const maxDepth = 60

// markdown knows no HTML blocks: Markdown between tags is Markdown, and the tags
// are looked at one by one (markup).
var markdown = goldmark.New(
	goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(blockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(formulas{}, 50),
			util.Prioritized(extension.NewTaskCheckBoxParser(), 60))...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
		parser.WithASTTransformers(util.Prioritized(plainly{}, 100)),
	)),
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithRendererOptions(
		rendered.WithHardWraps(), // a line break in a chat is one
		renderer.WithNodeRenderers(util.Prioritized(ownNodes{}, 50)),
	),
)

func blockParsers() []util.PrioritizedValue {
	return slices.DeleteFunc(parser.DefaultBlockParsers(), func(p util.PrioritizedValue) bool {
		return p.Value == parser.NewHTMLBlockParser()
	})
}

// allowed is what the Matrix specification lets a message contain, without
// pictures (they would be fetched from anywhere) and without colours.
var allowed = allowedHTML()

var languageClass = regexp.MustCompile(`^language-[A-Za-z0-9_+#.-]+$`)

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
	p.AllowAttrs("class").Matching(languageClass).OnElements("code")
	p.AllowAttrs("data-mx-maths").OnElements("span")
	return p
}

// toHTML is HTML for a text whose Markdown alone fits into one event.
func toHTML(md string) string {
	md = strings.ToValidUTF8(md, "\uFFFD")
	if len(md) > MaxSize || excessive(md) {
		return ""
	}
	out := Body(strings.TrimRight(allowed.Sanitize(tables.Replace(convert(md))), "\n"))
	if tooDeep(out) {
		return ""
	}
	if in, ok := strings.CutPrefix(out, "<p>"); ok {
		if in, ok = strings.CutSuffix(in, "</p>"); ok && !strings.Contains(in, "<p>") {
			out = in
		}
	}
	if out == html.EscapeString(strings.TrimSpace(Body(md))) {
		return ""
	}
	return out
}

// tables, as the strictest clients read them: no white space before the rows, and
// a body even while there is nothing in it yet.
var tables = strings.NewReplacer(
	"<table>\n<thead>\n<tr>", "<table><thead><tr>",
	"</thead>\n<tbody>", "</thead><tbody>",
	"</thead>\n</table>", "</thead><tbody></tbody></table>")

// convert is empty where the library fails: then a message is shown as it was
// written, and those after it are sent.
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

// nestMarker is a quotation's or list item's at the beginning of a line.
var nestMarker = regexp.MustCompile(`^[ \t]*(?:>|[-+*][ \t]|[0-9]{1,9}[.)][ \t])`)

// excessive tells whether rendering would take long, or make very much of little:
// a line that begins with more quotations and lists than can be shown, or rows
// that would be filled up with empty cells.
func excessive(md string) bool {
	columns := 0
	for line := range strings.SplitSeq(md, "\n") {
		for depth := 0; ; depth++ {
			m := nestMarker.FindString(line)
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

var anyTag = regexp.MustCompile(`<(/?)([a-z0-9]+)[^>]*?>`)

func tooDeep(s string) bool {
	depth := 0
	for _, t := range anyTag.FindAllStringSubmatch(s, -1) {
		switch {
		case t[2] == "br" || t[2] == "hr": // they nest nothing
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

// roomPing is what makes older clients notify a whole room, whatever the
// message says of whom it mentions.
var roomPing = regexp.MustCompile(`(?i)(^|\W)@(room)\b`)

// Body is the text for clients that show no formatting: Markdown as it was
// written. A word joiner, which nobody sees, keeps it from notifying everybody.
func Body(md string) string { return roomPing.ReplaceAllString(md, "$1@\u2060$2") }

// KeepQuote protects quoted lines at the beginning of a reply's body. Some clients
// take them for the copy of what is replied to and hide them.
func KeepQuote(body string) string {
	if strings.HasPrefix(body, ">") {
		return "\n" + body
	}
	return body
}

// HTML renders Markdown for clients that show formatting. It is empty when the text needs
// none, cannot be shown safely, or does not fit into one event together with its HTML.
func HTML(md string) string {
	html := toHTML(md)
	if JSONSize(Body(md))+JSONSize(html) > MaxSize {
		return ""
	}
	return html
}

// Size is what a text costs in an event. Of a text that is too large for one it
// is what it costs without its looks.
func Size(md string) int { return JSONSize(Body(md)) + JSONSize(toHTML(md)) }

// JSONSize is how many bytes a string has as JSON.
func JSONSize(s string) int {
	b, _ := json.Marshal(s) //nolint:errchkjson // a string
	return len(b)
}
