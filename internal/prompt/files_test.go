package prompt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
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
