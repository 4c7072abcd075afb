package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"reverie/internal/store"
	"reverie/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.DoNotWait()
	testscript.Main(m, map[string]func(){"bot": main})
}

// TestScript runs the real binary under the scripts in testdata/script.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(e *testscript.Env) error {
			e.Setenv("REVERIE_LLM_URL", rehearsalURL) // never somebody's real model
			return nil
		},
	})
}

// exits N PROGRAM ARGS… runs a program and requires its exit code; what it
// prints can be matched by stdout and stderr afterwards.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// TestLockedFolder: a second process on the same data folder is refused.
// Holds F28.
func TestLockedFolder(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.yaml")
	if err := store.WriteFile(config, []byte("data: ./data\nllm:\n  models:\n    - {name: r, base_url: \"rehearsal:\", model: rehearsal}\n")); err != nil {
		t.Fatal(err)
	}
	lock, err := store.AcquireLock(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	run := func() (int, string) {
		var out, errs bytes.Buffer
		code := start(t.Context(), []string{"chat", "--config", config}, console{strings.NewReader("hello\n"), &out, &errs})
		return code, out.String() + errs.String()
	}
	if code, text := run(); code != exitFailed || !strings.Contains(text, "another process") {
		t.Errorf("with the folder locked: exit %d, %q", code, text)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if code, text := run(); code != 0 || !strings.Contains(text, "rehearsal") {
		t.Errorf("with the folder free: exit %d, %q", code, text)
	}
}
