package memory

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestWorkingSetIsFull: file and prompt show as many lines as they may, whatever
// was of use, and every line of a file that is small enough.
// Holds L23.
func TestWorkingSetIsFull(t *testing.T) {
	const lines = 6
	ctx, dir := t.Context(), t.TempDir()
	var mine []string
	for n := range lines {
		mine = append(mine, fmt.Sprintf("by hand %d", n))
	}
	byHand := strings.Join(mine, "\n") + "\n"
	noError(t, os.WriteFile(dir+"/MEMORIES.txt", []byte(byHand), 0o600))
	s := openWith(t, Config{Dir: dir, Owner: owner, Backend: FTS5, FileLines: lines})
	me := Private(owner)
	if texts(t, s, me); onDisk(t, s, me) != byHand {
		t.Errorf("a small file is cut: %q", onDisk(t, s, me))
	}
	check := func(want ...string) {
		t.Helper()
		all := must(s.Entries(ctx, me))(t)
		var prompt []string
		for _, e := range s.WorkingSet(all) {
			prompt = append(prompt, e.Text)
		}
		file := lineTexts([]byte(onDisk(t, s, me)))
		slices.Sort(want)
		slices.Sort(prompt)
		slices.Sort(file)
		if !slices.Equal(prompt, want) || !slices.Equal(file, want) {
			t.Errorf("the prompt shows %q,\nthe file %q,\nwant %q", prompt, file, want)
		}
	}
	for n := range 4 {
		noted(t, s, me, fmt.Sprintf("noted %d", n), owner)
	}
	check("noted 0", "noted 1", "noted 2", "noted 3", "by hand 5", "by hand 4")
	must(s.db.Exec(`UPDATE memory SET hits = 3 WHERE text IN ('by hand 0', 'noted 3')`))(t)
	noted(t, s, me, "noted 4", owner)
	check("by hand 0", "noted 0", "noted 1", "noted 2", "noted 3", "noted 4")
	must(s.db.Exec(`UPDATE memory SET hits = 1 WHERE text LIKE 'by hand %'`))(t)
	noted(t, s, me, "noted 5", owner) // most used: noted 3, by hand 5, by hand 4
	if got := lineTexts([]byte(onDisk(t, s, me))); len(got) != lines || !slices.Contains(got, "noted 4") {
		t.Errorf("the file shows %q", got)
	}
}
