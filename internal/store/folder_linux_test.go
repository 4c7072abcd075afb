package store

import "testing"

// TestHoldOnForeignFileSystem: where others write, a handle is not enough.
func TestHoldOnForeignFileSystem(t *testing.T) {
	const file = "/proc/self/status"
	if s, err := Stat(file); err != nil || !s.Regular() {
		t.Skip("there is no ", file)
	}
	if got, _ := hold(file); got != nil {
		t.Error("a file is held that its file system says little of")
	}
}
