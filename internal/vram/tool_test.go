package vram

import (
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
	out, err := runTool(t.Context(), fake(t, "env"), nil, environment("/usr/local/nvidia/bin/nvidia-smi"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"LC_ALL=C\n", "LD_LIBRARY_PATH=/usr/local/nvidia/lib64:/usr/local/nvidia/lib\n"} {
		if !strings.Contains(string(out.text), want) {
			t.Errorf("the tool does not see %q:\n%s", want, out.text)
		}
	}
	if strings.Contains(string(out.text), "hunter2") {
		t.Errorf("the tool sees a secret:\n%s", out.text)
	}
}
