//go:build unix

package vram

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a pipe that nobody writes to would wait for ever.
func TestPipeIsNoModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := ReadShape(t.Context(), path); err == nil || !strings.Contains(err.Error(), "not a plain file") {
		t.Errorf("%v", err)
	}
}
