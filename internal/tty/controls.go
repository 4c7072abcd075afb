package tty

import (
	"io"
	"strings"
	"unicode"
)

// controlStripper removes terminal control characters. The printed text comes from models, servers and
// people, who must not move the cursor. Each Write must contain whole characters.
type controlStripper struct{ w io.Writer }

// StripControls returns a writer to w that removes terminal control characters.
func StripControls(w io.Writer) io.Writer { return controlStripper{w} }

// unfiltered returns the writer below a controlStripper, for the program's own control codes.
func unfiltered(w any) any {
	if p, ok := w.(controlStripper); ok {
		return p.w
	}
	return w
}

// IsControl reports whether r is a terminal control or changes the text direction.
func IsControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// stripControls removes terminal control characters.
func stripControls(text string) string {
	return strings.Map(func(r rune) rune {
		if IsControl(r) {
			return -1
		}
		return r
	}, text)
}

func (p controlStripper) Write(b []byte) (int, error) {
	if _, err := io.WriteString(p.w, stripControls(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
