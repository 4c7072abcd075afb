package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/tty"
)

// jsonEncoder returns an encoder that escapes in strings what tty.StripControls would remove.
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
		if tty.IsControl(r) {
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
