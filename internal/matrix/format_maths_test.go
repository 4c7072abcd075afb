package matrix

import (
	"strings"
	"testing"
)

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
