package skill

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShift: a skill goes to the archive and comes back, over nothing that is there, and
// again without harm; nothing leaves the folder.
func TestShift(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir)
	put(t, dir, "tea.md", "Tea\n\nBoil.\n")
	put(t, dir, "kit/SKILL.md", "Kit\n\nUse it.\n")
	put(t, dir, ".archive/tea.md", "Older tea\n")
	all, err := l.All()
	if err != nil || len(all) != 2 || all[0].Place() != "kit" || all[1].Place() != "tea.md" {
		t.Fatalf("%+v, %v", all, err)
	}
	to, err := l.Archive("tea.md")
	if err != nil || to != ".archive/tea.2.md" {
		t.Fatalf("%s, %v", to, err)
	}
	for range 2 { // twice is once
		if err := l.Shift("tea.md", to); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Shift("kit", ".archive/kit"); err != nil {
		t.Fatal(err)
	}
	if got := list(t, l); got != "" {
		t.Errorf("%s", got)
	}
	put(t, dir, "tea.md", "New tea\n")
	if err := l.Shift(to, "tea.md"); err == nil || !strings.Contains(err.Error(), "data/skills/tea.md") || read(t, dir, "tea.md") != "New tea\n" || read(t, dir, ".archive/tea.2.md") != "Tea\n\nBoil.\n" {
		t.Errorf("%v", err)
	}
	if err := l.Shift(".archive/kit", "kit"); err != nil || read(t, dir, "kit/SKILL.md") != "Kit\n\nUse it.\n" {
		t.Error(err)
	}
	for _, bad := range []string{"../x", "/etc/passwd", ""} {
		if l.Shift(bad, "y") == nil || l.Shift("kit", bad) == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "kit")); err != nil {
		t.Error(err)
	}
}
