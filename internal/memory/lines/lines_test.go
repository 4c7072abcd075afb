package lines

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func hidden(r rune) bool { return unicode.IsControl(r) || r == '\uFEFF' }

// FuzzParse: any file can be read, and adding a line changes nothing before it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "one\ntwo", "\ufeff#x\r\n\r\n\\#y\r", "a\xff\x00b\n", `\\#`} {
		f.Add([]byte(seed), "new")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		lines := Texts(data)
		for _, text := range lines {
			if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.TrimSpace(text) != text {
				t.Errorf("entry %q", text)
			}
			if got := Texts([]byte(Escape(text))); len(got) != 1 || got[0] != text {
				t.Errorf("%q, written by itself, reads %q", text, got)
			}
		}
		if text = strings.Join(strings.Fields(text), " "); text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, hidden) {
			return // an entry is none of these
		}
		after := appendLine(data, Escape(text))
		if !strings.HasPrefix(string(after), string(data)) {
			t.Fatalf("%q became %q", data, after)
		}
		got := Texts(after)
		if len(got) != len(lines)+1 || got[len(got)-1] != text {
			t.Fatalf("%q with %q reads %q", data, text, got)
		}
		for i, text := range lines {
			if got[i] != text {
				t.Errorf("entry %d became %q, want %q", i, got[i], text)
			}
		}
	})
}
