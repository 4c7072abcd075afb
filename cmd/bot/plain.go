package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"

	"reverie/internal/i18n"
)

// plainWriter writes text without what a terminal would obey. Each Write has whole characters.
// Models, servers and people say what is printed; none of them may move the cursor.
type plainWriter struct{ w io.Writer }

// unfiltered returns what a plain writer writes to, for the program's own codes.
func unfiltered(w any) any {
	if p, ok := w.(plainWriter); ok {
		return p.w
	}
	return w
}

// isCommand reports whether a terminal obeys a character or turns the text for it.
func isCommand(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// withoutCommands leaves out of a text what a terminal would obey.
func withoutCommands(text string) string {
	return strings.Map(func(r rune) rune {
		if isCommand(r) {
			return -1
		}
		return r
	}, text)
}

func (p plainWriter) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, withoutCommands(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// jsonEncoder returns an encoder that escapes in strings what plainWriter would leave out.
func jsonEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escapeWriter{w})
	e.SetEscapeHTML(false)
	return e
}

// sentences are the strings of JSON that may be sentences of package i18n, as they are stored.
var sentences = regexp.MustCompile(`"\[\\"(?:[^"\\]|\\.)*"`)

func inEnglish(quoted []byte) []byte {
	var t i18n.Text
	if json.Unmarshal(quoted, &t) != nil {
		return quoted
	}
	b, _ := json.Marshal(t.String())
	return b
}

// escapeWriter writes JSON, of which each Write has whole characters.
type escapeWriter struct{ w io.Writer }

func (e escapeWriter) Write(b []byte) (int, error) {
	var out strings.Builder
	for _, r := range string(sentences.ReplaceAllFunc(b, inEnglish)) {
		if isCommand(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	if _, err := io.WriteString(e.w, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}
