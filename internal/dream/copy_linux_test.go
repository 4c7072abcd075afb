package dream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reverie/internal/i18n"
	"reverie/internal/memory"
)

// TestNoRoomForACopy: without a copy nothing is changed, and the report says in detail why,
// the digest in words that people understand; when there is room the same is dreamt.
func TestNoRoomForACopy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	w := newWorld(t, home(""), perfect)
	dir := filepath.Join(w.dir, Folder)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	before := w.rows()
	r, err := w.d.Dream(t.Context(), Options{})
	if err == nil || r.State != Failed || !strings.Contains(r.Reason.String(), "the disk is full") || !strings.Contains(strings.Join(r.Notes, "\n"), err.Error()) || !strings.Contains(err.Error(), "no copy could be kept: ") || w.rows() != before || len(r.Merged)+len(r.Superseded) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if text := r.Digest(i18n.English, func(memory.Scope) bool { return true }); !strings.Contains(text, "I could not dream this night") || !strings.Contains(text, "the disk is full") {
		t.Error(text)
	}
	if b, err := os.ReadFile(filepath.Join(dir, r.At.Format(time.DateOnly)+".md")); err != nil || !strings.Contains(string(b), "Nothing was changed: ") {
		t.Errorf("%s, %v", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*.db*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
	if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
		t.Fatal(err)
	}
	calls := w.calls
	w.now = w.now.Add(24 * time.Hour)
	if r := w.dream(Options{}); len(r.Merged) != 1 || len(r.Superseded) != 1 || w.calls != calls {
		t.Errorf("%d more requests, %+v", w.calls-calls, r)
	}
}
