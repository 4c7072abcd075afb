package skill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShortened: another summary, and every other byte of the file as it was.
func TestShortened(t *testing.T) {
	for name, tt := range map[string]struct{ old, want string }{
		"first line":      {"# How to water all of the plants\n\n1. Take a can.\n", "---\ndescription: \"Water: \\\"plants\\\"\"\n---\n# How to water all of the plants\n\n1. Take a can.\n"},
		"front":           {"---\ntriggers: water, plants\npriority: 2\n---\nHow to water all of the plants\r\n", "---\ntriggers: water, plants\npriority: 2\ndescription: \"Water: \\\"plants\\\"\"\n---\nHow to water all of the plants\r\n"},
		"description":     {"---\ndescription: >\n  How to water\n  all of the plants\ntriggers: water\n---\n\ntext", "---\ntriggers: water\ndescription: \"Water: \\\"plants\\\"\"\n---\n\ntext"},
		"a rule, no end":  {"---\nHow to water all of the plants\n", "---\ndescription: \"Water: \\\"plants\\\"\"\n---\n---\nHow to water all of the plants\n"},
		"a rule":          {"---\n- How to water all of the plants\n---\ntext\n", "---\ndescription: \"Water: \\\"plants\\\"\"\n---\n---\n- How to water all of the plants\n---\ntext\n"},
		"byte order mark": {"\ufeffHow to water all of the plants\n", "---\ndescription: \"Water: \\\"plants\\\"\"\n---\nHow to water all of the plants\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := Open(dir)
			put(t, dir, "water.md", tt.old)
			if got := list(t, l); !strings.Contains(got, "all of the plants") {
				t.Fatalf("before: %s", got)
			}
			_, text, err := l.Shortened("water", " Water:  \"plants\"\n")
			if err != nil || string(text) != tt.want {
				t.Errorf("the file is\n%q, want\n%q, %v", text, tt.want, err)
			}
		})
	}
}

func TestShortenedRefuses(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	l := Open(dir)
	put(t, dir, "water.md", "How to water\n")
	put(t, dir, "odd.md", "---\n{triggers: [a], description: one that is long}\n---\ntext\n")
	put(t, dir, "odder.md", "---\n{description: one that is long}\n---\ntext\n")
	put(t, dir, "odd-triggers.md", "---\n{\ntriggers: [a],\ndescription: one that is long}\n---\ntext\n")
	put(t, dir, "odd-lines.md", "---\n{\npriority: 5,\ndescription: one that is long}\n---\ntext\n")
	put(t, outside, "secret.md", "A secret that is long\n")
	if err := os.Symlink(filepath.Join(outside, "secret.md"), filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, summary, want string }{
		{"water", " # ", "summary is missing"}, {"water", "How to wateR", "in fewer"}, {"no", "x", `no skill "no"`},
		{"../water", "x", "no skill"}, {".water.md.1", "x", "no skill"}, {"link", "x", "link"}, {"odd", "short", "cannot be changed"}, {"odder", "short", "cannot be changed"},
		{"odd-triggers", "short", "cannot be changed"}, {"odd-lines", "short", "cannot be changed"},
	} {
		if _, _, err := l.Shortened(tt.name, tt.summary); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s, %q: %v", tt.name, tt.summary, err)
		}
	}
	if got := read(t, outside, "secret.md") + read(t, dir, "water.md"); got != "A secret that is long\nHow to water\n" {
		t.Errorf("changed: %q", got)
	}
	if old, _ := filepath.Glob(filepath.Join(dir, ".*")); len(old) > 0 {
		t.Errorf("left: %q", old)
	}
}
