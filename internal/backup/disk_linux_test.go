package backup

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// smallDisk mounts a disk of that size. Without root the test is skipped.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { expect.OK(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// The disk is full while a backup is written or restored: a clear error, and no part of it stays.
// Holds L8.
func TestFullDisk(t *testing.T) {
	s := folder(t)
	noise := make([]byte, 6<<20)
	_, _ = rand.Read(noise)
	expect.OK(t, store.WriteFile(filepath.Join(s.Dir, "media", "noise"), noise))
	for _, size := range []string{"100k", "4m"} { // full at the copy of the database, and at the archive
		small := smallDisk(t, size)
		if _, err := Write(t.Context(), filepath.Join(small, "b"), s); err == nil || !strings.Contains(err.Error(), "full") &&
			!strings.Contains(err.Error(), "no space") {
			t.Errorf("%s: error %v", size, err)
		}
		expect.Equal(t, len(expect.Must(os.ReadDir(small))(t)), 0, "left behind")
	}
	file := filepath.Join(t.TempDir(), "b")
	expect.Must(Write(t.Context(), file, s))(t)
	for _, size := range []string{"4m", "20m"} {
		dir := filepath.Join(smallDisk(t, size), "data")
		if _, err := Restore(t.Context(), file, dir, target()); err == nil || !strings.Contains(err.Error(), "the disk has room for") {
			t.Errorf("%s: error %v", size, err)
		}
		expect.Equal(t, len(tree(t, dir)), 0, "left behind")
	}
}
