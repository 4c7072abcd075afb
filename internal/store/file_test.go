package store_test

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	reverie "reverie"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	return expect.Must(os.ReadFile(path))(t)
}

// names lists a folder: a test that expects exactly these names also shows that
// no temporary file was left.
func names(t *testing.T, dir string) string {
	t.Helper()
	entries := expect.Must(os.ReadDir(dir))(t)
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
		expect.OK(t, store.WriteFile(path, []byte(text)))
		expect.Equal(t, string(read(t, path)), text)
	}
	if info, _ := os.Stat(path); info.Mode().Perm() != 0o600 {
		t.Errorf("file mode %v", info.Mode().Perm())
	}
	if info, _ := os.Stat(filepath.Join(dir, "new")); info.Mode().Perm() != 0o700 {
		t.Errorf("folder mode %v", info.Mode().Perm())
	}
	expect.Equal(t, names(t, filepath.Dir(path)), "f.txt", "folder holds")
}

func TestWriteFileFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "notes.txt"), filepath.Join(dir, "data", "MEMORIES.txt")
	write(t, real, "old")
	expect.OK(t, os.Mkdir(filepath.Dir(link), 0o700))
	expect.OK(t, os.Symlink("../notes.txt", link))
	expect.OK(t, store.WriteFile(link, []byte("new")))
	expect.Equal(t, string(read(t, real)), "new", "the file behind the link reads")
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	dangling := filepath.Join(dir, "dangling")
	expect.OK(t, os.Symlink("nowhere", dangling))
	if err := store.WriteFile(dangling, []byte("x")); err == nil || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("dangling link: %v", err)
	}
}

// Holds L8.
func TestWriteFileFailureKeepsOldContent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f.txt")
	write(t, path, "old")
	stop := errors.New("changed meanwhile")
	err := store.ReplaceFile(path, []byte("new"), func() error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("error %v", err)
	}
	expect.Equal(t, string(read(t, path)), "old", "after a refused replacement")
	expect.Equal(t, names(t, dir), "f.txt", "folder holds")
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
	expect.OK(t, store.WriteFile(path, []byte("old")))
	if err := store.WriteFile(path, make([]byte, 4<<20)); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("error %v", err)
	}
	if got := string(read(t, path)); got != "old" {
		t.Errorf("got %d bytes", len(got))
	}
	expect.Equal(t, names(t, dir), "f.txt", "folder holds")
}

func TestStamp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	stat := func() store.Stamp {
		t.Helper()
		return expect.Must(store.Stat(path))(t)
	}
	if stat().Exists() {
		t.Error("a missing file exists")
	}
	write(t, path, "one")
	first := stat()
	if !first.Exists() || !first.Regular() || first.Size() != 3 {
		t.Errorf("stamp %+v", first)
	}
	expect.Equal(t, first, stat(), "the stamp of an unchanged file")
	if first.Conclusive(time.Now()) {
		t.Error("a file written just now is settled")
	}
	if !first.Conclusive(time.Now().Add(time.Minute)) {
		t.Error("a file written a minute ago is not settled")
	}
	// A time in whole seconds may come from a clock that knows no others.
	whole := time.Now().Truncate(time.Second).Add(10 * time.Second)
	expect.OK(t, os.Chtimes(path, whole, whole))
	if changed := stat(); changed.Conclusive(whole.Add(1500*time.Millisecond)) || !changed.Conclusive(whole.Add(2500*time.Millisecond)) {
		t.Error("a file with whole seconds settles at the wrong time")
	}
	// Same size, same time of change: only the inode tells.
	old := time.Now().Add(-time.Hour)
	expect.OK(t, os.Chtimes(path, old, old))
	before := stat()
	write(t, path+"2", "two")
	expect.OK(t, os.Chtimes(path+"2", old, old))
	expect.OK(t, os.Rename(path+"2", path))
	if stat() == before {
		t.Error("a replaced file has the stamp of the old one")
	}
}

// TestLock: one holder at a time, which others can see without being in its way.
// Holds F28.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	look := func(want bool) {
		t.Helper()
		pid, since, err := store.LockHolder(dir)
		if held := pid != 0; err != nil || held != want || held == since.IsZero() || held && pid != os.Getpid() {
			t.Errorf("held %v by process %d since %v, %v", held, pid, since, err)
		}
	}
	look(false)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("looking left something behind: %v", err)
	}
	for range 2 { // the second time with a file that is there
		l, err := store.AcquireLock(dir)
		if err != nil {
			t.Fatal(err)
		}
		look(true)
		look(true)
		_, err = store.AcquireLock(dir)
		if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
			t.Errorf("second lock: %v", err)
		}
		expect.OK(t, errors.Join(l.Release(), l.Release()))
		look(false)
	}
}

// TestLockChild is the other process of the test below.
func TestLockChild(t *testing.T) {
	dir := os.Getenv("REVERIE_TEST_LOCK")
	if dir == "" {
		t.Skip("not started by TestLockReleasedByExit")
	}
	l := expect.Must(store.AcquireLock(dir))(t)
	defer func() { _ = l.Release() }() // an unreferenced lock would be garbage-collected, and its file closed
	fmt.Println("\nlocked")
	select {} // until killed
}

// Holds F28.
func TestLockReleasedByExit(t *testing.T) {
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestLockChild$")
	child.Env = append(os.Environ(), "REVERIE_TEST_LOCK="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	expect.OK(t, child.Start())
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }()
	for lines := bufio.NewScanner(out); lines.Text() != "locked"; {
		if !lines.Scan() {
			t.Fatal("the child ended without the lock")
		}
	}
	_, err = store.AcquireLock(dir)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(child.Process.Pid)) {
		t.Fatalf("while the child lives: %v", err)
	}
	if err := child.Process.Kill(); err != nil { // SIGKILL
		t.Fatal(err)
	}
	_ = child.Wait()
	l := expect.Must(store.AcquireLock(dir))(t)
	_ = l.Release()
}

func TestLockFileExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", ".guard")
	unlock := expect.Must(store.LockFile(path))(t)
	if _, held, err := store.TryLockFile(path); !held || err != nil {
		t.Errorf("beside it: held %v, %v", held, err)
	}
	second := make(chan error)
	go func() {
		free, err := store.LockFile(path)
		if err == nil {
			free()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Errorf("two are inside, %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	unlock()
	if err := <-second; err != nil {
		t.Error(err)
	}
	free, held, err := store.TryLockFile(path)
	if held || err != nil {
		t.Fatalf("afterwards: held %v, %v", held, err)
	}
	free()
}

func release(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return m
}

// holds returns the default files of a folder with what they say, in order.
func holds(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	expect.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != ".defaults" {
			all = append(all, filepath.ToSlash(strings.TrimPrefix(path, dir+"/"))+"="+string(read(t, path)))
		}
		return err
	}))
	return strings.Join(all, " ")
}

func TestDefaultsFollowTheReleaseUnlessEdited(t *testing.T) {
	dir := t.TempDir()
	step := func(r fstest.MapFS, edited, want string) {
		t.Helper()
		before := holds(t, dir)
		listed := expect.Must(store.EditedDefaults(r, dir))(t)
		expect.Equal(t, holds(t, dir), before, "looking changed files")
		expect.EqualSlice(t, expect.Must(store.WriteDefaults(r, dir))(t), listed, "the doctor sees it otherwise")
		expect.Equal(t, strings.Join(listed, " "), edited, "edited")
		expect.Equal(t, holds(t, dir), want)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	one := release("p/base.txt", "v1", "p/seed.txt", "s1")
	step(one, "", "p/base.txt=v1 p/seed.txt=s1")
	step(one, "", "p/base.txt=v1 p/seed.txt=s1")

	write(t, at("p/seed.txt"), "mine")
	two := release("p/base.txt", "v2", "p/seed.txt", "s2", "skills/x.md", "x")
	step(two, "p/seed.txt", "p/base.txt=v2 p/seed.txt=mine skills/x.md=x")
	step(two, "p/seed.txt", "p/base.txt=v2 p/seed.txt=mine skills/x.md=x")

	// The owner takes the release's text: from now on it follows again.
	write(t, at("p/seed.txt"), "s2")
	step(two, "", "p/base.txt=v2 p/seed.txt=s2 skills/x.md=x")
	step(release("p/seed.txt", "s3"), "", "p/base.txt=v2 p/seed.txt=s3 skills/x.md=x")

	// A file that is gone is written again, and one no longer shipped stays.
	expect.OK(t, os.Remove(at("p/seed.txt")))
	step(release("p/seed.txt", "s3"), "", "p/base.txt=v2 p/seed.txt=s3 skills/x.md=x")
}

// TestDefaultsWithoutLedger: without a record of what was written, a file that
// differs is its owner's.
func TestDefaultsWithoutLedger(t *testing.T) {
	for name, ledger := range map[string]string{"missing": "", "garbled": "\x00\xffnonsense\nabc  p/base.txt\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			expect.Must(store.WriteDefaults(release("p/base.txt", "v1"), dir))(t)
			write(t, filepath.Join(dir, ".defaults"), ledger)
			expect.EqualSlice(t, expect.Must(store.WriteDefaults(release("p/base.txt", "v2"), dir))(t), []string{"p/base.txt"})
			expect.Equal(t, holds(t, dir), "p/base.txt=v1")
		})
	}
}

func TestDefaultsOneFailureDoesNotStopTheRest(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, os.MkdirAll(filepath.Join(dir, "a.txt"), 0o700)) // a folder in its place
	if _, err := store.WriteDefaults(release("a.txt", "a", "b.txt", "b"), dir); err == nil || !strings.Contains(err.Error(), "a.txt") {
		t.Errorf("error %v", err)
	}
	expect.Equal(t, holds(t, dir), "b.txt=b", "the other file")
}

// TestEmbeddedDefaults: the binary carries prompts, the sentences it says by itself, and nothing of the owner's.
func TestEmbeddedDefaults(t *testing.T) {
	seen := false
	expect.OK(t, fs.WalkDir(reverie.Data, ".", func(path string, d fs.DirEntry, err error) error {
		seen = seen || path == "BASE_PROMPT.txt"
		if err == nil && !d.IsDir() && !strings.HasPrefix(path, "prompts/") && !strings.HasPrefix(path, "messages/") && !strings.HasPrefix(path, "personas/") && !strings.HasSuffix(path, "_PROMPT.txt") {
			t.Errorf("embedded %s", path)
		}
		return err
	}))
	if !seen {
		t.Error("BASE_PROMPT.txt is not embedded")
	}
}
