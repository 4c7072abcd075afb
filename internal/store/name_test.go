package store

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestFileNameProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[@!][A-Za-z0-9._=/+-]{1,100}:[a-z.]{1,60}`)).Draw(t, "id")
		if id == "" {
			return
		}
		name := FileName(id)
		if name != strings.ToLower(name) || strings.ContainsAny(name, "/\\: ") || strings.HasPrefix(name, ".") || !utf8.ValidString(name) {
			t.Fatalf("FileName(%q) = %q", id, name)
		}
		if len(name) > maxName {
			t.Fatalf("%d bytes", len(name))
		}
		if got, ok := FileNameID(name); ok == strings.Contains(name, "~") || ok && got != id {
			t.Fatalf("%q came back as %q, %v", id, got, ok)
		}
	})
}

func TestFileName(t *testing.T) {
	for id, want := range map[string]string{
		"@me:example.org": "@me=3aexample.org",
		"!AbC":            "!=41b=43",
		"..":              "=2e.",
		".hidden":         "=2ehidden",
		"../../etc":       "=2e.=2f..=2fetc",
		"a=b~c":           "a=3db=7ec",
		"ä\x00\xff":       "=c3=a4=00=ff",
	} {
		if got := FileName(id); got != want {
			t.Errorf("FileName(%q) = %q, want %q", id, got, want)
		}
	}
}
