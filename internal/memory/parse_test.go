package memory

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
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

// FuzzAppend: text a model sends is stored as one readable line or refused.
func FuzzAppend(f *testing.F) {
	for _, seed := range []string{"fact", "# no comment", "a\nb", "\ufeff#", "\\", "\\\\#", "\u0085", "茶\u200d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := openAt(t, t.TempDir())
		e, added, err := s.Append(t.Context(), Shared, text)
		if err != nil {
			return
		}
		if got := texts(t, s, Shared); !added || got != e.Text {
			t.Errorf("%q stored as %q reads %q", text, e.Text, got)
		}
		if _, again, err := s.Append(t.Context(), Shared, text); err != nil || again {
			t.Errorf("%q is no duplicate of itself: %v", text, err)
		}
	})
}

// Holds W7.
func TestAppendProperties(t *testing.T) {
	t.Parallel()
	outer := t
	line := rapid.OneOf(
		rapid.Map(rapid.StringMatching(`[ -~]{0,40}`), func(s string) string { return "# " + s }),
		rapid.Just(""),
		rapid.StringMatching(`[a-z#\\][ -~äß茶]{0,60}`),
	)
	n := 0
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		n++
		s := openWith(outer, Config{Dir: filepath.Join(dir, strconv.Itoa(n))})
		before := strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "ending"))
		path := filepath.Join(s.dir, filepath.FromSlash(s.File(Shared)))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		text := rapid.String().Draw(t, "text")
		e, added, err := s.Append(t.Context(), Shared, text)
		if err != nil {
			if want, cleanErr := clean(text); cleanErr == nil {
				t.Fatalf("%q was refused: %v", want, err)
			}
			return
		}
		entries, err := s.Entries(t.Context(), Shared)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, got := range entries {
			if got.ID == e.ID {
				found++
			}
		}
		if found == 0 || added && found != 1 {
			t.Fatalf("%q is there %d times in %v", e.Text, found, entries)
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(after), before) {
			t.Fatalf("%q became %q", before, after)
		}
	})
}
