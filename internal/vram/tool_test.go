package vram

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const goodRow = "0, GPU-1, 00000000:01:00.0, 24564, 1187, 22962, NVIDIA GeForce RTX 4090\n"

// fake writes a shell script that stands in for nvidia-smi.
func fake(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	// A child of another test, forked while the file is open for writing, would
	// keep it from being run.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// gone waits until the process whose id is in file is no more.
func gone(t *testing.T, file string) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		raw, _ := os.ReadFile(file)
		id, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err == nil && (syscall.Kill(id, 0) != nil || zombie(id)) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("process %q still lives", strings.TrimSpace(string(raw)))
		}
	}
}

// zombie tells a process that has ended and nobody has asked about; a grandchild
// becomes one where process 1 takes no notice.
func zombie(id int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	_, rest, _ := strings.Cut(string(raw), ") ")
	return err != nil || strings.HasPrefix(rest, "Z")
}

func TestTool(t *testing.T) {
	cases := []struct {
		name, body string
		silent     bool   // errSilent comes back
		text       string // the beginning of what is kept
		kept       int
		code       int
		child      bool // the script writes the id of a process that must not outlive the call
	}{
		{name: "good", body: "printf '%s\\n' hello; echo oops >&2", text: "hello\n", kept: 6},
		{name: "status 18", body: "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", text: "Failed", kept: 59, code: 18},
		{name: "2 MiB", body: "head -c 2097152 /dev/zero | tr '\\0' x", text: "xxx", kept: keptOutput},
		{name: "no output", body: "exit 0"},
		{name: "hangs", body: "echo $$ >PID; exec sleep 600", silent: true, child: true},
		{name: "ignores SIGTERM", body: "trap '' TERM; echo $$ >PID; while :; do sleep 1; done", silent: true, child: true},
		{name: "writes for ever", body: "echo $$ >PID; exec yes", silent: true, child: true},
		{name: "a grandchild holds the pipe", body: "sleep 2 & echo hello; exit 0", text: "hello\n", kept: 6},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pid := filepath.Join(t.TempDir(), "pid")
			path := fake(t, strings.ReplaceAll(c.body, "PID", pid))
			deadline := 30 * time.Second
			if c.silent {
				deadline = time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			out, err := runTool(ctx, path, nil, []string{"PATH=/usr/bin:/bin"})
			if errors.Is(err, errSilent) != c.silent || !c.silent && err != nil {
				t.Fatalf("error %v, want silent: %v", err, c.silent)
			}
			if c.child {
				gone(t, pid)
			}
			if c.silent {
				return
			}
			if !strings.HasPrefix(string(out.text), c.text) || len(out.text) != c.kept || out.code != c.code {
				t.Errorf("got %d bytes %.20q, status %d; want %d bytes %q, status %d", len(out.text), out.text, out.code, c.kept, c.text, c.code)
			}
		})
	}
}

func TestToolThatIsNone(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "nvidia-smi")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plain, filepath.Join(dir, "absent"), dir} {
		if _, err := runTool(t.Context(), path, nil, nil); err == nil || errors.Is(err, errSilent) {
			t.Errorf("%s: error %v, want one that says why it cannot be run", path, err)
		}
	}
}

// Tools see nothing of the environment this process has.
func TestToolSeesNoSecrets(t *testing.T) {
	t.Setenv("REVERIE_SECRET", "hunter2")
	out, err := runTool(t.Context(), fake(t, "env"), nil, environment("/usr/local/nvidia/bin/nvidia-smi", []string{"MORE=1"}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LC_ALL=C\n", "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib\n", "MORE=1\n"} {
		if !strings.Contains(string(out.text), want) {
			t.Errorf("the tool does not see %q:\n%s", want, out.text)
		}
	}
	if strings.Contains(string(out.text), "hunter2") {
		t.Errorf("the tool sees a secret:\n%s", out.text)
	}
}
