package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLargeMemoryFile: a memory file that is too large to be read is named to the person,
// nothing is stored meanwhile, and what is to be forgotten is forgotten all the same.
func TestLargeMemoryFile(t *testing.T) {
	w := newWorld(t, t.TempDir())
	if got := w.say(t, "$1", "!remember my heron is called Zaphod").Text; !strings.Contains(got, "Remembered") {
		t.Fatal(got)
	}
	file := filepath.Join(w.dir, "MEMORIES.txt")
	small := result(os.ReadFile(file))(t)
	large := append(small, strings.Repeat("a line that somebody pasted\n", (20<<20-1000)/28)...)
	must(t, os.WriteFile(file, large, 0o600))
	for _, want := range []string{"MEMORIES.txt", "20 MiB", "16 MiB", "shorten"} {
		if got := w.say(t, "$2"+want, "!remember my tea is green").Text; !strings.Contains(got, want) || strings.Contains(got, "Something went wrong") {
			t.Errorf("!remember: %q, want %q", got, want)
		}
	}
	got := w.say(t, "$3", "!forget my heron is called Zaphod").Text
	wants(t, got, "Forgotten for good", "MEMORIES.txt", "20 MiB", "16 MiB")
	lacks(t, w.say(t, "$4", "!memory").Text, "Zaphod", "tea")
	// Once the file can be read again, its forgotten line goes as well.
	must(t, os.WriteFile(file, append(small, "My boat is red\n"...), 0o600))
	if got := w.say(t, "$5", "!memory").Text; strings.Contains(got, "Zaphod") || !strings.Contains(got, "My boat is red") {
		t.Errorf("!memory: %s", got)
	}
	if now, err := os.ReadFile(file); err != nil || strings.Contains(string(now), "Zaphod") {
		t.Errorf("%.200s, %v", now, err)
	}
}
