package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"reverie/internal/test/expect"
)

// TestDiskFull: when there is no room, what was said to be stored is, what was
// not is refused with an error, and it goes on when there is room again.
// Holds L8.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	s := openAt(t, dir)
	t.Cleanup(func() { _ = s.db.Close() })
	put(t, s, Private(owner), "# mine\nby hand\n")
	texts(t, s, Private(owner))
	fill := filepath.Join(dir, "fill")
	refused := 0
	var stored []string
	for _, free := range []int64{0, 4, 12, 40, 100} {
		if err := os.WriteFile(fill, make([]byte, 8<<20), 0o600); err == nil {
			t.Fatal("the disk is not full")
		}
		expect.OK(t, os.Truncate(fill, max(size(t, fill)-free<<10, 0)))
		for i := range 20 {
			text := fmt.Sprintf("fact %d with %d KiB left %s", i, free, strings.Repeat("x", 1000))
			_, _, err := s.Append(t.Context(), Private(owner), text)
			if err == nil {
				stored = append(stored, text)
			} else if refused++; !strings.Contains(err.Error(), "full") && !strings.Contains(err.Error(), "no space") {
				t.Errorf("the error does not say why: %v", err)
			}
		}
		expect.OK(t, os.Remove(fill))
		if got, want := texts(t, s, Private(owner)), strings.Join(append([]string{"by hand"}, stored...), "|"); got != want {
			t.Fatalf("with %d KiB: known\n%s\nwant\n%s", free, got, want)
		}
		if got := onDisk(t, s, Private(owner)); got != "# mine\nby hand\n"+strings.Join(append(stored, ""), "\n") {
			t.Fatalf("with %d KiB: file reads %q", free, got)
		}
	}
	expect.False(t, refused == 0 || len(stored) == 0, "%d refused, %d stored", refused, len(stored))
	expect.Equal(t, strings.Count(texts(t, openAt(t, dir), Private(owner)), "|"), len(stored), "after a restart")
}

func size(t *testing.T, path string) int64 {
	info := expect.Must(os.Stat(path))(t)
	return info.Size()
}
