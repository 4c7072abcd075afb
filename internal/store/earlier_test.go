package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	reverie "reverie"
	"reverie/internal/store"
)

// moved lists the files that stand elsewhere than earlier releases had them.
func moved(ds []store.Default) string {
	var out []string
	for _, d := range ds {
		if d.Move != store.Stays {
			out = append(out, fmt.Sprintf("%s<%s=%s", d.Path, d.Earlier, d.Move))
		}
	}
	return strings.Join(out, " ")
}

var (
	before = release("prompts/BASE_PROMPT.txt", "base 1", "prompts/COMPACT.txt", "compact 1", "prompts/DREAM_TASK.txt", "task 1", "prompts/SANITY.txt", "sanity")
	after  = release("BASE_PROMPT.txt", "base 2", "COMPACTION_PROMPT.txt", "compact 1", "DREAM_TASK_PROMPT.txt", "task 2", "prompts/SANITY.txt", "sanity")
)

// laidOut is a data folder as the earlier release left it, with one file edited.
func laidOut(t *testing.T) (dir string, at func(string) string) {
	t.Helper()
	dir = t.TempDir()
	at = func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	mustWrite(t, before, dir)
	write(t, at("prompts/DREAM_TASK.txt"), "mine")
	return dir, at
}

// put is write that makes the folder.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := store.WriteFile(path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// TestFilesAreMovedToTheirNewNames: an edited file keeps its text, an untouched one follows the release. Wherever
// the program was killed among the moves, the next start ends as if it had not been.
func TestFilesAreMovedToTheirNewNames(t *testing.T) {
	const told = "BASE_PROMPT.txt<prompts/BASE_PROMPT.txt=%[1]s COMPACTION_PROMPT.txt<prompts/COMPACT.txt=%[1]s DREAM_TASK_PROMPT.txt<prompts/DREAM_TASK.txt=%[1]s"
	const judged = "BASE_PROMPT.txt=updated COMPACTION_PROMPT.txt=current DREAM_TASK_PROMPT.txt=edited prompts/SANITY.txt=current"
	moves := [][2]string{{"prompts/BASE_PROMPT.txt", "BASE_PROMPT.txt"}, {"prompts/COMPACT.txt", "COMPACTION_PROMPT.txt"}, {"prompts/DREAM_TASK.txt", "DREAM_TASK_PROMPT.txt"}}
	for done := range len(moves) + 1 {
		dir, at := laidOut(t)
		for _, m := range moves[:done] {
			if err := os.Rename(at(m[0]), at(m[1])); err != nil {
				t.Fatal(err)
			}
		}
		listed := mustList(t, after, dir)
		written := mustWrite(t, after, dir)
		for _, got := range [][]store.Default{listed, written} {
			if done == 0 && moved(got) != fmt.Sprintf(told, "due") || states(got) != judged {
				t.Errorf("after %d moves: %s, %s", done, moved(got), states(got))
			}
		}
		for name, want := range map[string]string{"BASE_PROMPT.txt": "base 2", "COMPACTION_PROMPT.txt": "compact 1", "DREAM_TASK_PROMPT.txt": "mine"} {
			if got := string(read(t, at(name))); got != want {
				t.Errorf("after %d moves: %s reads %q", done, name, got)
			}
		}
		if left := names(t, at("prompts")); left != "SANITY.txt" {
			t.Errorf("after %d moves: left in prompts: %s", done, left)
		}
		// It is known later, too, and the next release is followed from the new place.
		if got := moved(mustList(t, after, dir)); got != fmt.Sprintf(told, "moved") {
			t.Errorf("afterwards: %s", got)
		}
		next := release("COMPACTION_PROMPT.txt", "compact 3", "DREAM_TASK_PROMPT.txt", "task 3")
		if got := states(mustWrite(t, next, dir)); got != "COMPACTION_PROMPT.txt=updated DREAM_TASK_PROMPT.txt=edited" {
			t.Errorf("next release: %s", got)
		}
	}
}

// TestBothNames: the file with the new name is what is read. The other one stays as it is, and is told of.
func TestBothNames(t *testing.T) {
	dir, at := laidOut(t)
	write(t, at("DREAM_TASK_PROMPT.txt"), "newer")
	for range 2 {
		got := mustWrite(t, after, dir)
		if !strings.Contains(moved(got), "DREAM_TASK_PROMPT.txt<prompts/DREAM_TASK.txt=unused") {
			t.Errorf("told: %s", moved(got))
		}
		if texts := string(read(t, at("DREAM_TASK_PROMPT.txt"))) + " " + string(read(t, at("prompts/DREAM_TASK.txt"))); texts != "newer mine" {
			t.Errorf("texts: %s", texts)
		}
	}
}

// TestLinksAreMovedAsLinks: what a link leads to stays where it is, and is read as before.
func TestLinksAreMovedAsLinks(t *testing.T) {
	for _, absolute := range []bool{true, false} {
		dir, at := laidOut(t)
		put(t, at("mine/task.txt"), "linked")
		target := "../mine/task.txt"
		if absolute {
			target = at("mine/task.txt")
		}
		if err := os.Remove(at("prompts/DREAM_TASK.txt")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, at("prompts/DREAM_TASK.txt")); err != nil {
			t.Fatal(err)
		}
		if got := states(mustWrite(t, after, dir)); !strings.Contains(got, "DREAM_TASK_PROMPT.txt=edited") {
			t.Errorf("states: %s", got)
		}
		if info, err := os.Lstat(at("DREAM_TASK_PROMPT.txt")); err != nil || info.Mode().IsRegular() || string(read(t, at("DREAM_TASK_PROMPT.txt"))) != "linked" {
			t.Errorf("the link: %v, %v", info, err)
		}
		if _, err := os.Lstat(at("prompts/DREAM_TASK.txt")); !os.IsNotExist(err) {
			t.Errorf("the earlier link: %v", err)
		}
		if got := string(read(t, at("mine/task.txt"))); got != "linked" {
			t.Errorf("the file it leads to reads %q", got)
		}
	}
}

// TestWhatIsNoFileStays: a folder with an earlier name is no prompt.
func TestWhatIsNoFileStays(t *testing.T) {
	dir, at := laidOut(t)
	put(t, at("prompts/DREAM_DEDUP.txt/note.txt"), "kept")
	mustWrite(t, release("DREAM_DEDUP_PROMPT.txt", "d"), dir)
	if got := string(read(t, at("prompts/DREAM_DEDUP.txt/note.txt"))) + string(read(t, at("DREAM_DEDUP_PROMPT.txt"))); got != "keptd" {
		t.Errorf("texts: %s", got)
	}
}

// TestEarlierNamesAreOfShippedFiles: the table of earlier names knows every default at the top of the data folder.
func TestEarlierNamesAreOfShippedFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range strings.Fields("BASE_PROMPT COMPACT MEMORY_HARVEST DREAM_MEMORIES DREAM_DEDUP DREAM_CONTRADICTION DREAM_TASK") {
		put(t, filepath.Join(dir, "prompts", name+".txt"), "mine: "+name)
	}
	n := 0
	for _, d := range mustWrite(t, reverie.Data, dir) {
		if strings.Contains(d.Path, "/") {
			continue
		}
		n++
		if text := string(read(t, filepath.Join(dir, d.Path))); d.Move != store.Due || d.State != store.Edited || !strings.HasPrefix(text, "mine: ") {
			t.Errorf("%+v reads %.40q", d, text)
		}
	}
	if n != 7 {
		t.Errorf("%d files at the top", n)
	}
}
