package matrix

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"
)

// solid is a text without white space.
func solid(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// checkSplit sees to it that the parts of a text fit, say all of it in its order
// and nothing else but what is said again around a cut, and close what they open.
func checkSplit(t *testing.T, md string, limit int) []string {
	t.Helper()
	parts := split(md, limit)
	md = shallow(strings.ToValidUTF8(md, "\uFFFD"))
	for i, p := range parts {
		if n := size(p); n > limit {
			t.Errorf("part %d of %d costs %d, limit %d: %.200q", i, len(parts), n, limit, p)
		}
		if !utf8.ValidString(p) {
			t.Errorf("part %d is cut inside a character", i)
		}
	}
	if len(parts) < 2 {
		return parts
	}
	var whole, author strings.Builder
	for _, part := range fill(piecesOf(md), limit) {
		for _, p := range part {
			whole.WriteString(p.String())
			author.WriteString(p.text)
		}
	}
	if got := solid(author.String()); got != solid(md) {
		t.Errorf("the text changed: %d bytes became %d", len(md), len(got))
	}
	if got := solid(strings.Join(parts, "")); got != solid(whole.String()) {
		t.Error("the parts do not say what their pieces do")
	}
	for i, p := range parts {
		if out := convert(p + "\n\nwhatcomesnext"); !strings.Contains(out, "<p>whatcomesnext</p>") && !strings.Contains(out, "\nwhatcomesnext") {
			t.Errorf("part %d leaves something open: %.300q", i, p)
		}
	}
	return parts
}

// Holds F41, M46.
func TestSplitKeepsWhatItCuts(t *testing.T) {
	code := strings.Repeat("if a < b { return \"x\" }\n", 200)
	var rows, items, nested strings.Builder
	for i := range 300 {
		fmt.Fprintf(&rows, "| %d | a cell with **words** | and another |\n", i+1)
		fmt.Fprintf(&items, "%d. An item of a list, with *some* words.\n", i+1)
		fmt.Fprintf(&nested, "%d. An item of a list.\n   - One below it, with a few words.\n   - Another below it.\n", i+1)
	}
	begins := func(prefixes ...string) func(string) bool {
		return func(p string) bool {
			for _, b := range prefixes {
				if strings.HasPrefix(p, b) {
					return true
				}
			}
			return false
		}
	}
	for _, c := range []struct {
		name, md string
		part     func(string) bool // each but the first
	}{
		{"code", "```go\n" + code + "```", func(p string) bool {
			return strings.HasPrefix(p, "```go\nif ") && strings.HasSuffix(p, "}\n```")
		}},
		{"code in tildes", "~~~~ go run\n" + code + "~~~~", func(p string) bool {
			return strings.HasPrefix(p, "~~~~ go run\nif ") && strings.HasSuffix(p, "}\n~~~~")
		}},
		{"code that holds fences", "````md\n" + strings.Repeat("```go\nx := 1\n```\n\n", 100) + "````", func(p string) bool {
			return strings.HasPrefix(p, "````md\n") && strings.HasSuffix(p, "\n````")
		}},
		{"code in a list", "1. ```sh\n   " + strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n   ") + "\n   ```\n2. then", func(p string) bool {
			return strings.HasPrefix(p, "```sh\nif ") || p == "2. then"
		}},
		{"code deep in a list", "10. do\n\n    ```sh\n    " + strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n    ") + "\n    ```", begins("```sh\nif ")},
		{"code in a quotation", "> ```sh\n> " + strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n> ") + "\n> ```", begins("> ```sh\n> if ")},
		{"code without an end", "```go\n" + code, func(p string) bool { return strings.HasSuffix(p, "\n```") }},
		{"words in one-line fences", strings.Repeat("```a``` words and words\n", 300), begins("```a``` words")},
		{"table", "| n | what | more |\n|--:|---|---|\n" + rows.String(), begins("| n | what | more |\n|--:|---|---|\n| ")},
		{"table under words", "# Rows\n\nHere they are:\n\nn | what | more\n---|---|---\n" + rows.String(), begins("n | what | more\n---|---|---\n| ")},
		{"list", items.String(), func(p string) bool { return listItem.MatchString(p) }},
		{"list with space between", strings.ReplaceAll(items.String(), "\n", "\n\n"), func(p string) bool { return listItem.MatchString(p) }},
		{"list in a list", nested.String(), func(p string) bool { return strings.Contains(p[:20], ". An item") }},
		{"paragraphs of a deep list", "- a\n  - b\n\n" + strings.Repeat("    A paragraph of the item below, with words.\n\n", 100), begins("A paragraph")},
		{"headings", strings.Repeat("## About this\n\n"+strings.Repeat("words and words ", 25)+"\n\n", 30), begins("## About", "words")},
		{"a long line", strings.Repeat("a word and ", 2000), begins("a", "word", "and")},
		{"a long line of code", "```\n" + strings.Repeat("0123456789", 2000) + "\n```", begins("```\n")},
		{"accents and families", strings.Repeat("e\u0301\u0302\u0303\u0304", 500) + strings.Repeat("👨\u200d👩\u200d👧", 300), func(p string) bool {
			r, _ := utf8.DecodeRuneInString(p)
			last, _ := utf8.DecodeLastRuneInString(p)
			return (r == 'e' || r == '👨') && last != '\u200d'
		}},
		{"no borders at all", strings.Repeat("日本語の文章。", 2000), func(string) bool { return true }},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := checkSplit(t, c.md, 4000)
			if len(parts) < 2 {
				t.Fatal("not split at all")
			}
			for i, p := range parts[1:] {
				if !c.part(p) {
					t.Errorf("part %d reads %.100q … %.40q", i+1, p, p[max(0, len(p)-40):])
				}
			}
			for i, p := range parts[:len(parts)-1] {
				if n := size(p); n < 4000/4 && len(parts) > 3 {
					t.Errorf("part %d of %d costs only %d", i, len(parts), n)
				}
				if lines := strings.Split(p, "\n"); strings.HasPrefix(lines[len(lines)-1], "#") {
					t.Errorf("part %d ends with a heading", i)
				}
			}
		})
	}
}

// Holds M52.
func TestShallow(t *testing.T) {
	deep := strings.Repeat(">", 10_000)
	for _, c := range []struct{ name, md, want string }{
		{"quotations", "a\n" + deep + " b\nc", "a\n> b\nc"},
		{"quotations with space", strings.Repeat("> ", 10_000) + "b", "> b"},
		{"items", strings.Repeat("- ", 5000) + "b", "- b"},
		{"code stays", "```\n" + deep + "\n```", "```\n" + deep + "\n```"},
		{"three are three", "> > > a", "> > > a"},
		{"words are words", "a " + deep, "a " + deep},
	} {
		if got := shallow(c.md); got != c.want {
			t.Errorf("%s: %.80q", c.name, got)
		}
	}
	if parts := split("a\n\n"+deep+" **b**", partSize); len(parts) != 1 || toHTML(parts[0]) != "<p>a</p>\n<blockquote>\n<p><strong>b</strong></p>\n</blockquote>" {
		t.Errorf("split into %.200q", parts)
	}
}

// An event may have 65,536 bytes, as the server stores it and others send it on:
// encrypted, as an edit, with what servers add to it.
// Holds F41, M46.
func TestPartsFitIntoEvents(t *testing.T) {
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
		for i, p := range split(md, partSize) {
			m := &event.MessageEventContent{MsgType: event.MsgText, Body: plainBody(p), Mentions: &event.Mentions{}}
			if html := formatted(p, partSize); html != "" {
				m.Format, m.FormattedBody = event.FormatHTML, html
			}
			m.RelatesTo = (&event.RelatesTo{}).SetReplyTo(id.EventID("$" + strings.Repeat("e", 43)))
			m.Mentions.Add(id.UserID("@" + strings.Repeat("u", 200) + ":example.org"))
			target := id.EventID("$" + strings.Repeat("e", 43))
			payload := []byte{}
			for _, content := range []any{edit(m, target), live(edit(m, target))} { // the last edit, and one on the way
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
				t.Errorf("part %d of %s would be an event of %d bytes", i, name, n)
			}
		}
	}
	if worst < 45_000 {
		t.Errorf("the largest event has %d bytes: parts are smaller than they need be", worst)
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

// TestHostileTexts: whatever a model says is divided, and parts that fit are
// made of it; also of a megabyte.
// Holds F42, M52.
func TestHostileTexts(t *testing.T) {
	texts, megabytes := hostile(70_000), hostile(1<<20)
	for _, large := range []string{"short paragraphs", "a word", "fences in lists", "uses"} {
		texts["a megabyte of "+large] = megabytes[large]
	}
	for name, md := range texts {
		t.Run(name, func(t *testing.T) {
			done := make(chan []string, 1)
			go func() { done <- split(md, partSize) }()
			select {
			case parts := <-done:
				for i, p := range parts {
					if s := size(p); s > partSize {
						t.Errorf("part %d costs %d", i, s)
					}
				}
			case <-time.After(2 * time.Minute):
				t.Fatal("still at it after two minutes")
			}
		})
	}
}
