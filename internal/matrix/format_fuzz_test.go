package matrix

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// specHTML is what the Matrix specification says a formatted body may contain,
// elements with their attributes; without img, which is never sent.
var specHTML = map[string][]string{
	"del": nil, "h1": nil, "h2": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil, "blockquote": nil, "p": nil,
	"a": {"target", "href"}, "ul": nil, "ol": {"start"}, "sup": nil, "sub": nil, "li": nil, "b": nil, "i": nil, "u": nil,
	"strong": nil, "em": nil, "s": nil, "code": {"class"}, "hr": nil, "br": nil, "div": {"data-mx-maths"},
	"table": nil, "thead": nil, "tbody": nil, "tr": nil, "th": nil, "td": nil, "caption": nil, "pre": nil,
	"span": {"data-mx-bg-color", "data-mx-color", "data-mx-spoiler", "data-mx-maths"}, "details": nil, "summary": nil,
}

// specSchemes are those that links may have, and matrix, which leads to rooms.
var specSchemes = []string{"https", "http", "ftp", "mailto", "magnet", "matrix"}

// specDepth is how deep elements may be nested.
const specDepth = 100

// checkHTML holds what became of md to the specification, as a browser reads it
// and tag by tag.
func checkHTML(t *testing.T, md, out string) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Fatalf("no UTF-8: %q", out)
	}
	if limit := 64*len(md) + 1000; len(out) > limit {
		t.Errorf("%d bytes became %d", len(md), len(out))
	}
	tags := html.NewTokenizer(strings.NewReader(out))
	for kind := tags.Next(); kind != html.ErrorToken; kind = tags.Next() {
		token := tags.Token()
		switch kind {
		case html.CommentToken, html.DoctypeToken:
			t.Errorf("%q became %q with %s", md, out, token)
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			checkTag(t, md, token)
		}
	}
	nodes, err := html.ParseFragment(strings.NewReader(out), &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body})
	if err != nil {
		t.Fatalf("%q is no HTML: %v", out, err)
	}
	for _, n := range nodes {
		checkNode(t, md, n, 1, false)
	}
}

func checkTag(t *testing.T, md string, token html.Token) {
	t.Helper()
	attributes, ok := specHTML[token.Data]
	if !ok {
		t.Errorf("%q became the tag %s", md, token)
	}
	for _, a := range token.Attr {
		switch {
		case !slices.Contains(attributes, a.Key):
			t.Errorf("%q became the tag %s", md, token)
		case a.Key == "class" && !strings.HasPrefix(a.Val, "language-"):
			t.Errorf("%q became code of the class %q", md, a.Val)
		case a.Key == "href":
			u, err := url.Parse(a.Val)
			if err != nil || !slices.Contains(specSchemes, u.Scheme) {
				t.Errorf("%q became a link to %q", md, a.Val)
			} else if strings.HasPrefix(u.Fragment, "/@") && strings.EqualFold(u.Host, "matrix.to") || strings.HasPrefix(u.Opaque, "u/") {
				t.Errorf("%q became a mention: %q", md, a.Val)
			}
		}
	}
}

func checkNode(t *testing.T, md string, n *html.Node, depth int, code bool) {
	t.Helper()
	if depth > specDepth {
		t.Fatalf("%q is nested %d deep", md, depth)
	}
	if n.Type == html.TextNode && !code {
		for at := range n.Data {
			if len(n.Data) >= at+5 && strings.EqualFold(n.Data[at:at+5], "@room") && !inWord(n.Data[:at], n.Data[at+5:]) {
				t.Errorf("%q would notify a room: %q", md, n.Data)
			}
		}
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		checkNode(t, md, c, depth+1, code || n.Data == "code")
	}
}

// inWord tells whether a word goes on before or behind something, as far as
// notifications go.
func inWord(before, behind string) bool {
	word := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return before != "" && word(before[len(before)-1]) || behind != "" && word(behind[0])
}

// difficult are texts to begin with.
var difficult = []string{
	"", "plain", "**b** `c` [l](https://x.y)", "<script>alert(1)</script>", "[x](javascript:alert(1))", "[x](JaVaScRiPt&#58;alert(1))",
	"<https://a.b/\"onclick=x>", "![i](mxc://a/b)", "|a|b|\n|-|-|\n|<b>|`|`|", "```\"><img src=x>\ny\n```", "> > > q", "<a href='x'>", "a\x00b\xff", "&lt;script&gt;", "[a]: javascript:x\n\n[a]",
	"<mx-reply>x</mx-reply>", "@room", "\u202e", "1. a\n   - b\n", "<![CDATA[x]]>", "<!-- c -->", "[x](<matrix:u/a b>)",
	"<img src=\"https://a.b\" alt='\"><script>'>", "<b>a<i>b</b>c</i>", "H<sub>2</sub>O<br/>", "- [ ] a\n- [x] b", "$a$ $$b$$ \\(c\\) \\[d\\]", "$$\n\"><script>\n$$", "\\[\na", "a[^1]\n\n[^1]: b",
	"[a]: https://matrix.to/#/@a:b\n\n[a] ![a]", "<https://matrix.to/#/@a:b>", "1. ```sh\n   a\n   ```\n2. b", "> ```\n> a\n\n```", "`````\n```\n~~~\n`````", "# h\n\n|a|\n|-|\n", "||||\n|-|-|-|\n|\n|", "<mx-reply><blockquote>a</blockquote></mx-reply>b", "[a](https://app.x/#/user/@a:b)",
	"**@room** `@room` @ROOM", "![![a](b)](c)", "<img src=a><img src=b alt=>", "||a *b|| c*", "|||a|| ||b||||", "> ||a\n||", "|a|||b||\n|-|-|\n||a||", "a\n===\n- b\n\n      c",
}

// Holds F42, M51.
func FuzzHTML(f *testing.F) {
	for _, s := range difficult {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) { checkHTML(t, md, toHTML(md)) })
}

// FuzzBeginning repeats a text until it is too large.
// Holds F41.
func FuzzBeginning(f *testing.F) {
	for i, s := range difficult {
		f.Add(s, uint16(i*20))
	}
	f.Fuzz(func(t *testing.T, md string, times uint16) {
		checkBeginning(t, strings.Repeat(md, min(int(times)+1, 1+8000/(len(md)+1))), smallest)
	})
}

// TestHostileHTML: what is slow or becomes large elsewhere stays within bounds.
// Holds F42, M52.
func TestHostileHTML(t *testing.T) {
	for name, md := range hostile(partSize - 10) {
		t.Run(name, func(t *testing.T) { checkHTML(t, md, toHTML(md)) })
	}
}
