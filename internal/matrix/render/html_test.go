package render

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Holds F42, M48, M50, M51.
func TestToHTML(t *testing.T) {
	for _, c := range []struct{ name, md, want string }{
		{"plain text needs none", "just words", ""},
		{"plain text with signs needs none", "1 < 2 & \"so\" on", ""},
		{"bold", "**b** and ~~s~~", "<strong>b</strong> and <del>s</del>"},
		{"lines are lines", "one\ntwo", "one<br>\ntwo"},
		{"code keeps its language", "```go\nx := \"<a>\"\n```", "<pre><code class=\"language-go\">x := &#34;&lt;a&gt;&#34;\n</code></pre>"},
		{"table", "|a|b|\n|-|:-:|\n|1|2|", "<table><thead><tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead><tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>"},
		{"table that has only begun", "|a|b|\n|-|-|", "<table><thead><tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead><tbody></tbody></table>"},
		{"table with line breaks in a cell", "|a|\n|-|\n|1<br>2|", "<table><thead><tr>\n<th>a</th>\n</tr>\n</thead><tbody>\n<tr>\n<td>1<br>2</td>\n</tr>\n</tbody>\n</table>"},
		{"numbered list keeps its start", "3. c\n4. d", "<ol start=\"3\">\n<li>c</li>\n<li>d</li>\n</ol>"},
		{"list with boxes", "- [ ] to do\n- [x] done", "<ul>\n<li>☐ to do</li>\n<li>☑ done</li>\n</ul>"},
		{"footnotes are not lost", "a[^1] *b*\n\n[^1]: Smith", "<p>a[^1] <em>b</em></p>\n<p>[^1]: Smith</p>"},
		{"sources that nothing refers to are not lost", "*see*\n\n[1]: https://example.org/a\n[2]: https://example.org/b", "<p><em>see</em></p>\n<p>[1]: https://example.org/a</p>\n<p>[2]: https://example.org/b</p>"},
		{"link by reference", "see [it][1]\n\n[1]: https://example.org", `see <a href="https://example.org">it</a>`},
		{"link", "[x](https://example.org/?a=b)", `<a href="https://example.org/?a=b">x</a>`},
		{"link to a room", "[x](https://matrix.to/#/#room:example.org) [y](matrix:r/room:example.org)", `<a href="https://matrix.to/#/%23room:example.org">x</a> <a href="matrix:r/room:example.org">y</a>`},
		{"link to somebody is text", "[Ann](https://matrix.to/#/@ann:example.org) **x**", "Ann <strong>x</strong>"},
		{"link to somebody, encoded", "[Ann](https://www.MATRIX.to/#/%40ann:example.org) **x**", "Ann <strong>x</strong>"},
		{"link to somebody by the matrix scheme", "[Ann](matrix:u/ann:example.org) **x**", "Ann <strong>x</strong>"},
		{"link to somebody in a web client", "[Ann](https://app.example.org/#/user/@ann:example.org) **x**", "Ann <strong>x</strong>"},
		{"link to somebody in brackets", "<https://matrix.to/#/@ann:example.org> **x**", "https://matrix.to/#/@ann:example.org <strong>x</strong>"},
		{"link to somebody by reference", "[Ann][1] **x**\n\n[1]: https://matrix.to/#/@ann:example.org", "Ann <strong>x</strong>"},
		{"script link", "[x](javascript:alert(1))", "x"},
		{"script link in disguise", "[x](JaVa&#115;cript:alert(1)) [y](java\tscript:alert(1)) <javascript:alert(1)>", "x [y](java\tscript:alert(1)) javascript:alert(1)"},
		{"data link", "[x](data:text/html;base64,xx)", "x"},
		{"telephone link", "[x](tel:123)", "x"},
		{"relative link", "[x](/etc/passwd)", "x"},
		{"picture", "![x](https://example.org/spy.png)", `<a href="https://example.org/spy.png">x</a>`},
		{"picture that says nothing", "![](https://example.org/spy.png)", `<a href="https://example.org/spy.png">https://example.org/spy.png</a>`},
		{"picture in a link", "[![x](https://example.org/spy.png)](https://example.org)", `<a href="https://example.org">x</a>`},
		{"picture of a script", "![x](javascript:alert(1)) **y**", "x <strong>y</strong>"},
		{"picture as a tag", `<img src="spy.png" onerror="alert(1)"> *a*`, `&lt;img src=&#34;spy.png&#34; onerror=&#34;alert(1)&#34;&gt; <em>a</em>`},
		{"script", "a <script>alert(1)</script> *b*", "a &lt;script&gt;alert(1)&lt;/script&gt; <em>b</em>"},
		{"script on lines of its own", "<script>\nalert(1)\n</script>\n\n*b*", "<p>&lt;script&gt;<br>\nalert(1)<br>\n&lt;/script&gt;</p>\n<p><em>b</em></p>"},
		{"tags with attributes", `<b onclick="x">y</b> *z*`, "&lt;b onclick=&#34;x&#34;&gt;y&lt;/b&gt; <em>z</em>"},
		{"tags that change how words look", "H<sub>2</sub>O, x<SUP>2</SUP> <u>u</u> <kbd>F1</kbd>", "H<sub>2</sub>O, x<sup>2</sup> <u>u</u> <code>F1</code>"},
		{"tags that close nothing", "a</sub> <b>c <i>d</b> *e*", "a&lt;/sub&gt; &lt;b&gt;c &lt;i&gt;d&lt;/b&gt; <em>e</em>"},
		{"comment", "a <!-- b --> *c*", "a &lt;!-- b --&gt; <em>c</em>"},
		{"colours", `<span data-mx-color="#ff0000">a</span> *c*`, "&lt;span data-mx-color=&#34;#ff0000&#34;&gt;a&lt;/span&gt; <em>c</em>"},
		{"forged reply is words", "<mx-reply>x</mx-reply>\n\n**y**", "<p>&lt;mx-reply&gt;x&lt;/mx-reply&gt;</p>\n<p><strong>y</strong></p>"},
		{"room ping is broken up", "@room, @Room **now**; a@room.org", "@\u2060room, @\u2060Room <strong>now</strong>; a@room.org"},
		{"room ping in code", "`@room` *@room*", "<code>@\u2060room</code> <em>@\u2060room</em>"},
		{"only a room ping", "@room", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := toHTML(c.md); got != c.want {
				t.Errorf("the HTML: got %v, want %v", got, c.want)
			}
		})
	}
}

// inline returns the HTML of a formula.
func inline(tex string) string {
	return `<span data-mx-maths="` + tex + `"><code>` + tex + `</code></span>`
}

// Holds M49.
func TestMaths(t *testing.T) {
	for _, c := range []struct{ name, md, want string }{
		{"inline", "so $x^2$ it is", "so " + inline("x^2") + " it is"},
		{"a letter", "let $n$ be", "let " + inline("n") + " be"},
		{"inline with parentheses", `so \(a_1 + a_2\) it is`, "so " + inline("a_1 + a_2") + " it is"},
		{"two of them", "$a_1$ and $b_2$.", inline("a_1") + " and " + inline("b_2") + "."},
		{"display within a line", "so $$x^2$$ it is", "so " + inline("x^2") + " it is"},
		{"display with spaces", `so \[ x = 1 \] it is`, "so " + inline("x = 1") + " it is"},
		{"signs of HTML", `$a<b$`, inline("a&lt;b")},
		{"a dollar inside", `$c = 5\$$`, inline(`c = 5\$`)},
		{"block on one line", "so\\n\\n$$x^2$$", "<p>so</p>\n<p>" + inline("x^2") + "</p>"},
		{"block", "$$\nx = 1\n$$", inline("x = 1")},
		{"block with brackets", "\\[\nx = 1 \\\\\ny = 2\n\\]", inline("x = 1 \\\\\ny = 2")},
		{"block right under words", "so\n$$\nx^2\n$$\n*it* is", "so<br>\n" + inline("x^2") + "<br>\n<em>it</em> is"},
		{"block with a full stop", "$$x^2$$.", inline("x^2") + "."},
		{"words behind a block", "$$\nx^2\n$$ for all x", inline("x^2") + " for all x"},
		{"block in a list", "1. so\n   $$\n   x^2\n   $$\n2. it is", "<ol>\n<li>so<br>\n" + inline("x^2") + "</li>\n<li>it is</li>\n</ol>"},
		{"block in a quotation", "> $$\n> x^2\n> $$", "<blockquote>\n<p>" + inline("x^2") + "</p>\n</blockquote>"},
		{"block that its quotation cuts off", "> $$\n> x^2\n\n$$ *y*", "<blockquote>\n<p>$$<br>\nx^2</p>\n</blockquote>\n<p>$$ <em>y</em></p>"},
		{"block with a blank line in a quotation", "> $$\n> x^2\n>\n> $$ *y*", "<blockquote>\n<p>$$<br>\nx^2</p>\n<p>$$ <em>y</em></p>\n</blockquote>"},
		{"prices", "$5 and $6", ""},
		{"prices, the sign behind", "5$ or 6$", ""},
		{"a price and a sign behind", "$5 or 6$ at most", ""},
		{"prices with a currency", "US$5 and US$6 are less than A$9_$", ""},
		{"price ranges", "$5-$6, $5/$6", ""},
		{"variables", "$HOME and $PATH, $HOME/bin:$PATH", ""},
		{"a process", "kill $$ and $$ again", ""},
		{"escaped dollars", `\$x^2\$`, "$x^2$"},
		{"escaped brackets", `\[1\] and \[citation needed\] and file\(s\)`, "[1] and [citation needed] and file(s)"},
		{"code", "`$x^2$` and `\\(y\\)`", `<code>$x^2$</code> and <code>\(y\)</code>`},
		{"code inside", "$a `b` c$ =", "$a <code>b</code> c$ ="},
		{"code block", "```\n$$\nx^2\n$$\n```", "<pre><code>$$\nx^2\n$$\n</code></pre>"},
		{"indented code", "a\n\n    $$x^2$$", "<p>a</p>\n<pre><code>$$x^2$$\n</code></pre>"},
		{"block without an end", "$$\nx^2\n\n*so*", "<p>$$<br>\nx^2</p>\n<p><em>so</em></p>"},
		{"nothing in it", "$$ $$ and $$$$ and \\[ \\] *x*", "$$ $$ and $$$$ and [ ] <em>x</em>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			md := strings.ReplaceAll(c.md, `\n\n`, "\n\n")
			if got := toHTML(md); got != c.want {
				t.Errorf("the HTML: got %v, want %v", got, c.want)
			}
			if got := PlainBody(md); got != md {
				t.Errorf("the plain body became %v, want %v", got, md)
			}
		})
	}
}

// specHTML are the elements and attributes that the Matrix specification allows in formatted_body, without
// img, which is never sent.
var specHTML = map[string][]string{
	"del": nil, "h1": nil, "h2": nil, "h3": nil, "h4": nil, "h5": nil, "h6": nil, "blockquote": nil, "p": nil,
	"a": {"target", "href"}, "ul": nil, "ol": {"start"}, "sup": nil, "sub": nil, "li": nil, "b": nil, "i": nil, "u": nil,
	"strong": nil, "em": nil, "s": nil, "code": {"class"}, "hr": nil, "br": nil, "div": nil,
	"table": nil, "thead": nil, "tbody": nil, "tr": nil, "th": nil, "td": nil, "caption": nil, "pre": nil,
	"span": {"data-mx-bg-color", "data-mx-color", "data-mx-spoiler", "data-mx-maths"}, "details": nil, "summary": nil,
}

// specSchemes are the allowed schemes of links, and matrix for links to rooms.
var specSchemes = []string{"https", "http", "ftp", "mailto", "magnet", "matrix"}

// specDepth limits nested elements.
const specDepth = 100

// checkHTML checks the HTML of md against the specification, as a browser parses it and tag by tag.
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

// inWord reports whether before or behind continue a word, by the rules of notifications.
func inWord(before, behind string) bool {
	word := func(c byte) bool {
		return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	}
	return before != "" && word(before[len(before)-1]) || behind != "" && word(behind[0])
}

// difficult are seed texts.
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
		checkBeginning(t, strings.Repeat(md, min(int(times)+1, 1+8000/(len(md)+1))), 4000)
	})
}

// TestHostileHTML: texts that are slow or large in other renderers stay within limits.
// Holds F42, M52.
func TestHostileHTML(t *testing.T) {
	for name, md := range hostile(MaxSize - 10) {
		t.Run(name, func(t *testing.T) { checkHTML(t, md, toHTML(md)) })
	}
}

const fileNote = "\n\n*The rest is in a file.*"

// checkBeginning checks that Truncate's result fits, is a prefix, and has no open code block.
func checkBeginning(t *testing.T, md string, limit int) string {
	t.Helper()
	got := Truncate(md, limit, fileNote)
	if n := Size(got); n > limit {
		t.Errorf("it costs %d, limit %d: %.200q", n, limit, got)
	}
	said, ok := strings.CutSuffix(got, fileNote)
	if open := openFence(said); open != "" || !ok {
		t.Errorf("it leaves %q open", open)
	}
	if !strings.HasPrefix(md, said) {
		said = said[:max(0, strings.LastIndex(said, "\n"))] // a fence was closed
	}
	if !strings.HasPrefix(md, said) || utf8.ValidString(md) && !utf8.ValidString(said) {
		t.Errorf("it is not the beginning: %.200q", said)
	}
	return said
}

// Holds F41, M46.
func TestBeginning(t *testing.T) {
	code := strings.Repeat("if a < b { return \"x\" }\n", 200)
	var rows, items strings.Builder
	for i := range 300 {
		fmt.Fprintf(&rows, "| %d | a cell with **words** | and another |\n", i+1)
		fmt.Fprintf(&items, "%d. An item of a list, with *some* words.\n", i+1)
	}
	for _, c := range []struct{ name, md, end string }{
		{"paragraphs", strings.Repeat("A paragraph with words.\n\n", 500), "words."},
		{"code", "```go\n" + code + "```", "}"},
		{"code in tildes", "~~~~ go run\n" + code + "~~~~", "}"},
		{"code that holds fences", "````md\n" + strings.Repeat("```go\nx := 1\n```\n\n", 300) + "````", "```"},
		{"code in a list", "1. ```sh\n   " + strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n   ") + "\n   ```\n2. then", "}"},
		{"code in a quotation", "> ```sh\n> " + strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n> ") + "\n> ```", "}"},
		{"words in one-line fences", strings.Repeat("```a``` words and words\n", 300), "words"},
		{"table", "| n | what | more |\n|--:|---|---|\n" + rows.String(), "|"},
		{"list", items.String(), "words."},
		{"a long line", strings.Repeat("a word and ", 2000), ""},
		{"no borders at all", strings.Repeat("日本語の文章。", 2000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := checkBeginning(t, c.md, 4000)
			if !strings.HasSuffix(said, c.end) {
				t.Errorf("it ends with %q", said[len(said)-20:])
			}
			out := toHTML(Truncate(c.md, 4000, fileNote))
			if Size(said) < 4000/3 || !strings.HasSuffix(out, "<p><em>The rest is in a file.</em></p>") {
				t.Errorf("it costs %d, and ends as %q", Size(said), out[max(0, len(out)-100):])
			}
		})
	}
}

// hostile are texts of about n bytes that are slow to render or become very large without limits.
func hostile(n int) map[string]string {
	texts := map[string]string{}
	for name, s := range map[string]string{
		"quotations": ">", "quotations with space": "> ", "items": "- ", "numbers": "1. ", "brackets": "[", "closing brackets": "]", "pictures": "![",
		"links": "[a](", "links in angles": "[a](<b", "links in links": "[[]()]()", "reference links": "[a][b]", "emphasis": "*a ", "both emphases": "*a_ ",
		"strong emphasis": "a**b_c* ", "underlines": "_a __b ", "struck out": "~~a ", "angles": "<", "instructions": "<?", "data": "<![CDATA[", "declarations": "<!A ",
		"comments": "<!--", "tags": `<a href="`, "open tags": "<b>", "closing tags": "</b>", "pairs of tags": "<b><i></b></i>", "pictures as tags": "<img src=a>", "backticks": "`a``b", "escapes": `\`, "entities": "&",
		"columns": "|a", "tables": "|a|b|\n|-|-|\n", "rows": "|a|\n|-|\n|b|\n", "headings": "# \n", "rules": "- - -\n", "tabs": "\t- a\n", "dollars": "$a ", "brackets of formulas": `\[a `,
		"lines of formulas": "\\[a\n", "double dollars": "$$a\n", "fences": "```\n", "fences in lists": "- ```\n", "definitions": "[a]: b\n\n", "uses": "[a] ", "short paragraphs": "a\n\n", "a line": "word ", "a word": "x",
		"carriage returns": "\r", "zero bytes": "\x00", "emoji": "🙂", "no UTF-8": "\xff", "room pings": "@room ",
	} {
		texts[name] = strings.Repeat(s, n/len(s))
	}
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		b.WriteString("e" + strings.Repeat("`", i%3000))
	}
	texts["backticks of all lengths"] = b.String()
	b.Reset()
	for i := 0; b.Len() < n; i++ {
		b.WriteString(strings.Repeat("  ", i%1000) + "- a\n")
	}
	texts["a staircase"] = b.String()
	texts["brackets in pairs"] = strings.Repeat("[", n/2) + "a" + strings.Repeat("]", n/2)
	texts["emphasis in emphasis"] = strings.Repeat("*a **a ", n/16) + strings.Repeat("b** b* ", n/16)
	texts["empty cells"] = "|" + strings.Repeat("a|", n/8) + "\n|" + strings.Repeat("-|", n/8) + "\n" + strings.Repeat("|\n", n/4)
	texts["one long address"] = "[a]: http://" + strings.Repeat("x", n/2) + "\n\n" + strings.Repeat("[a]", n/6)
	texts["one long title"] = "[a]: http://x \"" + strings.Repeat("x", n/2) + "\"\n\n" + strings.Repeat("[a]", n/6)
	texts["a long fence"] = strings.Repeat("```"+strings.Repeat("x", 3000)+"\n", n/3000)
	return texts
}

// TestHostileTexts: any text of a model can be truncated, even a megabyte.
// Holds F42, M52.
func TestHostileTexts(t *testing.T) {
	texts, megabytes := hostile(70_000), hostile(1<<20)
	for _, large := range []string{"short paragraphs", "a word", "fences in lists", "uses"} {
		texts["a megabyte of "+large] = megabytes[large]
	}
	for name, md := range texts {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			if checkBeginning(t, md, MaxSize); time.Since(begun) > 2*time.Minute {
				t.Error("it takes more than two minutes")
			}
		})
	}
}
