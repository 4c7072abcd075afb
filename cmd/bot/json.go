package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"reverie/internal/i18n"
	"reverie/internal/lazyregexp"
	"reverie/internal/store"
	"reverie/internal/tty"
)

// jsonEncoder returns an encoder that escapes control characters, which tty.Plain would drop.
func jsonEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(escapeWriter{w})
	e.SetEscapeHTML(false)
	return e
}

func printJSON(w io.Writer, v any) error {
	e := jsonEncoder(w)
	e.SetIndent("", "  ")
	return store.Wrap(e.Encode(v), "print")
}

// print prints the result of a command: v with --json, else the text.
func (c console) print(v any, format string, args ...any) error {
	if c.json {
		return printJSON(c.out, v)
	}
	_, err := fmt.Fprintf(c.out, format, args...)
	return err
}

// printList prints a list, each entry as line says. none is said of an empty one.
func printList[T any](c console, all []T, none string, line func(T) string) error {
	if c.json {
		return printJSON(c.out, append([]T{}, all...)) // not nil: JSON prints []
	}
	if len(all) == 0 {
		fmt.Fprintln(c.err, none)
	}
	for _, one := range all {
		if _, err := fmt.Fprintln(c.out, line(one)); err != nil {
			return err
		}
	}
	return nil
}

// storedSentences matches JSON strings that may be stored sentences of package i18n.
var storedSentences = lazyregexp.New(`"\[\\"(?:[^"\\]|\\.)*"`)

func toEnglish(quoted []byte) []byte {
	var t i18n.Text
	if json.Unmarshal(quoted, &t) != nil {
		return quoted
	}
	b, _ := json.Marshal(t.String())
	return b
}

// escapeWriter escapes JSON. Each Write must contain whole characters.
type escapeWriter struct{ w io.Writer }

func (e escapeWriter) Write(b []byte) (int, error) {
	var out strings.Builder
	for _, r := range string(storedSentences().ReplaceAllFunc(b, toEnglish)) {
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
