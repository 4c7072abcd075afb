package matrix

import (
	"strings"
	"testing"

	"maunium.net/go/mautrix/event"
)

func TestSpoilers(t *testing.T) {
	const begin, end = `<span data-mx-spoiler="">`, "</span>"
	for md, want := range map[string]string{
		"It is ||the butler||.":                 "It is " + begin + "the butler" + end + ".",
		"||**he** and `a || b`||":               begin + "<strong>he</strong> and <code>a || b</code>" + end,
		"||one|| and ||two||":                   begin + "one" + end + " and " + begin + "two" + end,
		"答えは||秘密||です":                           "答えは" + begin + "秘密" + end + "です",
		"||over\ntwo lines||":                   begin + "over<br>\ntwo lines" + end,
		"if a || b and c || d":                  "",
		"if (a||b) and (c||d)":                  "",
		"||never closed":                        "",
		"a |||| b":                              "",
		"||":                                    "",
		"`||code||`":                            "<code>||code||</code>",
		"<span data-mx-spoiler>x</span>":        "",
		"| a | b |\n|-|-|\n| 1 | x || y || z |": "<table><thead><tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead><tbody>\n<tr>\n<td>1</td>\n<td>x</td>\n</tr>\n</tbody>\n</table>",
	} {
		if got := toHTML(md); got != want {
			t.Errorf("%q became\n%s, want\n%s", md, got, want)
		}
	}
}

// TestSpoilerWhileItIsWritten: what is being written is not shown until the spoiler ends.
func TestSpoilerWhileItIsWritten(t *testing.T) {
	const whole = "So: ||the butler|| did it, a || b, and ||his wife|| knew."
	for i := range whole {
		got := unspoiled(whole[:i])
		if !strings.HasPrefix(whole, got) {
			t.Fatalf("%q became %q", whole[:i], got)
		}
		shown := toHTML(got)
		if plain := strings.ReplaceAll(strings.ReplaceAll(shown+got, "||the butler||", ""), "||his wife||", ""); strings.Contains(plain, "||t") || strings.Contains(plain, "||h") {
			t.Errorf("%q shows %q", whole[:i], got)
		}
	}
	for text, want := range map[string]string{whole: whole, "a || b": "a || b", "||x": "", "(||x": "("} {
		if got := unspoiled(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

// TestSpoilersOfPeople: the model reads what people marked as a spoiler as such.
func TestSpoilersOfPeople(t *testing.T) {
	for _, c := range []struct{ body, html, want string }{
		{"it was the butler", "it was <span data-mx-spoiler>the butler</span>", "it was ||the butler||"},
		{"a & b, a & b", `<span data-mx-spoiler="why">a &amp; <b>b</b></span>, <SPAN class="x" data-mx-spoiler>a &amp; b</SPAN>`, "||a & b||, ||a & b||"},
		{"it was ||the butler||", "it was <span data-mx-spoiler>the butler</span>", "it was ||the butler||"},
		{"nothing", "<span data-mx-spoiler></span>", "nothing"},
		{"[spoiler]", "<span data-mx-spoiler>the butler</span>", "[spoiler]"},
		{"plain", "<span>plain</span>", "plain"},
	} {
		msg := &event.MessageEventContent{MsgType: event.MsgText, Body: c.body, Format: event.FormatHTML, FormattedBody: c.html}
		if got := words(msg); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.body, c.html, got, c.want)
		}
	}
	hostile := &event.MessageEventContent{MsgType: event.MsgText, Body: strings.Repeat("x", 30_000), Format: event.FormatHTML, FormattedBody: strings.Repeat("<span data-mx-spoiler>x</span>", 1000)}
	if n := strings.Count(words(hostile), "||"); n != 2*mostSpoilers {
		t.Errorf("%d marks", n)
	}
}
