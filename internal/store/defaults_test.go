package store_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	reverie "reverie"
	"reverie/internal/store"
)

func release(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		m[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return m
}

func states(ds []store.Default) string {
	var out []string
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s=%s", d.Path, d.State))
	}
	return strings.Join(out, " ")
}

func mustWrite(t *testing.T, r fs.FS, dir string) []store.Default {
	t.Helper()
	got, err := store.WriteDefaults(r, dir)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func mustList(t *testing.T, r fs.FS, dir string) []store.Default {
	t.Helper()
	got, err := store.ListDefaults(r, dir)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestDefaultsFollowTheReleaseUnlessEdited(t *testing.T) {
	dir := t.TempDir()
	step := func(r fstest.MapFS, want string) {
		t.Helper()
		listed, written := mustList(t, r, dir), mustWrite(t, r, dir)
		if got := states(written); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if diff := cmp.Diff(written, listed); diff != "" {
			t.Errorf("doctor sees it otherwise: %s", diff)
		}
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	one := release("p/base.txt", "v1", "p/seed.txt", "s1")
	step(one, "p/base.txt=written p/seed.txt=written")
	step(one, "p/base.txt=current p/seed.txt=current")

	write(t, at("p/seed.txt"), "mine")
	two := release("p/base.txt", "v2", "p/seed.txt", "s2", "skills/x.md", "x")
	step(two, "p/base.txt=updated p/seed.txt=edited skills/x.md=written")
	step(two, "p/base.txt=current p/seed.txt=edited skills/x.md=current")
	if got := string(read(t, at("p/base.txt"))) + string(read(t, at("p/seed.txt"))); got != "v2mine" {
		t.Errorf("files read %q", got)
	}

	// The owner takes the release's text: from now on it follows again.
	write(t, at("p/seed.txt"), "s2")
	step(two, "p/base.txt=current p/seed.txt=current skills/x.md=current")
	step(release("p/seed.txt", "s3"), "p/seed.txt=updated")

	// A file that is gone is written again, and one no longer shipped stays.
	if err := os.Remove(at("p/seed.txt")); err != nil {
		t.Fatal(err)
	}
	step(release("p/seed.txt", "s3"), "p/seed.txt=written")
	if got := string(read(t, at("p/base.txt"))); got != "v2" {
		t.Errorf("a file no longer shipped reads %q", got)
	}
}

// TestDefaultsInDoubt: without a record of what was written, a file that
// differs is its owner's.
func TestDefaultsInDoubt(t *testing.T) {
	for name, ledger := range map[string]string{"missing": "", "garbled": "\x00\xffnonsense\nabc  p/base.txt\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			mustWrite(t, release("p/base.txt", "v1"), dir)
			write(t, filepath.Join(dir, ".defaults"), ledger)
			if got := states(mustWrite(t, release("p/base.txt", "v2"), dir)); got != "p/base.txt=edited" {
				t.Error(got)
			}
			if got := string(read(t, filepath.Join(dir, "p", "base.txt"))); got != "v1" {
				t.Errorf("file reads %q", got)
			}
		})
	}
}

func TestDefaultsOneFailureDoesNotStopTheRest(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a.txt"), 0o700); err != nil { // a folder in its place
		t.Fatal(err)
	}
	got, err := store.WriteDefaults(release("a.txt", "a", "b.txt", "b"), dir)
	if err == nil || !strings.Contains(err.Error(), "a.txt") {
		t.Errorf("error %v", err)
	}
	if states(got) != "b.txt=written" || string(read(t, filepath.Join(dir, "b.txt"))) != "b" {
		t.Errorf("the other file: %s", states(got))
	}
}

// TestEmbeddedDefaults: the binary carries prompts, the sentences it says by itself, and nothing of the owner's.
func TestEmbeddedDefaults(t *testing.T) {
	seen := false
	for _, d := range mustList(t, reverie.Data, t.TempDir()) {
		seen = seen || d.Path == "BASE_PROMPT.txt"
		if !strings.HasPrefix(d.Path, "prompts/") && !strings.HasPrefix(d.Path, "messages/") && !strings.HasSuffix(d.Path, "_PROMPT.txt") {
			t.Errorf("embedded %s", d.Path)
		}
	}
	if !seen {
		t.Error("BASE_PROMPT.txt is not embedded")
	}
}
