package matrix_test

import (
	"slices"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// lastSent is what the bot has said last in a room.
func lastSent(s *matrixtest.Server, room, bot string) (last roomEvent) {
	for _, e := range eventsIn(s, room, bot, "m.room.message") {
		last = e
	}
	return last
}

// TestLooks: an answer leaves with its looks, and a text that a model was talked
// into does no harm: it notifies nobody, runs nothing, and passes for nobody's words.
// Holds F42, M48, M49, M50, M51.
func TestLooks(t *testing.T) {
	t.Parallel()
	s, you, b := meeting(t, echo)
	group := group(t, s, you, b)
	question := sayTo(t, you, group, "hello", b.UserID())
	await(t, s, "the question is not answered", func() bool { return lastSent(s, group, b.UserID()).Content.Body == "echo: **hello**" })
	for i, c := range []struct{ text, body, html string }{
		{"|a|b|\n|-|-|\n|1|2|\n\n```go\nx\n```\n\nand $x^2$", "", "<table><thead><tr>\n<th>a</th>\n<th>b</th>\n</tr>\n</thead><tbody>\n<tr>\n<td>1</td>\n<td>2</td>\n</tr>\n</tbody>\n</table>\n<pre><code class=\"language-go\">x\n</code></pre>\n<p>and <span data-mx-maths=\"x^2\"><code>x^2</code></span></p>"},
		{"@room <script>alert(1)</script> **now**", "@\u2060room <script>alert(1)</script> **now**", "@\u2060room &lt;script&gt;alert(1)&lt;/script&gt; <strong>now</strong>"},
		{"> <@you:matrix.test> I agree\n\nto all", "\n> <@you:matrix.test> I agree\n\nto all", "<blockquote>\n<p>&lt;@you:matrix.test&gt; I agree</p>\n</blockquote>\n<p>to all</p>"},
		{"<mx-reply>I agree</mx-reply> [x](javascript:y) ![z](https://e.x/z.png) [you](https://matrix.to/#/" + you.UserID() + ")", "", "&lt;mx-reply&gt;I agree&lt;/mx-reply&gt; x <a href=\"https://e.x/z.png\">z</a> you"},
	} {
		if c.body == "" {
			c.body = c.text
		}
		id := "looks:" + string(rune('a'+i))
		b.says(group, session.Outgoing{ID: id, Text: c.text, ReplyTo: question})
		await(t, s, "it is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
		got := lastSent(s, group, b.UserID()).Content
		if got.Body != c.body || got.Formatted != c.html {
			t.Errorf("%.60q left as\n%q\n%q, want\n%q\n%q", c.text, got.Body, got.Formatted, c.body, c.html)
		}
		if !slices.Equal(got.users(), []string{you.UserID()}) || got.Mentions.Room {
			t.Errorf("%.60q mentions %+v", c.text, got.Mentions)
		}
	}
}

// TestLastEditSaysAll: clients without edits show each as a message; the ones on
// the way are short, the last one is the whole answer.
// Holds M20.
func TestLastEditSaysAll(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, false, echo)
	text := strings.Repeat("A sentence that is written slowly. ", 30)
	for i := 1; i <= 2; i++ {
		b.says(room, session.Outgoing{ID: "slow", Text: text[:i*500], Draft: true})
		peertest.Next(t, you, spoken(room, b.UserID()))
		if got := lastSent(s, room, b.UserID()).Content; got.Live == nil || i == 2 && (len(got.Body) > 250 || got.New.Body == "" || !strings.HasPrefix(got.New.Body, got.Body[2:100])) {
			t.Errorf("a draft left as %+v", got)
		}
	}
	b.says(room, session.Outgoing{ID: "slow", Text: text + "**The end.**"})
	await(t, s, "it is not sent", func() bool { return b.Status(t.Context()).Outbox == 0 })
	if got := lastSent(s, room, b.UserID()).Content; got.Live != nil || got.Body != "* "+text+"**The end.**" || !strings.HasSuffix(got.Formatted, "<strong>The end.</strong>") || got.New.Body == "" {
		t.Errorf("the last edit left as %+v", got)
	}
}
