package matrix

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestToHTML(t *testing.T) {
	for _, c := range []struct{ name, md, want string }{
		{"plain text needs none", "just words", ""},
		{"plain text with signs needs none", "1 < 2 & \"so\" on", ""},
		{"bold", "**b** and ~~s~~", "<strong>b</strong> and <del>s</del>"},
		{"lines are lines", "one\ntwo", "one<br>\ntwo"},
		{"code keeps its language", "```go\nx := \"<a>\"\n```", "<pre><code class=\"language-go\">x := &#34;&lt;a&gt;&#34;\n</code></pre>"},
		{"table", "|a|b|\n|-|:-:|\n|1|2|", "<table>\n<thead>\n<tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>"},
		{"numbered list keeps its start", "3. c\n4. d", "<ol start=\"3\">\n<li>c</li>\n<li>d</li>\n</ol>"},
		{"link", "[x](https://example.org/?a=b)", `<a href="https://example.org/?a=b">x</a>`},
		{"matrix link", "[x](matrix:u/a:b)", `<a href="matrix:u/a:b">x</a>`},
		{"script link", "[x](javascript:alert(1))", "x"},
		{"data link", "[x](data:text/html;base64,xx)", "x"},
		{"telephone link", "[x](tel:123)", "x"},
		{"relative link", "[x](/etc/passwd)", "x"},
		{"picture", "![x](https://example.org/spy.png)", ""},
		{"raw HTML", "a <script>alert(1)</script> b", "a alert(1) b"},
		{"forged reply loses its tag", "<mx-reply>x</mx-reply>\n\n**y**", "<p>x</p>\n<p><strong>y</strong></p>"},
		{"room ping stays text", "@room **now**", "@room <strong>now</strong>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := toHTML(c.md); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestDeepNestingIsSentAsText(t *testing.T) {
	for name, md := range map[string]string{
		"quotes":   strings.Repeat(">", 10_000) + " deep",
		"lists":    strings.Repeat("- ", 5_000) + "deep",
		"emphasis": strings.Repeat("*a ", 5_000) + strings.Repeat("*", 5_000),
		"brackets": strings.Repeat("[", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			out := toHTML(md)
			for _, tag := range []string{"<blockquote>", "<ul>", "<em>"} {
				if n := strings.Count(out, tag); n > 100 {
					t.Errorf("%d times %s", n, tag)
				}
			}
		})
	}
}

func TestSplit(t *testing.T) {
	long := strings.Repeat("word & <tag> \"quoted\" ", 400)
	code := "```go\n" + strings.Repeat("if a < b { return \"x\" }\n", 2000) + "```"
	for _, c := range []struct{ name, md string }{
		{"short", "short"},
		{"paragraphs", strings.Repeat(long+"\n\n", 20)},
		{"one line", strings.Repeat("🙂 & 日本語 <", 20_000)},
		{"one fence", code},
		{"text and fences", "intro\n\n" + code + "\n\nbetween\n\n" + code + "\n\nend"},
		{"open fence", strings.TrimSuffix(code, "```")},
		{"fence with blank lines", "~~~\n" + strings.Repeat("line\n\n\n", 9000) + "~~~"},
		{"all special", strings.Repeat("<>&\"", 30_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := split(c.md, partSize)
			words := func(s string) []string {
				return slices.DeleteFunc(strings.Fields(s), func(w string) bool { return strings.HasPrefix(w, "```") || strings.HasPrefix(w, "~~~") })
			}
			var got []string
			for i, p := range parts {
				if n := size(p); n > partSize {
					t.Errorf("part %d costs %d, limit %d", i, n, partSize)
				}
				if !utf8.ValidString(p) {
					t.Errorf("part %d is cut inside a character", i)
				}
				if m := strings.Count(p, "```"); m%2 == 1 && c.name != "open fence" {
					t.Errorf("part %d leaves a fence open", i)
				}
				got = append(got, words(p)...)
			}
			if want := words(c.md); strings.Join(got, "") != strings.Join(want, "") {
				t.Errorf("text changed: %d words became %d", len(want), len(got))
			}
			if len(c.md) > 2*partSize && len(parts) < 2 {
				t.Error("not split at all")
			}
		})
	}
}

// specTags are the tags the Matrix specification allows, less img and font.
var specTags = strings.Fields("del h1 h2 h3 h4 h5 h6 blockquote p a ul ol sup sub li b i u strong em s code hr br div table thead tbody tr th td caption pre span details summary")

var (
	tagShape = regexp.MustCompile(`<[^>]*>`)
	goodTag  = regexp.MustCompile(`^</?([a-z0-9]+)( (?:href|class|start)="[^"<>]*")* ?/?>$`)
	goodHref = regexp.MustCompile(`href="([^"]*)"`)
)

func FuzzFormat(f *testing.F) {
	for _, s := range []string{
		"", "plain", "**b** `c` [l](https://x.y)", "<script>alert(1)</script>", "[x](javascript:alert(1))", "[x](JaVaScRiPt&#58;alert(1))",
		"<https://a.b/\"onclick=x>", "![i](mxc://a/b)", "|a|b|\n|-|-|\n|<b>|`|`|", "```\"><img src=x>\ny\n```", "> > > q", "<a href='x'>", "a\x00b\xff", "&lt;script&gt;", "[a]: javascript:x\n\n[a]",
		"<mx-reply>x</mx-reply>", "@room", "\u202e", "1. a\n   - b\n", "<![CDATA[x]]>", "<!-- c -->", "[x](<matrix:u/a b>)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, md string) {
		out := toHTML(md)
		if !utf8.ValidString(out) {
			t.Fatalf("no UTF-8: %q", out)
		}
		for _, tag := range tagShape.FindAllString(out, -1) {
			m := goodTag.FindStringSubmatch(tag)
			if m == nil || !slices.Contains(specTags, m[1]) {
				t.Errorf("%q became %q with the tag %s", md, out, tag)
			}
			for _, h := range goodHref.FindAllStringSubmatch(tag, -1) {
				scheme, _, _ := strings.Cut(strings.ToLower(h[1]), ":")
				if !slices.Contains([]string{"http", "https", "mailto", "matrix"}, scheme) {
					t.Errorf("%q became a link to %q", md, h[1])
				}
			}
		}
		for _, p := range split(md, 2000) {
			if n := jsonSize(p) + jsonSize(formatted(p, 2000)); n > 2000 {
				t.Errorf("a part of %q costs %d", md, n)
			}
		}
	})
}
