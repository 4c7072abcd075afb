package memory

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzParse: any file can be read, and adding a line changes nothing before it.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "one\ntwo", "\ufeff#x\r\n\r\n\\#y\r", "a\xff\x00b\n", `\\#`} {
		f.Add([]byte(seed), "new")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		lines := lineTexts(data)
		for _, text := range lines {
			if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.TrimSpace(text) != text {
				t.Errorf("entry %q", text)
			}
			if got := lineTexts([]byte(toLine(text))); len(got) != 1 || got[0] != text {
				t.Errorf("%q, written by itself, reads %q", text, got)
			}
		}
		text, err := clean(text)
		if err != nil {
			return
		}
		after := withLine(data, toLine(text))
		if !strings.HasPrefix(string(after), string(data)) {
			t.Fatalf("%q became %q", data, after)
		}
		got := lineTexts(after)
		if len(got) != len(lines)+1 || got[len(got)-1] != text {
			t.Fatalf("%q with %q reads %q", data, text, got)
		}
		for i, text := range lines {
			if got[i] != text {
				t.Errorf("entry %d became %q", i, got[i])
			}
		}
	})
}
