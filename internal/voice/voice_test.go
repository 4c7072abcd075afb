package voice

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// The first layer that sets a field decides; other values of lower layers are shown as replaced.
func TestResolve(t *testing.T) {
	got := Speech.ResolveLayers(
		Layer{"SOUL.md", Style{"length": "long", "emoji": "lots"}},
		Layer{"personas/a.md", Style{"length": "short", "emoji": "none", "formality": "casual"}},
		Layer{"configuration", Style{"length": "long", "formality": "formal", "language": "German"}})
	expect.NoDiff(t, got, []Choice{
		{"formality", "casual", "personas/a.md", "Use everyday words and the familiar address (du, tu).",
			[]Choice{{Field: "formality", Value: "formal", Source: "configuration"}}},
		{"emoji", "none", "personas/a.md", "Use words only, no emoji.", nil},
		{"length", "long", "SOUL.md", "Answer in full: the result, the reasons, an example.",
			[]Choice{{Field: "length", Value: "short", Source: "personas/a.md"}}},
		{"language", "German", "configuration", "Answer in this language: German.", nil},
	})
	expect.Equal(t, len(Speech.ResolveLayers(Layer{}, Layer{"x", Style{"volume": "loud"}})), 0)
}

// Every value has a rule of its own.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Speech {
		expect.Equal(t, len(f.rules), max(1, len(f.values)), f.name)
		for _, v := range f.values {
			expect.Equal(t, Speech.ValueRemedy(f.name, v), "")
			rule := Speech.ResolveLayers(Layer{"x", Style{f.name: v}})[0].Rule
			expect.False(t, seen[rule] || rule == "", "%s: %s: %q", f.name, v, rule)
			seen[rule] = true
		}
	}
}

func TestCheck(t *testing.T) {
	const fields = "unknown; write one of: voice, formality, emoji, length, proactivity, address, language"
	for _, c := range []struct{ name, value, want string }{
		{"length", "long", ""}, {"address", "Dr. O’Neill", ""}, {"language", "日本語", ""},
		{"length", "lng", "write one of: short, medium, long"}, {"lenght", "long", fields},
		{"emoji", "🦊", "write one of: none, few, many"}, {"emoji", "", "write one of: none, few, many"}, {"volume", "x", fields},
		{"address", "Ada\n# Safety", "write a few words, 60 characters at most"}, {"address", "", "write a few words, 60 characters at most"},
		{"language", strings.Repeat("x", 61), "write a few words, 60 characters at most"}, {"address", "<data>", "write a few words, 60 characters at most"},
	} {
		expect.Equal(t, Speech.ValueRemedy(c.name, c.value), c.want, c.name, c.value)
	}
	expect.Equal(t, Character.ValueRemedy("emoji", "👩‍🚀"), "")
	expect.Equal(t, Character.ValueRemedy("species", "fox"), "unknown; write one of: creature, role, vibe, emoji")
}

// Front matter is taken off, numbers of lines stay, and what is no front matter is text.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		text     string
		style    Style
		rest     string
		problems []store.Problem
	}{
		{"Be kind.\n", nil, "Be kind.\n", nil},
		{"", nil, "", nil},
		{"---", nil, "---", nil},
		{"---\nlength: short\n---\nBe kind.", Style{"length": "short"}, "\n\n\nBe kind.\n", nil},
		{"---\nlength: 'long'   # often\n# mine\n\n emoji:none\naddress: C#: 2\n---", Style{"length": "long", "emoji": "none", "address": "C#: 2"}, "\n\n\n\n\n\n\n", nil},
		{"---\nOne part.\n---\nAnother.", nil, "---\nOne part.\n---\nAnother.", nil}, // rulers
		{"---\n\nOne part.\n---\nAnother.", nil, "---\n\nOne part.\n---\nAnother.", nil},
		{"---\nlength: short\nBe kind.", nil, "---\nlength: short\nBe kind.", []store.Problem{{Line: 1, Text: "the lines of style have no end; write --- below them"}}},
		{"---\nlength: shrt\nand so\nmood: good\n---\nx", Style{}, "\n\n\n\n\nx\n", []store.Problem{
			{Line: 2, Text: "length: write one of: short, medium, long"},
			{Line: 3, Text: "and so: unknown; write one of: voice, formality, emoji, length, proactivity, address, language"},
			{Line: 4, Text: "mood: unknown; write one of: voice, formality, emoji, length, proactivity, address, language"}}},
	} {
		style, rest, problems := SplitOffStyle(c.text)
		expect.NoDiff(t, style, c.style, c.text)
		expect.Equal(t, rest, c.rest, c.text)
		expect.NoDiff(t, problems, c.problems, c.text)
	}
}

// Only files whose name can be written in a command are personas.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.Mkdir(filepath.Join(dir, "personas"), 0o700))
	for _, name := range []string{"minimal.md", "balanced.md", "Ömer.md", ".minimal.md", "a b.md", "`x`.md", "x.txt"} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, "personas", name), nil, 0o600))
	}
	expect.NoDiff(t, Voice{Dir: dir}.PersonaNames(), []string{"balanced", "minimal", "Ömer"})
	expect.Equal(t, len(Voice{Dir: "/nowhere"}.PersonaNames()), 0)
}
