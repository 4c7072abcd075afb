package matrix

import (
	"bytes"
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	renderer "github.com/yuin/goldmark/renderer/html"
)

// partSize is how large one event's text may be: Markdown and HTML together,
// as JSON. The server's limit is 65,536 bytes for the whole event, of which
// encryption takes a third.
const partSize = 40_000

// maxDepth of nested HTML; clients cut deeper nesting off.
const maxDepth = 60

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithRendererOptions(renderer.WithHardWraps()), // a line break in a chat is one; raw HTML is left out
)

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
	return p
}

// toHTML renders Markdown for clients that show formatting. It is empty when
// the text needs none, or cannot be shown safely.
func toHTML(md string) string {
	md = strings.ToValidUTF8(md, "\uFFFD")
	var buf bytes.Buffer
	if err := markdown.Convert([]byte(md), &buf); err != nil {
		return ""
	}
	out := strings.TrimRight(allowed.Sanitize(buf.String()), "\n")
	if tooDeep(out) {
		return ""
	}
	if in, ok := strings.CutPrefix(out, "<p>"); ok {
		if in, ok = strings.CutSuffix(in, "</p>"); ok && !strings.Contains(in, "<p>") {
			out = in
		}
	}
	if out == html.EscapeString(md) {
		return ""
	}
	return out
}

// voidTag matches tags that nest nothing.
var anyTag = regexp.MustCompile(`<(/?)([a-z0-9]+)[^>]*?>`)

func tooDeep(s string) bool {
	depth := 0
	for _, t := range anyTag.FindAllStringSubmatch(s, -1) {
		switch {
		case t[2] == "br" || t[2] == "hr":
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

// formatted is toHTML, or nothing when both together are too large for an
// event: the text as it was written is worth more than its looks.
func formatted(md string, limit int) string {
	html := toHTML(md)
	if jsonSize(md)+jsonSize(html) > limit {
		return ""
	}
	return html
}

// size is what a text costs in an event.
func size(md string) int { return jsonSize(md) + jsonSize(toHTML(md)) }

// between is what the border between two blocks may cost: a blank line, and
// the tags of a paragraph that alone would need none.
const between = 64

func jsonSize(s string) int {
	b, err := json.Marshal(s)
	if err != nil {
		return len(s)
	}
	return len(b)
}

// split cuts a text into parts that fit into one event each: between
// paragraphs, else between lines, else anywhere between two characters. A
// fenced block that must be cut is closed and opened again.
func split(md string, limit int) []string {
	md = strings.ToValidUTF8(md, "\uFFFD")
	if size(md) <= limit {
		return []string{md}
	}
	var parts []string
	var part strings.Builder
	used := 0
	flush := func() {
		if s := strings.Trim(part.String(), "\n"); s != "" {
			parts = append(parts, s)
		}
		part.Reset()
		used = 0
	}
	for _, b := range blocks(md) {
		cost := size(b) + between
		if used > 0 && used+cost > limit {
			flush()
		}
		if cost <= limit {
			if used > 0 {
				part.WriteString("\n\n")
			}
			part.WriteString(b)
			used += cost
			continue
		}
		for _, piece := range cut(b, limit) {
			flush()
			part.WriteString(piece)
			used = size(piece) + between
		}
	}
	flush()
	if len(parts) == 0 {
		return []string{clip(md, limit/8)}
	}
	return parts
}

// fence returns the marker of a line that opens a fenced block.
func fence(line string) (marker string, ok bool) {
	t := strings.TrimLeft(line, " ")
	for _, c := range []string{"`", "~"} {
		if n := len(t) - len(strings.TrimLeft(t, c)); n >= 3 {
			return t[:n], true
		}
	}
	return "", false
}

// blocks cuts Markdown at blank lines outside fenced blocks.
func blocks(md string) []string {
	var out, cur []string
	open := ""
	end := func() {
		if len(cur) > 0 {
			out = append(out, strings.Join(cur, "\n"))
			cur = nil
		}
	}
	for line := range strings.SplitSeq(md, "\n") {
		m, is := fence(line)
		switch {
		case open != "":
			cur = append(cur, line)
			if is && strings.HasPrefix(m, open) && strings.Trim(strings.TrimSpace(line), m[:1]) == "" {
				open = ""
				end()
			}
			continue
		case is:
			end()
			open = m
		case strings.TrimSpace(line) == "":
			end()
			continue
		}
		cur = append(cur, line)
	}
	end()
	return out
}

// cut breaks one block that is too large, by lines, and a line by characters.
func cut(block string, limit int) []string {
	lines := strings.Split(block, "\n")
	head, tail := "", ""
	if m, ok := fence(lines[0]); ok {
		head, tail = lines[0]+"\n", "\n"+m
		lines = lines[1:]
		if n := len(lines); n > 0 && strings.TrimSpace(lines[n-1]) == m {
			lines = lines[:n-1]
		}
	}
	room := limit - size(head+tail) - 64
	if room < limit/2 { // a fence line that long is none
		head, tail, room = "", "", limit-64
	}
	var out []string
	var cur strings.Builder
	used := 0
	flush := func() {
		if cur.Len() > 0 {
			out = append(out, head+strings.TrimSuffix(cur.String(), "\n")+tail)
		}
		cur.Reset()
		used = 0
	}
	for _, line := range lines {
		for _, piece := range chop(line, room/24) {
			cost := 2*jsonSize(html.EscapeString(piece)) + 16
			if used > 0 && used+cost > room {
				flush()
			}
			cur.WriteString(piece)
			used += cost
		}
		cur.WriteByte('\n')
	}
	flush()
	return out
}

// chop cuts a line into pieces of at most n bytes, between characters.
func chop(line string, n int) []string {
	var out []string
	for len(line) > n {
		at := n
		for at > 0 && !utf8.RuneStart(line[at]) {
			at--
		}
		out = append(out, line[:at])
		line = line[at:]
	}
	return append(out, line)
}
