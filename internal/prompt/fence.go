package prompt

import (
	"fmt"
	"regexp"
	"strings"
)

// Fences say whose words stand in a prompt. Both kinds carry the conversation's
// nonce, which people do not see, so that nobody can open or close one by
// writing its delimiter:
//
//	<data id="k3f9" source="memories">   other people's words
//	</data k3f9>
//	[note k3f9]                          the program's own words in the tail
//	[/note k3f9]

func openData(nonce, source string) string {
	return `<data id="` + nonce + `" source="` + source + `">`
}
func closeData(nonce string) string { return "</data " + nonce + ">" }
func openNote(nonce string) string  { return "[note " + nonce + "]" }
func closeNote(nonce string) string { return "[/note " + nonce + "]" }

// quotedSource is where the words come from that a message quotes.
const quotedSource = "quoted"

// fenced is other people's words between the delimiters of data.
func fenced(text, source, nonce string) string {
	return openData(nonce, source) + "\n" + plain(text) + "\n" + closeData(nonce)
}

// delimiters are what stands before the nonce where a block of data or a note opens or closes.
var delimiters = []struct {
	before     string
	data, open bool
}{{`<data id="`, true, true}, {"</data ", true, false}, {"[note ", false, true}, {"[/note ", false, false}}

// checkFences reports what is wrong with the fences of nonce in s: each block must be
// closed exactly once, data may stand in a note, and nothing else may nest.
func checkFences(s, nonce string) error {
	data, note := false, false
	for at := strings.Index(s, nonce); at >= 0; {
		for _, d := range delimiters {
			if !strings.HasSuffix(s[:at], d.before) {
				continue
			}
			of := &note
			if d.data {
				of = &data
			}
			if *of == d.open || data && !d.data {
				return fmt.Errorf("%s%s, after %d characters, is one too many", d.before, nonce, at)
			}
			*of = d.open
		}
		next := strings.Index(s[at+len(nonce):], nonce)
		if next < 0 {
			break
		}
		at += len(nonce) + next
	}
	if data || note {
		return fmt.Errorf("a block is not closed")
	}
	return nil
}

// fences are notes, and the delimiters of data, of any conversation.
var fences = regexp.MustCompile(`(?s)\[note [a-z2-7]{4}\].*?\[/note [a-z2-7]{4}\]\s?|` +
	`(?:^|\n)\[note [a-z2-7]{4}\]\n.*\z|<data id="[a-z2-7]{4}" source="[^"\n]*">\n?|</data [a-z2-7]{4}>\n?`)

// WithoutFences is an answer without the notes and delimiters that a model repeats at times:
// they are meant for it alone. What stands between the delimiters of data stays.
func WithoutFences(text string) string {
	if !fences.MatchString(text) {
		return text
	}
	return strings.TrimSpace(fences.ReplaceAllString(text, ""))
}
