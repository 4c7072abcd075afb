package skill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/trust"
)

// TestShorten: another summary, and every other byte of the file as it was.
func TestShorten(t *testing.T) {
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
			s, kept, err := l.Shorten("water", " Water:  \"plants\"\n", trust.Owner)
			if err != nil || s.Summary != `Water: "plants"` || kept != "data/skills/.water.md.1" {
				t.Fatalf("%+v, %s, %v", s, kept, err)
			}
			if got := read(t, dir, "water.md"); got != tt.want {
				t.Errorf("the file is\n%q, want\n%q", got, tt.want)
			}
			if got := read(t, dir, ".water.md.1"); got != tt.old {
				t.Errorf("kept is\n%q", got)
			}
			if got := list(t, l); got != `water=Water: "plants"` {
				t.Errorf("after: %s", got)
			}
		})
	}
}

func TestShortenRefuses(t *testing.T) {
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
		if _, _, err := l.Shorten(tt.name, tt.summary, trust.Owner); err == nil || !strings.Contains(err.Error(), tt.want) {
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

// TestMerge: one line less in the table of contents, and not a word less in the
// folder; put back, the file is a skill again.
func TestMerge(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir)
	tea, plants := "---\ndescription: How to make tea\n---\n# Tea\n\nBoil water.\n", "---\ntriggers: plants\n---\nThe kitchen\n\nIt is upstairs.\n"
	put(t, dir, "tea.md", tea)
	put(t, dir, "kitchen/SKILL.md", plants)
	s, kept, err := l.Merge("tea", "kitchen")
	if err != nil || s.Name != "kitchen" || s.Summary != "The kitchen" || kept != "data/skills/.tea.md.1" {
		t.Fatalf("%+v, %s, %v", s, kept, err)
	}
	if got, want := read(t, dir, "kitchen/SKILL.md"), strings.TrimRight(plants, "\n")+"\n\n## tea: How to make tea\n\n# Tea\n\nBoil water.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := list(t, l); got != "kitchen=The kitchen" {
		t.Errorf("%s", got)
	}
	if read(t, dir, ".tea.md.1") != tea || read(t, dir, "kitchen/.SKILL.md.1") != plants {
		t.Error("the earlier versions are not what they were")
	}
	// The program died before the file was put away: nothing is there twice.
	put(t, dir, "tea.md", tea)
	if _, kept, err = l.Merge("tea", "kitchen"); err != nil || kept != "data/skills/.tea.md.2" || strings.Count(read(t, dir, "kitchen/SKILL.md"), "Boil") != 1 {
		t.Errorf("again: %s, %v", kept, err)
	}
	if err := os.Rename(filepath.Join(dir, ".tea.md.1"), filepath.Join(dir, "tea.md")); err != nil {
		t.Fatal(err)
	}
	if got := list(t, l); got != "kitchen=The kitchen|tea=How to make tea" {
		t.Errorf("put back: %s", got)
	}
}

func TestMergeRefuses(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir)
	put(t, dir, "tea.md", "Tea\n\nBoil water.\n")
	put(t, dir, "deploy.md", "---\ntriggers: deploy\n---\nDeploy\n")
	put(t, dir, "folder/SKILL.md", "A folder\n")
	put(t, dir, "long.md", "Long\n\n"+strings.Repeat("x", 15_000))
	for _, tt := range []struct{ name, into, want string }{
		{"tea", "tea", "itself"}, {"tea", "coffee", `no skill "coffee"`}, {"coffee", "tea", `no skill "coffee"`}, {"tea", "../tea", "no skill"},
		{"deploy", "tea", "triggers"}, {"folder", "tea", "is a folder"}, {"tea", "long", "in one piece"}, {"long", "tea", "in one piece"},
	} {
		if _, _, err := l.Merge(tt.name, tt.into); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s into %s: %v", tt.name, tt.into, err)
		}
	}
	if got := list(t, l); got != "deploy=Deploy|folder=A folder|long=Long|tea=Tea" {
		t.Errorf("%s", got)
	}
	if old, _ := filepath.Glob(filepath.Join(dir, ".*")); len(old) > 0 {
		t.Errorf("left: %q", old)
	}
}
