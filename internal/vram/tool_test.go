package vram

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const goodRow = "0, GPU-1, 00000000:01:00.0, 24564, 1187, 22962, [N/A], NVIDIA GeForce RTX 4090\n"

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
		kept, cut  int
		code       int
		child      bool // the script writes the id of a process that must not outlive the call
	}{
		{name: "good", body: "printf '%s\\n' hello; echo oops >&2", text: "hello\n", kept: 6},
		{name: "status 18", body: "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", text: "Failed", kept: 59, code: 18},
		{name: "2 MiB", body: "head -c 2097152 /dev/zero | tr '\\0' x", text: "xxx", kept: keptOutput, cut: 2<<20 - keptOutput},
		{name: "no output", body: "exit 0"},
		{name: "hangs", body: "echo $$ >PID; exec sleep 600", silent: true, child: true},
		{name: "ignores SIGTERM", body: "trap '' TERM; echo $$ >PID; while :; do sleep 1; done", silent: true, child: true},
		{name: "writes for ever", body: "echo $$ >PID; exec yes", silent: true, child: true},
		{name: "takes SIGTERM for success", body: "trap 'exit 0' TERM; echo $$ >PID; sleep 600 & wait", silent: true, child: true},
		{name: "a grandchild holds the pipe", body: "sleep 600 & echo $! >PID; echo hello; exit 0", text: "hello\n", kept: 6, child: true},
		{name: "a grandchild that ignores SIGTERM", body: "(trap '' TERM; sleep 600) & echo $! >PID; sleep 600", silent: true, child: true},
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
			out, err := new(runner).run(ctx, path, nil, []string{"PATH=/usr/bin:/bin"})
			if errors.Is(err, errSilent) != c.silent || !c.silent && err != nil {
				t.Fatalf("error %v, want silent: %v", err, c.silent)
			}
			if c.child {
				gone(t, pid)
			}
			if c.silent {
				return
			}
			if !strings.HasPrefix(string(out.text), c.text) || len(out.text) != c.kept || out.cut != c.cut || out.code != c.code {
				t.Errorf("got %d bytes %.20q, cut %d, status %d; want %d bytes %q, cut %d, status %d",
					len(out.text), out.text, out.cut, out.code, c.kept, c.text, c.cut, c.code)
			}
		})
	}
}

// A tool is asked to end before it is made to.
func TestToolMayEndByItself(t *testing.T) {
	t.Parallel()
	bye := filepath.Join(t.TempDir(), "bye")
	path := fake(t, "trap 'echo bye >"+bye+"; exit 1' TERM; while :; do sleep 0.05; done")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := new(runner).run(ctx, path, nil, []string{"PATH=/usr/bin:/bin"}); !errors.Is(err, errSilent) {
		t.Errorf("error %v, want no answer", err)
	}
	if _, err := os.Stat(bye); err != nil {
		t.Error("the tool was killed without a word")
	}
}

func TestToolThatIsNone(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "nvidia-smi")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plain, filepath.Join(dir, "absent"), dir} {
		r := new(runner)
		if _, err := r.run(t.Context(), path, nil, nil); err == nil || errors.Is(err, errSilent) {
			t.Errorf("%s: error %v, want one that says why it cannot be run", path, err)
		}
		if _, err := r.run(t.Context(), fake(t, "exit 0"), nil, nil); err != nil {
			t.Errorf("after a tool that cannot be run none can: %v", err)
		}
	}
}

// Tools see nothing of the environment this process has.
func TestToolSeesNoSecrets(t *testing.T) {
	t.Setenv("REVERIE_SECRET", "hunter2")
	out, err := new(runner).run(t.Context(), fake(t, "env"), nil, environment("/usr/local/nvidia/bin/nvidia-smi", []string{"MORE=1"}))
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

// A child in uninterruptible sleep does not end when it is killed. Nobody waits
// for it, and no second one is started until the kernel gives it back.
func TestToolThatCannotBeKilled(t *testing.T) {
	release := make(chan struct{})
	r := &runner{wait: func(cmd *exec.Cmd) error {
		<-release
		return cmd.Wait()
	}}
	starts := filepath.Join(t.TempDir(), "starts")
	path := fake(t, "echo x >>"+starts)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := r.run(ctx, path, nil, nil); !errors.Is(err, errSilent) || errors.Is(err, errBusy) {
		t.Fatalf("error %v, want no answer", err)
	}
	for range 100 {
		if _, err := r.run(t.Context(), path, nil, nil); !errors.Is(err, errBusy) || !errors.Is(err, errSilent) {
			t.Fatalf("error %v, want busy", err)
		}
	}
	close(release)
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if _, err := r.run(t.Context(), path, nil, nil); err == nil {
			break
		} else if time.Now().After(until) {
			t.Fatalf("the tool is never asked again: %v", err)
		}
	}
	if raw, _ := os.ReadFile(starts); strings.Count(string(raw), "x") != 2 {
		t.Errorf("%d children were started, want 2", strings.Count(string(raw), "x"))
	}
}
