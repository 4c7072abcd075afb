package memory

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"reverie/internal/memory/lines"
	"reverie/internal/store"
	"reverie/internal/test/expect"
)

var everything = Access{Actor: "operator", All: true, Owner: true}

// states lists all entries of scope with their states, in the order they were made.
func states(t testing.TB, s *Store, scope Scope) string {
	t.Helper()
	all := expect.Must(s.List(t.Context(), Access{Scopes: []Scope{scope}}, Filter{States: []State{Active, Archived, Superseded, Merged, Forgotten}}))(t)
	var out []string
	for _, e := range all {
		out = append(out, fmt.Sprintf("%s:%s:%s", e.Text, e.State, e.Source))
	}
	return strings.Join(out, "|")
}

// TestHandEditsBecomeOperations: what a person does to the lines is done to the entries.
// Holds L5, L23, W6.
func TestHandEditsBecomeOperations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, after, states string }{
		"added":   {"a tea\nb cake\n", "a tea\nnew one\nb cake\n", "a tea:active:file|b cake:active:file|new one:active:file"},
		"removed": {"a tea\nb cake\n", "b cake\n", "a tea:archived:file|b cake:active:file"},
		"changed": {"# x\nJana lives in Bonn\nb cake\n", "# x\nJana lives in Berlin\nb cake\n",
			"Jana lives in Bonn:superseded:file|b cake:active:file|Jana lives in Berlin:active:file"},
		"case changed":         {"jana\n", "Jana\n", "jana:superseded:file|Jana:active:file"},
		"another in its place": {"Jana lives in Bonn\n", "tea is hot\n", "Jana lives in Bonn:archived:file|tea is hot:active:file"},
		"alike, elsewhere":     {"Jana lives in Bonn\nb cake\n", "b cake\nJana lives in Berlin\n", "Jana lives in Bonn:archived:file|b cake:active:file|Jana lives in Berlin:active:file"},
		"two changed": {"code is 4711\ncode is 4713\n", "code is 4712\ncode is 4714\n",
			"code is 4711:superseded:file|code is 4713:superseded:file|code is 4712:active:file|code is 4714:active:file"},
		"moved":              {"a tea\nb cake\nc pie\n", "c pie\na tea\nb cake\n", "a tea:active:file|b cake:active:file|c pie:active:file"},
		"twice":              {"a tea\n", "a tea\na tea\n", "a tea:active:file"},
		"twice, then once":   {"a tea\na tea\nb\n", "a tea\nb\n", "a tea:active:file|b:active:file"},
		"comment":            {"a tea\n", "# mine\n\na tea\n", "a tea:active:file"},
		"made a comment":     {"a tea\nb\n", "# a tea\nb\n", "a tea:archived:file|b:active:file"},
		"other line ends":    {"a tea\nb\n", "a tea\r\nb\r\n", "a tea:active:file|b:active:file"},
		"only comments left": {"a tea\nb\n", "# none any more\n", "a tea:archived:file|b:archived:file"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, t.TempDir())
			put(t, s, Shared, tt.before)
			texts(t, s, Shared)
			put(t, s, Shared, tt.after)
			got := texts(t, s, Shared)
			if want := strings.Join(lines.Texts([]byte(tt.after)), "|"); name != "twice" && got != want {
				t.Errorf("shows %q, want %q", got, want)
			}
			expect.Equal(t, states(t, s, Shared), tt.states, "states")
			expect.Equal(t, onDisk(t, s, Shared), tt.after, "the file was changed to")
			again := openAt(t, s.dir)
			if texts(t, again, Shared) != got || states(t, again, Shared) != tt.states {
				t.Errorf("after a restart: %q", states(t, again, Shared))
			}
		})
	}
}

// TestCutAndPasted: a line that comes back is the same entry again.
func TestCutAndPasted(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := added(t, s, Entry{Scope: Shared, Text: "Jana likes tea", Source: UserExplicit, Event: "$1", Quote: "I like tea"}, guest)
	put(t, s, Shared, "# other\nx\n")
	texts(t, s, Shared)
	put(t, s, Shared, "# other\nx\nJana likes tea\n")
	texts(t, s, Shared)
	if got, err := s.Get(t.Context(), everything, e.ID); err != nil || got.State != Active || got.Event != "$1" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRenderedInPlace: what changes in the entries changes in the file, and
// nothing else in it does.
// Holds L23.
func TestRenderedInPlace(t *testing.T) {
	s := openAt(t, t.TempDir())
	const before = "\ufeff# mine\r\n  Jana lives in Bonn \r\n\r\n# more\r\ntea\r\n\\# hash\r\nlast"
	put(t, s, Shared, before)
	texts(t, s, Shared)
	all := expect.Must(s.WorkingSet(t.Context(), Shared))(t)
	expect.Len(t, all, 4, "it")
	expect.Must(s.Supersede(t.Context(), everything, all[0].ID, "# Jana lives in Berlin"))(t)
	undone := expect.Must(s.Undo(t.Context(), everything, ""))(t)
	expect.Equal(t, onDisk(t, s, Shared), before, "taken back the file reads")
	expect.Must(s.Undo(t.Context(), everything, undone.Batch))(t)
	expect.OK(t, s.Retire(t.Context(), everything, all[1].ID))
	add(t, s, Shared, "new")
	expect.Equal(t, onDisk(t, s, Shared), "\ufeff# mine\r\n  \\# Jana lives in Berlin \r\n\r\n# more\r\n\\# hash\r\nlast\r\nnew\r\n", "file reads")
	expect.Equal(t, texts(t, s, Shared), "# Jana lives in Berlin|# hash|last|new", "shows")
}

// TestUpgrade: the first start with files of an earlier release takes all of them in.
func TestUpgrade(t *testing.T) {
	dir := t.TempDir()
	old := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	long := Room("!" + strings.Repeat("Ä", 200) + ":example.org")
	plain := openWith(t, Config{Dir: t.TempDir(), Owner: owner})
	content := map[Scope]string{
		Private(owner): "# mine\nI am the owner\n", Private(guest): "I am a guest\n", Room(room): "\ufeffwe meet\r\n", Shared: "for all\n", long: "far away\n",
	}
	for scope, text := range content {
		path := filepath.Join(dir, filepath.FromSlash(plain.File(scope)))
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
		expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
		expect.OK(t, os.Chtimes(path, old, old))
	}
	s := openAt(t, dir)
	all, err := s.List(t.Context(), everything, Filter{})
	if err != nil || len(all) != len(content)-1 { // of a shortened name the scope is not known yet
		t.Fatalf("%d entries, %v", len(all), err)
	}
	for scope, text := range content {
		expect.Equal(t, texts(t, s, scope), lines.Texts([]byte(text))[0], "%.20s shows", scope)
		expect.Equal(t, onDisk(t, s, scope), text, "%.20s was changed to", scope)
	}
	for _, e := range all {
		expect.False(t, !e.ObservedAt.Equal(old) || e.Source != FromFile, "%+v", e)
	}
}

// TestWorkingSet: with an index the file shows a part, and what it does not show
// is not removed by that.
func TestWorkingSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openWith(t, Config{Dir: dir, Owner: owner, Backend: "fts5", FileLines: 4})
	var first Entry
	for i := range 20 {
		e, _, err := s.Append(t.Context(), Shared, fmt.Sprintf("fact number %d", i))
		expect.OK(t, err)
		if i == 0 {
			first = e
		}
	}
	expect.Must(s.db.Exec(`UPDATE memory SET hits = 5 WHERE text IN ('fact number 3', 'fact number 7')`))(t)
	expect.OK(t, s.Pin(t.Context(), everything, first.ID, true))
	shown := func() string {
		got := lines.Texts([]byte(onDisk(t, s, Shared)))
		var prompt []string
		for _, e := range expect.Must(s.WorkingSet(t.Context(), Shared))(t) {
			prompt = append(prompt, e.Text)
		}
		slices.Sort(got)
		slices.Sort(prompt)
		expect.EqualSlice(t, got, prompt, "the prompt shows, the file")
		return strings.Join(got, "|")
	}
	expect.Equal(t, shown(), "fact number 0|fact number 18|fact number 19|fact number 3|fact number 7", "file shows")
	put(t, s, Shared, strings.Replace(onDisk(t, s, Shared), "fact number 3\n", "by hand\n", 1))
	texts(t, s, Shared)
	known := store.Map(expect.Must(s.List(t.Context(), everything, Filter{}))(t), func(e Entry) string { return e.Text })
	expect.Len(t, known, 20, "entries")
	expect.False(t, !slices.Contains(known, "by hand") || slices.Contains(known, "fact number 3"), "known: %q", known)
	expect.Len(t, expect.Must(s.Outline(t.Context(), Shared))(t), 20, "outline")
	expect.OK(t, os.Remove(filepath.Join(dir, "memories", "shared.txt")))
	if got := texts(t, openWith(t, Config{Dir: dir, Owner: owner}), Shared); strings.Count(got, "|") != 19 { // and back to the whole
		t.Errorf("known: %q", got)
	}
}

// TestAnotherOwner: MEMORIES.txt goes to the new first owner, and what the old
// one had there does not.
func TestAnotherOwner(t *testing.T) {
	dir := t.TempDir()
	s := openAt(t, dir)
	add(t, s, Private(owner), "canary of the old owner")
	add(t, s, Private(guest), "canary of the new owner")
	put(t, s, Private(owner), onDisk(t, s, Private(owner))+"canary by hand\n")
	s = openWith(t, Config{Dir: dir, Owner: guest})
	expect.Equal(t, texts(t, s, Private(guest)), "canary of the new owner", "the new owner sees")
	expect.Equal(t, texts(t, s, Private(owner)), "canary of the old owner|canary by hand", "the old owner sees")
	if got := onDisk(t, s, Private(guest)); s.File(Private(guest)) != "MEMORIES.txt" || strings.Contains(got, "old owner") || strings.Contains(got, "by hand") || !strings.Contains(got, "new owner") {
		t.Errorf("MEMORIES.txt reads %q", got)
	}
	expect.Has(t, onDisk(t, s, Private(owner)), "old owner\ncanary by hand\n")
	expect.Len(t, expect.Must(filepath.Glob(filepath.Join(dir, "memories", "users", "*")))(t), 1, "files of people")
}

// TestTheTerminalsOwner: who talked to the bot in a terminal first is the owner
// of the account that is configured later.
func TestTheTerminalsOwner(t *testing.T) {
	dir := t.TempDir()
	s := openWith(t, Config{Dir: dir, Owner: "owner"})
	add(t, s, Private("owner"), "told in the terminal")
	before := onDisk(t, s, Private("owner"))
	s = openAt(t, dir)
	expect.Equal(t, texts(t, s, Private(owner)), "told in the terminal", "the owner sees")
	expect.Equal(t, onDisk(t, s, Private(owner)), before, "MEMORIES.txt became")
	expect.Equal(t, texts(t, openWith(t, Config{Dir: dir, Owner: "owner"}), Private("owner")), "told in the terminal", "and back in the terminal")
}

// TestUnwritableFile: a file that cannot be written keeps nothing from being
// remembered; it is said, and made up for.
func TestUnwritableFile(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	s := openWith(t, Config{Dir: dir, Owner: owner, Log: slog.New(slog.NewTextHandler(&log, nil))})
	add(t, s, Private(owner), "one")
	path := filepath.Join(dir, "MEMORIES.txt")
	s.fault = func(point string) {
		if point == "committed" { // the file can be read until then
			expect.OK(t, errors.Join(os.Rename(path, path+".aside"), os.Mkdir(path, 0o700)))
		}
	}
	add(t, s, Private(owner), "two")
	if got, err := s.WorkingSet(t.Context(), Private(owner)); err == nil || !strings.Contains(err.Error(), "MEMORIES.txt") || len(got) != 2 {
		t.Errorf("error %v with %v", err, got)
	}
	expect.Has(t, log.String(), "could not be written")
	s.fault = func(string) {}
	expect.OK(t, errors.Join(os.Remove(path), os.Rename(path+".aside", path)))
	if got := texts(t, s, Private(owner)); got != "one|two" || !strings.HasSuffix(onDisk(t, s, Private(owner)), "one\ntwo\n") {
		t.Errorf("%q, file %q", got, onDisk(t, s, Private(owner)))
	}
}

// TestKilledBeforeTheFileOfAGroup: a dream groups two entries, and the program is killed before the file
// is written, or before that is noted: the group stays, though the file shows both.
func TestKilledBeforeTheFileOfAGroup(t *testing.T) {
	for _, point := range []string{"rename", "rendered"} {
		c := Config{Dir: t.TempDir(), Owner: owner}
		s := openWith(t, c)
		for _, text := range []string{"Anna likes tea, mostly in the evening.", "Anna likes tea very much."} {
			_, _, err := s.Append(t.Context(), Private(owner), text)
			expect.OK(t, err)
		}
		all := expect.Must(s.List(t.Context(), everything, Filter{}))(t)
		stored := false
		s.fault = func(at string) {
			if stored = stored || at == "committed"; stored && at == point {
				panic("killed")
			}
		}
		func() {
			defer func() { expect.Equal(t, recover(), any("killed"), point) }()
			step := Step{Kind: GroupStep, ID: all[1].ID, Rev: all[1].Rev, By: all[0].ID, ByRev: all[0].Rev}
			_, _ = s.Apply(t.Context(), "dream", []Step{step}, nil)
		}()
		grouped := expect.Must(s.Get(t.Context(), everything, all[1].ID))(t)
		s = openWith(t, c)
		expect.Equal(t, expect.Must(s.Get(t.Context(), everything, all[1].ID))(t), grouped, point)
		expect.Equal(t, grouped.By, all[0].ID, point)
	}
}

// TestKilledBetweenFileAndNote: a file that shows only some entries is written, and the
// program is killed before that is noted, or noted and not written: what gave its place to
// others still counts, and what a person takes out of the file does not.
func TestKilledBetweenFileAndNote(t *testing.T) {
	for _, point := range []string{"rename", "rendered"} {
		t.Run(point, func(t *testing.T) {
			c := Config{Dir: t.TempDir(), Owner: owner, FileLines: 4}
			s := openWith(t, c)
			for i := range 12 {
				stored := false
				s.fault = func(at string) {
					if stored = stored || at == "committed"; stored && at == point && i > 3 {
						panic("killed")
					}
				}
				func() {
					defer func() {
						if p := recover(); (p != nil) != (i > 3) {
							t.Errorf("%d: %v", i, p)
						}
					}()
					if _, _, err := s.Append(t.Context(), Private(owner), fmt.Sprintf("Fact number %d is of its own kind.", i)); err != nil {
						t.Error(err)
					}
				}()
				s = openWith(t, c)
				if _, _, err := s.Append(t.Context(), Private(owner), fmt.Sprintf("Fact number %d is of its own kind.", i)); err != nil { // perhaps it had not come so far
					t.Fatal(err)
				}
				if all, err := s.List(t.Context(), everything, Filter{}); err != nil || len(all) != i+1 {
					t.Fatalf("%d of %d facts count, %v", len(all), i+1, err)
				}
			}
			shown := onDisk(t, s, Private(owner))
			expect.False(t, strings.Count(shown, "Fact number") != 4 || !strings.Contains(shown, "Fact number 11"), "%q", shown)
			put(t, s, Private(owner), strings.Replace(shown, "Fact number 11 is of its own kind.\n", "", 1))
			texts(t, s, Private(owner))
			expect.Len(t, expect.Must(s.List(t.Context(), everything, Filter{}))(t), 11, "facts count")
		})
	}
}

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
		expect.OK(t, os.WriteFile(path, []byte("# mine\nfirst of all\nsecond\n"), 0o600))
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
			expect.False(t, n > 1, "step %d: %q is there %d times in %q", at, w.text, n, got)
			expect.False(t, n == 0 && (w.added == "" || said[w.added]) && (w.taken == "" || !said["begun "+w.taken]), "step %d: %q is lost: %q", at, w.text, got)
			expect.False(t, n == 1 && w.taken != "" && said[w.taken], "step %d: %q is back: %q", at, w.text, got)
		}
		if file := strings.Join(lines.Texts([]byte(onDisk(t, s, Private(owner)))), "|"); file != strings.Join(got, "|") {
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
	n := expect.Must(strconv.Atoi(at))(t)
	s := openAt(t, expect.Must(os.Getwd())(t))
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
		all, err := s.WorkingSet(ctx, Private(owner))
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
			_, err := s.WorkingSet(ctx, Private(owner))
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
		expect.OK(t, step.do())
		fmt.Println("done: " + step.name)
	}
}
