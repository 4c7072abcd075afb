package matrix

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

const fileNote = "\n\n*The rest is in a file.*"

// checkBeginning sees to it that the beginning of a text fits, is its beginning, and leaves
// nothing open.
func checkBeginning(t *testing.T, md string, limit int) string {
	t.Helper()
	got := beginning(md, limit, fileNote)
	if n := size(got); n > limit {
		t.Errorf("it costs %d, limit %d: %.200q", n, limit, got)
	}
	said, ok := strings.CutSuffix(got, fileNote)
	if open := unclosed(said); open != "" || !ok {
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
			out := toHTML(beginning(c.md, 4000, fileNote))
			if size(said) < 4000/3 || !strings.HasSuffix(out, "<p><em>The rest is in a file.</em></p>") {
				t.Errorf("it costs %d, and ends as %q", size(said), out[max(0, len(out)-100):])
			}
		})
	}
}

// An event may have 65,536 bytes, as the server stores it and others send it on:
// encrypted, as an edit, with what servers add to it.
// Holds F41.
func TestBeginningsFitIntoEvents(t *testing.T) {
	const (
		servers = 3000 // previous events, authorisation, hashes and signatures
		megolm  = 200  // version, index, MAC, signature and padding
	)
	var worst int
	for name, md := range map[string]string{
		"words":   strings.Repeat("word ", 40_000),
		"signs":   strings.Repeat("<&>\"'", 30_000),
		"letters": strings.Repeat("日本語🙂", 20_000),
		"code":    "```\n" + strings.Repeat("if a < b && c > d {\n", 6000) + "```",
		"table":   "|a|b|\n|-|-|\n" + strings.Repeat("|1|2|\n", 20_000),
		"maths":   strings.Repeat("$x^2$ ", 20_000),
	} {
		p := beginning(md, partSize, "")
		m := &event.MessageEventContent{MsgType: event.MsgText, Body: plainBody(p), Mentions: &event.Mentions{}}
		if html := formatted(p); html != "" {
			m.Format, m.FormattedBody = event.FormatHTML, html
		}
		m.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID("$" + strings.Repeat("e", 43)))
		m.Mentions.Add(id.UserID("@" + strings.Repeat("u", 200) + ":example.org"))
		target := id.EventID("$" + strings.Repeat("e", 43))
		payload := []byte{}
		for _, content := range []any{edit(m, target, false), live(edit(m, target, true))} { // the last edit, and one on the way
			said, err := json.Marshal(map[string]any{"type": "m.room.message", "room_id": "!" + strings.Repeat("r", 43), "content": content})
			must(t, err)
			if len(said) > len(payload) {
				payload = said
			}
		}
		outer, err := json.Marshal(map[string]any{"type": "m.room.encrypted", "sender": "@" + strings.Repeat("u", 253), "room_id": "!" + strings.Repeat("r", 43), "content": map[string]any{
			"algorithm": "m.megolm.v1.aes-sha2", "sender_key": strings.Repeat("k", 43), "session_id": strings.Repeat("s", 43), "device_id": strings.Repeat("d", 20),
			"m.relates_to": m.RelatesTo, "ciphertext": base64.RawStdEncoding.EncodeToString(make([]byte, len(payload)+megolm)),
		}})
		must(t, err)
		worst = max(worst, len(outer))
		if n := len(outer) + servers; n > 65_536 {
			t.Errorf("the beginning of %s would be an event of %d bytes", name, n)
		}
	}
	if worst < 45_000 {
		t.Errorf("the largest event has %d bytes: beginnings are smaller than they need be", worst)
	}
}

// hostile are texts that are slow to render, or become very large, where nobody
// takes care; n is about how long each is.
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

// TestHostileTexts: whatever a model says has a beginning that fits, also of a megabyte.
// Holds F42, M52.
func TestHostileTexts(t *testing.T) {
	texts, megabytes := hostile(70_000), hostile(1<<20)
	for _, large := range []string{"short paragraphs", "a word", "fences in lists", "uses"} {
		texts["a megabyte of "+large] = megabytes[large]
	}
	for name, md := range texts {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			if checkBeginning(t, md, partSize); time.Since(begun) > 2*time.Minute {
				t.Error("it takes more than two minutes")
			}
		})
	}
}
