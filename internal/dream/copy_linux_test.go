package dream

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"reverie/internal/dream/report"
	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/test/expect"
)

// TestNoRoomForACopy: on a full disk there is no copy.
func TestNoRoomForACopy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small disk needs root")
	}
	w := newWorld(t, home(""), perfect)
	dir := filepath.Join(w.dir, report.Folder)
	expect.OK(t, os.MkdirAll(dir, 0o700))
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	w.dreamsWithoutCopy("the disk is full", "no copy could be kept: ", func() {
		expect.OK(t, unix.Unmount(dir, unix.MNT_DETACH))
	})
}

// dreamsWithoutCopy looks whether nothing is changed without a copy, the report says in detail
// why, and the digest in words that people understand; and whether the same is dreamt once
// mend was called.
func (w *world) dreamsWithoutCopy(reason, detail string, mend func()) {
	t := w.t
	t.Helper()
	before := w.rows()
	r, err := w.d.Dream(t.Context(), Options{})
	if err == nil || r.State != report.Failed || !strings.Contains(r.Reason.String(), reason) || !strings.Contains(strings.Join(r.Notes, "\n"), err.Error()) ||
		!strings.Contains(err.Error(), detail) || w.rows() != before || len(r.Merged)+len(r.Superseded) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	text := r.Digest(i18n.English, func(memory.Scope) bool { return true })
	if !strings.Contains(text, "I could not dream last night") || !strings.Contains(text, reason) || strings.Contains(text, detail) {
		t.Error(text)
	}
	folder := filepath.Join(w.dir, report.Folder)
	if b, err := os.ReadFile(filepath.Join(folder, r.At.Format(time.DateOnly)+".md")); err != nil || !strings.Contains(string(b), "Nothing was changed: ") {
		t.Errorf("%s, %v", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*.db*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
	if _, err := w.d.Undo(t.Context(), ""); !errors.Is(err, ErrNothing) {
		t.Errorf("there is something to take back: %v", err)
	}
	mend()
	calls := w.calls
	w.now = w.now.Add(24 * time.Hour)
	if r := w.dream(Options{}); len(r.Merged) != 1 || len(r.Superseded) != 1 || w.calls != calls {
		t.Errorf("%d more requests, %+v", w.calls-calls, r)
	}
}
