package store

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestFolderTellsWhatStatTells: whatever is done to files that are held, or to what their
// names lead through, the next look tells it as their paths do.
func TestFolderTellsWhatStatTells(t *testing.T) {
	top := t.TempDir()
	in := func(name string) string { return filepath.Join(top, filepath.FromSlash(name)) }
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(name, text string) { t.Helper(); must(os.WriteFile(in(name), []byte(text), 0o600)) }
	names := []string{"a.md", "b.md", "c.md", "link.md", "sub/SKILL.md", "linked/SKILL.md", "none.md"}
	fill := func(dir string) {
		t.Helper()
		must(os.MkdirAll(in(dir+"/sub"), 0o700))
		for _, name := range []string{"a.md", "b.md", "c.md", "sub/SKILL.md"} {
			write(dir+"/"+name, "some text")
		}
		must(os.Symlink(in("elsewhere/SKILL.md"), in(dir+"/link.md")), os.Symlink(in("elsewhere"), in(dir+"/linked")))
	}
	must(os.Mkdir(in("elsewhere"), 0o700))
	write("elsewhere/SKILL.md", "some text")
	fill("skills")
	f := OpenFolder(in("skills"))
	if _, settled, err := f.Look(time.Now().Add(-time.Hour)); settled || err != nil {
		t.Errorf("a folder that has just changed is settled: %v, %v", settled, err)
	}
	if _, err := f.Stat("a.md"); err != nil || len(f.held) != 0 {
		t.Errorf("%d files of it are held, %v", len(f.held), err)
	}
	look := func(what string) {
		t.Helper()
		if _, _, err := f.Look(time.Now()); err != nil {
			t.Error(err)
		}
		for _, name := range names {
			got, err := f.Stat(name)
			want, errWant := Stat(in("skills/" + name))
			if got != want || err != nil || errWant != nil {
				t.Errorf("%s: %s is not as its path tells: %v, %v", what, name, err, errWant)
			}
		}
	}
	settle := func() {
		t.Helper()
		look("before")
		for deadline := time.Now().Add(time.Minute); !f.settled && f.stamp.Exists(); time.Sleep(10 * time.Millisecond) {
			if look("before"); time.Now().After(deadline) {
				t.Fatal("the folder's time does not pass")
			}
		}
		look("held")
	}
	settle()
	holds, _ := hold(in("skills/a.md"))
	if want := map[bool]int{false: 0, true: 3}[holds != nil]; len(f.held) != want {
		t.Errorf("%d files are held, want %d", len(f.held), want)
	}
	write("skills/.a", "some text") // from here on nobody looks
	must(os.Rename(in("skills/.a"), in("skills/a.md")))
	want, err := Stat(in("skills/a.md"))
	must(err)
	if got, err := f.Stat("a.md"); got != want || err != nil {
		t.Errorf("replaced after the look: a.md is not as its path tells: %v", err)
	}
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"written to", func() { write("skills/a.md", "other text, and longer") }},
		{"written to, with its old time", func() {
			info, err := os.Stat(in("skills/b.md"))
			must(err)
			write("skills/b.md", "text some")
			must(os.Chtimes(in("skills/b.md"), info.ModTime(), info.ModTime()))
		}},
		{"replaced", func() { write("skills/.a", "some text"); must(os.Rename(in("skills/.a"), in("skills/a.md"))) }},
		{"removed", func() { must(os.Remove(in("skills/a.md"))) }},
		{"made", func() { write("skills/a.md", "some text") }},
		{"moved", func() { must(os.Rename(in("skills/c.md"), in("skills/none.md"))) }},
		{"changed places", func() {
			must(os.Rename(in("skills/a.md"), in("skills/.a")), os.Rename(in("skills/b.md"), in("skills/a.md")), os.Rename(in("skills/.a"), in("skills/b.md")))
		}},
		{"written through another name", func() { must(os.Link(in("skills/a.md"), in("other"))); write("other", "by another name") }},
		{"made a link", func() { must(os.Remove(in("skills/b.md")), os.Symlink(in("elsewhere/SKILL.md"), in("skills/b.md"))) }},
		{"what links lead to is another", func() {
			must(os.Rename(in("elsewhere"), in("before")), os.Mkdir(in("elsewhere"), 0o700))
			write("elsewhere/SKILL.md", "some more text")
		}},
		{"the folder is another", func() { must(os.Rename(in("skills"), in("skills.old"))); fill("skills") }},
		{"the folder is gone", func() { must(os.RemoveAll(in("skills"))) }},
	} {
		step.do()
		look(step.what)
		settle()
	}
	if len(f.held) != 0 {
		t.Errorf("%d files of a folder that is gone are held", len(f.held))
	}
}

// TestFolderTakesFewHandles: a process has no more than some.
func TestFolderTakesFewHandles(t *testing.T) {
	dir := t.TempDir()
	f := OpenFolder(dir)
	const n = mostHeld + 10
	for i := range n {
		if err := os.WriteFile(filepath.Join(dir, string(rune('一'+i))), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	later := time.Now().Add(time.Hour)
	for range 2 {
		if _, _, err := f.Look(later); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if s, err := f.Stat(string(rune('一' + i))); err != nil || !s.Exists() {
				t.Fatal(s, err)
			}
		}
	}
	if len(f.held) > mostHeld {
		t.Errorf("%d files are held", len(f.held))
	}
}
