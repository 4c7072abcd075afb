package memory

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

const dieAt = "REVERIE_TEST_DIE_AT"

// TestKilled runs the same work in a process of its own, which is killed at each
// of its steps in turn. Whatever it said was done is done after a restart, what
// it did not come to is done wholly or not at all, and nothing is there twice.
// Holds L3, L8.
func TestKilled(t *testing.T) {
	t.Parallel()
	if at := os.Getenv(dieAt); at != "" {
		workUntilKilled(t, at)
		return
	}
	finished := false
	for at := 1; !finished; at++ {
		dir := t.TempDir()
		path := filepath.Join(dir, "MEMORIES.txt")
		noError(t, os.WriteFile(path, []byte("# mine\nfirst of all\nsecond\n"), 0o600))
		var out string
		out, finished = live(t, dir, at)
		said := map[string]bool{}
		for line := range strings.Lines(out) {
			if what, ok := strings.CutPrefix(strings.TrimSpace(line), "done: "); ok {
				said[what] = true
			}
		}
		s := openAt(t, dir)
		got := strings.Split(texts(t, s, Private(owner)), "|")
		count := func(text string) (n int) {
			for _, g := range got {
				if g == text {
					n++
				}
			}
			return n
		}
		for _, w := range []struct {
			text         string
			added, taken string // what was to be done before it must be there, or must not be
		}{
			{"first of all", "", "retire"}, {"third", "add", ""}, {"second", "", "edit"}, {"second, corrected", "edit", "supersede"},
			{"second, once more", "supersede", ""}, {"by hand", "edit", "forget"},
		} {
			n := count(w.text)
			if n > 1 {
				t.Errorf("step %d: %q is there %d times in %q", at, w.text, n, got)
			}
			if n == 0 && (w.added == "" || said[w.added]) && (w.taken == "" || !said["begun "+w.taken]) {
				t.Errorf("step %d: %q is lost: %q", at, w.text, got)
			}
			if n == 1 && w.taken != "" && said[w.taken] {
				t.Errorf("step %d: %q is back: %q", at, w.text, got)
			}
		}
		if file := strings.Join(lineTexts([]byte(onDisk(t, s, Private(owner)))), "|"); file != strings.Join(got, "|") {
			t.Errorf("step %d: the file shows %q, the entries are %q", at, file, got)
		}
		if said["forget"] && len(traces(t, dir, "by hand")) > 0 {
			t.Errorf("step %d: traces in %v", at, traces(t, dir, "by hand"))
		}
		if !strings.HasPrefix(onDisk(t, s, Private(owner)), "# mine\n") {
			t.Errorf("step %d: the comment is gone from %q", at, onDisk(t, s, Private(owner)))
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".MEMORIES.txt*")); err != nil || said["forget"] && len(left) > 0 {
			t.Errorf("step %d: %q is left", at, left)
		}
		_ = s.db.Close()
	}
}

// live runs the test in a process of its own in dir, which is killed at its step at, and
// reports whether it came to its end before.
func live(t *testing.T, dir string, at int) (out string, finished bool) {
	t.Helper()
	if at > 200 {
		t.Fatal("it never ends")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), dieAt+"="+strconv.Itoa(at))
	said, err := cmd.CombinedOutput()
	if err != nil && !strings.Contains(err.Error(), "killed") {
		t.Fatalf("step %d: %v\n%s", at, err, said)
	}
	return string(said), err == nil
}

// mortal is the store of the process in which it is killed.
func mortal(t *testing.T, at string) *Store {
	n := must(strconv.Atoi(at))(t)
	s := openAt(t, must(os.Getwd())(t))
	s.fault = func(string) {
		if n--; n <= 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	return s
}

func workUntilKilled(t *testing.T, at string) {
	s := mortal(t, at)
	ctx := t.Context()
	find := func(text string) string {
		all, err := s.Entries(ctx, Private(owner))
		at := slices.IndexFunc(all, func(e Entry) bool { return e.Text == text })
		if err != nil || at < 0 {
			t.Fatalf("%q is not in %v, %v", text, all, err)
		}
		return all[at].ID
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"add", func() error { _, _, err := s.Append(ctx, Private(owner), "third"); return err }},
		{"edit", func() error {
			data := onDisk(t, s, Private(owner))
			put(t, s, Private(owner), strings.Replace(data, "second\n", "second, corrected\nby hand\n", 1))
			_, err := s.Entries(ctx, Private(owner))
			return err
		}},
		{"retire", func() error { return s.Retire(ctx, everything, find("first of all")) }},
		{"supersede", func() error {
			_, err := s.Supersede(ctx, everything, find("second, corrected"), "second, once more")
			return err
		}},
		{"forget", func() error { _, err := s.Forget(ctx, everything, find("by hand")); return err }},
	} {
		fmt.Println("done: begun " + step.name)
		noError(t, step.do())
		fmt.Println("done: " + step.name)
	}
}
