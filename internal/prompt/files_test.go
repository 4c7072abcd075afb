package prompt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"reverie/internal/store"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	f := newFiles(dir, fstest.MapFS{"prompts/a.txt": {Data: []byte("built in\r\n")}})
	path := filepath.Join(dir, "prompts", "a.txt")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(text, problem string) {
		t.Helper()
		got := f.read("prompts/a.txt")
		if got.text != text || got.problem == "" != (problem == "") || !strings.Contains(got.problem, problem) {
			t.Errorf("got %q, problem %q; want %q, %q", got.text, got.problem, text, problem)
		}
		if again := f.read("prompts/a.txt"); again != got {
			t.Errorf("an unchanged file was read again")
		}
	}
	expect("built in\n", "is missing; the built-in text is used")
	write("\ufeffmine\r\n")
	expect("mine\n", "")
	write("fine\r\n\r\n") // the same size and perhaps the same time: another file all the same
	expect("fine\n\n", "")
	write("bad \xff\n")
	expect("bad \ufffd\n", "UTF-8")
	write("good\n")
	expect("good\n", "")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	expect("good\n", "not a regular file); what it said before is used")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	expect("built in\n", "is missing")
	write(strings.Repeat("x", maxFile+1))
	expect("built in\n", "larger than 1048576 bytes); the built-in text is used")
	if got := f.read("prompts/b.txt"); got.exists || got.problem != "is missing" {
		t.Errorf("a file that is nowhere: %+v", got)
	}
}

// An editor that writes a new file of the same size within the same tick of the clock
// is noticed all the same; and so is one that writes into the file.
func TestFilesOfTheSameSizeAndTime(t *testing.T) {
	dir := t.TempDir()
	f := newFiles(dir, nil)
	path := filepath.Join(dir, "a.txt")
	at := time.Date(2026, 11, 21, 8, 14, 0, 0, time.UTC)
	for i, text := range []string{"one", "two", "six"} {
		name := path
		if i < 2 {
			name += ".new"
		} else {
			at = at.Add(time.Nanosecond)
		}
		if err := errors.Join(os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, at, at), os.Rename(name, path)); err != nil {
			t.Fatal(err)
		}
		if got := f.read("a.txt").text; got != text {
			t.Errorf("read %q, want %q", got, text)
		}
	}
}

// A file that is written twice within a tick of the file system's clock, in place and
// with as many bytes, is read again all the same; one that is not keeps its text.
func TestFileWrittenTwiceAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.txt")
	f := newFiles(dir, nil)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now(), time.Now().Truncate(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	first := f.read("a.txt")
	if f.read("a.txt") != first {
		t.Error("the same text is another one")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	slot := f.slot("a.txt")
	if err := os.WriteFile(path, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	stamp, err := store.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	slot.last.stamp = stamp // as a coarse clock would have it
	if got := f.read("a.txt").text; got != "two" {
		t.Errorf("reads %q", got)
	}
}
