package matrix

import (
	"strings"
	"testing"
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
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// inline and block are how formulas leave.
func inline(tex string) string {
	return `<span data-mx-maths="` + tex + `"><code>` + tex + `</code></span>`
}

func block(tex string) string {
	return `<div data-mx-maths="` + tex + `"><code>` + tex + `</code></div>`
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

		{"block on one line", "so\\n\\n$$x^2$$", "<p>so</p>\n" + block("x^2")},
		{"block", "$$\nx = 1\n$$", block("x = 1")},
		{"block with brackets", "\\[\nx = 1 \\\\\ny = 2\n\\]", block("x = 1 \\\\\ny = 2")},
		{"block right under words", "so\n$$\nx^2\n$$\n*it* is", "<p>so</p>\n" + block("x^2") + "\n<p><em>it</em> is</p>"},
		{"block with a full stop", "$$x^2$$.", block("x^2.")},
		{"words behind a block", "$$\nx^2\n$$ for all x", block("x^2") + "\n<p>for all x</p>"},
		{"block in a list", "1. so\n   $$\n   x^2\n   $$\n2. it is", "<ol>\n<li>so\n" + block("x^2") + "\n</li>\n<li>it is</li>\n</ol>"},
		{"block in a quotation", "> $$\n> x^2\n> $$", "<blockquote>\n" + block("x^2") + "\n</blockquote>"},
		{"block that its quotation cuts off", "> $$\n> x^2\n\n$$ *y*", "<blockquote>\n<p>$$<br>\nx^2</p>\n</blockquote>\n<p>$$ <em>y</em></p>"},

		{"block with a blank line in a quotation", "> $$\n> x^2\n>\n> $$ *y*", "<blockquote>\n<p>$$\nx^2</p>\n<p>$$ <em>y</em></p>\n</blockquote>"},

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
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if plainBody(md) != md {
				t.Errorf("the plain body became %q", plainBody(md))
			}
		})
	}
}
