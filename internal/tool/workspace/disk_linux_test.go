package workspace

import (
	"os"
	"syscall"
	"testing"

	"reverie/internal/test/expect"
)

// smallDisk mounts one MiB at dir; only root can, so elsewhere the test is skipped.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	expect.OK(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { expect.OK(t, syscall.Unmount(dir, syscall.MNT_DETACH)) })
}
