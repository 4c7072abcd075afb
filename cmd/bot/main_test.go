package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

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

// runBot runs a command in this process and returns its exit code and what it printed.
func runBot(t *testing.T, input string, args ...string) (code int, printed string) {
	t.Helper()
	var out bytes.Buffer
	code = start(t.Context(), args, console{in: strings.NewReader(input), out: &out, err: &out})
	return code, out.String()
}

// rehearsing is a configuration without Matrix, with the rehearsal model.
const rehearsing = "data: ./data\nllm:\n  models:\n    - {name: r, base_url: \"rehearsal:\", model: rehearsal}\n"

// configFile writes a configuration into a new folder.
func configFile(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config.yaml")
	must(t, store.WriteFile(path, []byte(text)))
	return path
}

// openTest opens the bot of a configuration until the end of the test.
func openTest(t *testing.T, config string) *bot {
	t.Helper()
	return openLogged(t, config, io.Discard)
}

func openLogged(t *testing.T, config string, log io.Writer) *bot {
	t.Helper()
	cfg, err := parse(t, t.TempDir(), config)
	must(t, err)
	b, err := openBot(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)), true)
	must(t, err)
	t.Cleanup(b.close)
	return b
}

// background runs work until the end of the test, or until stop, and wants it to end without an error.
func background(t *testing.T, work ...func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range work {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return stop
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	return string(b)
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTaskCommandRooms: with --room nothing of another room is shown, and what is done to one task changes no other.
func TestTaskCommandRooms(t *testing.T) {
	config := configFile(t, "timezone: UTC\n"+rehearsing)
	run := func(args ...string) string {
		t.Helper()
		code, text := runBot(t, "", append([]string{"task", "--config", config}, args...)...)
		if code != 0 {
			t.Errorf("%q: exit %d, %s", args, code, text)
		}
		return text
	}
	id := regexp.MustCompile(`task_[a-z2-7]{8}`)
	const canary = "CANARY-4711"
	theirs := id.FindString(run("add", "--room", "!a", "--when", "every day at 9", canary))
	mine := id.FindString(run("add", "--room", "!b", "--when", "every day at 9", "Water the plants"))
	before := run("show", theirs, "--json")
	for _, args := range [][]string{{"list", "--room", "!b", "--all"}, {"list", "--room", "!b", "--json"}, {"runs", "--room", "!b", theirs}, {"runs", "--room", "!b", "--json"}} {
		if text := run(args...); strings.Contains(text, canary) || strings.Contains(text, theirs) {
			t.Errorf("%q: %s", args, text)
		}
	}
	for _, args := range [][]string{{"pause", mine}, {"resume", mine}, {"complete", mine, "Anna", "wrote", "that", "they", "are", "watered"}, {"delete", mine}} {
		if text := run(args...); !strings.Contains(text, mine) || strings.Contains(text, canary) {
			t.Errorf("%q: %s", args, text)
		}
	}
	if after := run("show", theirs, "--json"); after != before || !strings.Contains(after, canary) {
		t.Errorf("it was %s and is %s", before, after)
	}
}
