package prompt

import (
	"fmt"
	"strings"

	"reverie/internal/lazyregexp"
	"reverie/internal/llm"
)

// Fences separate other people's words from the program's. Both kinds carry the conversation's
// nonce, which people do not see, so that no text can open or close a fence:
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

// quotedSource is the source of quotes in a message.
const quotedSource = "quoted"

// fenced puts other people's words between the delimiters of data.
func fenced(text, source, nonce string) string {
	return openData(nonce, source) + "\n" + neutralize(text) + "\n" + closeData(nonce)
}

// delimiters are the texts before the nonce. They open or close a block of data or a note.
var delimiters = []struct {
	before     string
	data, open bool
}{{`<data id="`, true, true}, {"</data ", true, false}, {"[note ", false, true}, {"[/note ", false, false}}

// checkFences checks the fences of nonce in s: each block is closed exactly once, data may be
// inside a note, and nothing else nests.
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

// FenceError is the error of a request whose fences are not as the assembler makes them. It is not sent.
type FenceError struct {
	Message int // in the request, from 0
	Role    llm.Role
	Err     error
}

func (e *FenceError) Error() string {
	return fmt.Sprintf("prompt: fences of message %d (%s): %v", e.Message, e.Role, e.Err)
}

func (e *FenceError) Unwrap() error { return e.Err }

// checkRequest checks the fences of all messages.
func checkRequest(messages []llm.Message, nonce string) error {
	for i, m := range messages {
		if err := checkFences(m.Content, nonce); err != nil {
			return &FenceError{i, m.Role, err}
		}
	}
	return nil
}

// WithoutNotes returns answer without steering notes of the request that the model repeats, whole or, at
// the end of a draft, in part.
func (p Prompt) WithoutNotes(answer string) string {
	const part = 20 // bytes
	for _, note := range p.notes {
		if answer = strings.ReplaceAll(answer, note, ""); len(note) < part {
			continue
		}
		if i := strings.LastIndex(answer, note[:part]); i >= 0 && strings.HasPrefix(note, answer[i:]) {
			answer = answer[:i]
		}
	}
	return answer
}

// fences matches notes, and delimiters of data, of any conversation.
var fences = lazyregexp.New(`(?s)\[note [a-z2-7]{4}\].*?\[/note [a-z2-7]{4}\]\s?|` +
	`(?:^|\n)\[note [a-z2-7]{4}\]\n.*\z|<data id="[a-z2-7]{4}" source="[^"\n]*">\n?|</data [a-z2-7]{4}>\n?`)

// WithoutFences removes notes and delimiters that a model copied into its answer. The content of
// data blocks stays.
func WithoutFences(text string) string {
	if !strings.ContainsAny(text, "[<") || !fences().MatchString(text) { // the first check is fast, and mostly enough
		return text
	}
	return strings.TrimSpace(fences().ReplaceAllString(text, ""))
}
