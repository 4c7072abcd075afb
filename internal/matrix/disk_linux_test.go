package matrix_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"reverie/internal/matrix/doctor"
	"reverie/internal/test/expect"
)

// smallDisk mounts 24 MiB. Without root the test is skipped.
func smallDisk(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill fills the disk up to free bytes and returns a function that frees it.
func fill(t *testing.T, dir string, free int64) (empty func()) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 4096)
	size := int64(0)
	for {
		n, err := f.Write(zeros)
		size += int64(n)
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	expect.OK(t, f.Truncate(max(size-free, 0)))
	return func() {
		_ = f.Close()
		if err := os.Remove(f.Name()); err != nil {
			t.Error(err)
		}
	}
}

// The disk is full, or has a few free pages, so that the writes of one sync fail at different places.
// Each message comes with a key.
// Holds F44.
func TestDiskFull(t *testing.T) {
	dir := smallDisk(t)
	w := newWritable(t, dir, true)
	for _, free := range []int64{0, 4, 12, 20, 32, 48, 64, 96} {
		t.Run(fmt.Sprint(free, " KiB left"), func(t *testing.T) {
			w.t = t
			for busy := 1; busy != 0; { // what is in the log file already needs no room
				var a, b int
				expect.OK(t, w.db.QueryRowContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &a, &b))
			}
			empty := fill(t, dir, free<<10)
			before, token := w.failed(), w.token()
			text := fmt.Sprint("with ", free, " KiB")
			say(t, w.you, w.room, text)
			if free == 0 {
				w.failures(before, 2)
				expect.Equal(t, w.token(), token, "the token on a full disk")
			}
			w.becomes("neither failed nor stored", func(doctor.Status) bool { return w.failed() != before || w.token() != token })
			t.Logf("%d writes failed", w.failed()-before)
			empty()
			w.answers(text)
		})
	}
	w.t = t
	w.whole()
}
