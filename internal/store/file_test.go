package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/store"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// names lists a folder: a test that expects exactly these names also shows that
// no temporary file was left.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "deep", "f.txt")
	for _, text := range []string{"one", "", "three\x00\n"} {
		if err := store.WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := string(read(t, path)); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("file mode %v", info.Mode().Perm())
	}
	if info, _ := os.Stat(filepath.Join(dir, "new")); info.Mode().Perm() != 0o700 {
		t.Errorf("folder mode %v", info.Mode().Perm())
	}
	if got := names(t, filepath.Dir(path)); got != "f.txt" {
		t.Errorf("folder holds %s", got)
	}
}

func TestWriteFileFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "data", "MEMORIES.txt")
	write(t, real, "old")
	if err := os.Mkdir(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../notes.txt", link); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got := string(read(t, real)); got != "new" {
		t.Errorf("the file behind the link reads %q", got)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink("nowhere", dangling); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(dangling, []byte("x")); err == nil || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("dangling link: %v", err)
	}
}

// Holds L8.
func TestWriteFileKeepsTheOldContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	write(t, path, "old")
	stop := errors.New("changed meanwhile")
	err := store.ReplaceFile(path, []byte("new"), func() error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	if got := string(read(t, path)); got != "old" {
		t.Errorf("after a refused replacement: %q", got)
	}
	if got := names(t, dir); got != "f.txt" {
		t.Errorf("folder holds %s", got)
	}
	if err := store.WriteFile(filepath.Join(path, "below"), nil); err == nil {
		t.Error("wrote below a file")
	}
	if err := store.WriteFile(dir, []byte("x")); err == nil {
		t.Error("replaced a folder")
	}
}

// TestWriteFileOnAFullDisk writes to a file system that takes only so much.
func TestWriteFileOnAFullDisk(t *testing.T) {
	dir := smallDisk(t)
	path := filepath.Join(dir, "f.txt")
	if err := store.WriteFile(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(path, make([]byte, 4<<20)); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("error %v", err)
	}
	if got := string(read(t, path)); got != "old" {
		t.Errorf("got %d bytes", len(got))
	}
	if got := names(t, dir); got != "f.txt" {
		t.Errorf("folder holds %s", got)
	}
}

func TestStamp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	stat := func() store.Stamp {
		t.Helper()
		s, err := store.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if stat().Exists() {
		t.Error("a missing file exists")
	}
	write(t, path, "one")
	first := stat()
	if !first.Exists() || !first.Regular() || first.Size() != 3 {
		t.Errorf("stamp %+v", first)
	}
	if first != stat() {
		t.Error("the stamp of an unchanged file differs")
	}
	if first.Settled(time.Now()) {
		t.Error("a file written just now is settled")
	}
	if !first.Settled(time.Now().Add(time.Minute)) {
		t.Error("a file written a minute ago is not settled")
	}
	// A time in whole seconds may come from a clock that knows no others.
	whole := time.Now().Truncate(time.Second).Add(10 * time.Second)
	if err := os.Chtimes(path, whole, whole); err != nil {
		t.Fatal(err)
	}
	if changed := stat(); changed.Settled(whole.Add(1500*time.Millisecond)) || !changed.Settled(whole.Add(2500*time.Millisecond)) {
		t.Error("a file with whole seconds settles at the wrong time")
	}
	if first.SameContent(stat()) {
		t.Error("another time of change is the same content")
	}
	// Same size, same time of change: only the inode tells.
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	before := stat()
	write(t, path+"2", "two")
	if err := os.Chtimes(path+"2", old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"2", path); err != nil {
		t.Fatal(err)
	}
	if stat() == before {
		t.Error("a replaced file has the stamp of the old one")
	}
}
