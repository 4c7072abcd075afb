package prompt

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// aged makes a folder one that was changed long ago.
func aged(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if got := (&folders{dir: dir}).of("x"); got.settled {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the folder's time does not pass")
		}
	}
}

// A file that was missing is not looked for while its folder stays as it is, and is
// there as soon as it is made, also behind a link that led nowhere.
func TestMissingFilesAppear(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "soul")
	if err := os.Symlink(elsewhere, filepath.Join(dir, "LINK.md")); err != nil {
		t.Fatal(err)
	}
	f := newFiles(dir, nil)
	read := func(name string) string { return f.readIn((&folders{dir: dir}).of(name), name).text }
	aged(t, dir)
	for range 2 {
		for _, name := range []string{"SOUL.md", "LINK.md", "prompts/tools/x.txt"} {
			if got := read(name); got != "" {
				t.Fatalf("%s reads %q", name, got)
			}
		}
	}
	here := (&folders{dir: dir}).of("SOUL.md")
	if !here.lacks(f.slot("SOUL.md").last) || here.lacks(f.slot("LINK.md").last) || !(&folders{dir: dir}).of("prompts/tools/x.txt").lacks(f.slot("prompts/tools/x.txt").last) {
		t.Error("what is missing is not known, or a link is taken for missing")
	}
	for name, path := range map[string]string{"SOUL.md": filepath.Join(dir, "SOUL.md"), "LINK.md": elsewhere, "prompts/tools/x.txt": filepath.Join(dir, "prompts", "tools", "x.txt")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("now"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(name); got != "now" {
			t.Errorf("%s reads %q", name, got)
		}
	}
}
