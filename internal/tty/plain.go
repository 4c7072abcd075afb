package tty

import (
	"io"
	"strings"
	"unicode"
)

// plainWriter writes text without what a terminal would obey. Each Write has whole characters.
// Models, servers and people say what is printed; none of them may move the cursor.
type plainWriter struct{ w io.Writer }

// Plain returns a writer to w that leaves out what a terminal would obey.
func Plain(w io.Writer) io.Writer { return plainWriter{w} }

// unfiltered returns what a plain writer writes to, for the program's own codes.
func unfiltered(w any) any {
	if p, ok := w.(plainWriter); ok {
		return p.w
	}
	return w
}

// IsCommand reports whether a terminal obeys a character or turns the text for it.
func IsCommand(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// withoutCommands leaves out of a text what a terminal would obey.
func withoutCommands(text string) string {
	return strings.Map(func(r rune) rune {
		if IsCommand(r) {
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
