package section

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"reverie/internal/test/expect"
)

// A file is not read again while it stays the same, and an edit counts at once.
func TestEditedFile(t *testing.T) {
	t.Parallel()
	s := &Sources{Dir: t.TempDir(), Defaults: fstest.MapFS{"a.txt": {Data: []byte("built in")}}}
	path := filepath.Join(s.Dir, "a.txt")
	write := func(text string) { expect.OK(t, os.WriteFile(path, []byte(text), 0o600)) }
	kept := func() bool { _, ok := s.cache.files.Load("a.txt"); return ok }

	expect.Equal(t, s.read("a.txt").text, "built in")
	for _, text := range []string{"one", "two"} { // of the same length and nearly the same time
		write(text)
		expect.Equal(t, s.read("a.txt").text, text)
		expect.False(t, kept(), "kept although another change may look the same")
	}
	time.Sleep(2100 * time.Millisecond) // see store.Stamp.Conclusive
	s.read("a.txt").text = "changed by a contributor"
	expect.False(t, !kept(), "read each time")
	expect.Equal(t, s.read("a.txt").text, "two")
	write("six")
	expect.Equal(t, s.read("a.txt").text, "six")
	expect.OK(t, os.Remove(path))
	expect.Equal(t, s.read("a.txt").text, "built in")
}
