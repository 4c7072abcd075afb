package memory

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
)

const owner, guest, room = "@me:example.org", "@You:example.org", "!AbC:example.org"

// openAt opens a store of its own on dir, as another process would.
func openAt(t testing.TB, dir string) *Store {
	t.Helper()
	return openWith(t, Config{Dir: dir, Owner: owner})
}

func openWith(t testing.TB, c Config) *Store {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(c.Dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	c.DB = db
	s := expect.Must(Open(t.Context(), c))(t)
	return s
}

func put(t testing.TB, s *Store, scope Scope, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, filepath.FromSlash(s.File(scope)))
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func onDisk(t testing.TB, s *Store, scope Scope) string {
	t.Helper()
	b := expect.Must(os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(s.File(scope)))))(t)
	return string(b)
}

func texts(t testing.TB, s *Store, scopes ...Scope) string {
	t.Helper()
	entries := expect.Must(s.WorkingSet(t.Context(), scopes...))(t)
	var out []string
	for _, e := range entries {
		out = append(out, e.Text)
	}
	return strings.Join(out, "|")
}

func add(t testing.TB, s *Store, scope Scope, text string) bool {
	t.Helper()
	_, added, err := s.Append(t.Context(), scope, text)
	expect.OK(t, err)
	return added
}

func TestFile(t *testing.T) {
	s := openAt(t, t.TempDir())
	for scope, want := range map[Scope]string{
		Private(owner): "MEMORIES.txt", Private(guest): "memories/users/@=59ou=3aexample.org.txt",
		Room(room): "memories/rooms/!=41b=43=3aexample.org.txt", Shared: "memories/shared.txt", Private(""): "", Room(""): "", "nonsense": "",
	} {
		expect.Equal(t, s.File(scope), want, "File(%q) =", scope)
	}
	nobody := openWith(t, Config{Dir: t.TempDir()})
	expect.False(t, nobody.File(Private(owner)) == "MEMORIES.txt", "without an owner somebody gets MEMORIES.txt")
	if _, _, err := s.Append(t.Context(), "nonsense", "x"); err == nil {
		t.Error("appended to no scope")
	}
	if _, err := s.WorkingSet(t.Context(), "nonsense"); err == nil {
		t.Error("read no scope")
	}
}

// Holds W4, W7.
func TestAppend(t *testing.T) {
	s := openAt(t, t.TempDir())
	me := Private(owner)
	e, added, err := s.Append(t.Context(), me, "  my sister's\n name is\u2028Jana ")
	if err != nil || !added || e.Text != "my sister's name is Jana" || e.Scope != me || e.Source != Assistant || e.State != Active || e.ID == "" {
		t.Fatalf("got %+v, %v, %v", e, added, err)
	}
	if got := onDisk(t, s, me); !strings.Contains(got, "\nmy sister's name is Jana\n") || !strings.HasPrefix(got, "# ") {
		t.Errorf("file reads %q", got)
	}
	e, added, err = s.Append(t.Context(), me, "My sister's  name is JANA")
	expect.False(t, err != nil || added || e.Text != "my sister's name is Jana", "duplicate: %+v, %v, %v", e, added, err)
	expect.False(t, !add(t, s, Shared, "my sister's name is Jana"), "a duplicate in another scope is none")
	info, err := os.Stat(filepath.Join(s.dir, "MEMORIES.txt"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	// Another store, as after a restart.
	expect.Equal(t, texts(t, openAt(t, s.dir), me), "my sister's name is Jana", "after a restart")
}

func TestAppendRefuses(t *testing.T) {
	s := openAt(t, t.TempDir())
	for text, want := range map[string]string{
		"": "empty", " \t\n\u3000": "empty", "\uFEFF": "empty", "a\x00b": "U+0000", "a\x1b[31mb": "U+001B", "a\xffb": "UTF-8",
		strings.Repeat("茶", 2001): "2001 characters",
	} {
		if _, added, err := s.Append(t.Context(), Shared, text); err == nil || added || !strings.Contains(err.Error(), want) {
			t.Errorf("%.10q: added %v, error %v, want %q", text, added, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(s.dir, "memories", "shared.txt")); err == nil {
		t.Error("refused text made a file")
	}
	expect.False(t, !add(t, s, Shared, strings.Repeat("茶", 2000)), "2000 characters are allowed")
}

// TestHandWritten holds what people do to text files.
func TestHandWritten(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200_000)
	tests := map[string]struct{ file, shows, after string }{
		"no final newline": {"one", "one", "one\nnew\n"}, "empty": {"", "", "new\n"},
		"comments":        {"# mine\n\none\n  # also\n", "one", "# mine\n\none\n  # also\nnew\n"},
		"windows":         {"one\r\ntwo\r\n", "one|two", "one\r\ntwo\r\nnew\r\n"},
		"windows, no end": {"one\r\ntwo", "one|two", "one\r\ntwo\r\nnew\r\n"}, "old mac": {"one\rtwo\r", "one|two", "one\rtwo\rnew\n"},
		"byte order mark": {"\ufeffone\n", "one", "\ufeffone\nnew\n"}, "mark and comment": {"\ufeff# x\none\n", "one", "\ufeff# x\none\nnew\n"},
		"only a mark": {"\ufeff", "", "\ufeffnew\n"}, "not text": {"a\xff\xfeb\nok\n", "a\uFFFDb|ok", "a\xff\xfeb\nok\nnew\n"},
		"control character": {"a\x1b[31mb\x00\n\x07\n", "a [31mb", "a\x1b[31mb\x00\n\x07\nnew\n"},
		"long line":         {long + "\nok\n", long + "|ok", long + "\nok\nnew\n"},
		"space around":      {"\t one  two \n", "one  two", "\t one  two \nnew\n"},
		"hash as text":      {`\# one` + "\n" + `\\# two` + "\n" + `\x` + "\n", `# one|\# two|\x`, `\# one` + "\n" + `\\# two` + "\n" + `\x` + "\nnew\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, t.TempDir())
			put(t, s, Shared, tt.file)
			expect.Equal(t, texts(t, s, Shared), tt.shows, "shows")
			add(t, s, Shared, "new")
			expect.Equal(t, onDisk(t, s, Shared), tt.after, "file reads")
		})
	}
}

// Holds W6.
func TestEntriesFollowEdits(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	path := put(t, s, Shared, "one\n")
	check := func(want string) {
		t.Helper()
		expect.Equal(t, texts(t, s, Shared), want, "got")
	}
	check("one")
	// Same length, same inode, the same tick of the clock: only reading tells.
	for range 100 {
		put(t, s, Shared, "two\n")
		check("two")
		put(t, s, Shared, "six\n")
		check("six")
	}
	// As an editor saves: another file takes the name.
	expect.OK(t, os.WriteFile(path+"~", []byte("ten\n"), 0o600))
	expect.OK(t, os.Rename(path+"~", path))
	check("ten")
}

// Holds P2.
func TestUnchangedEntriesAreNotReadAgain(t *testing.T) {
	s := openAt(t, t.TempDir())
	put(t, s, Shared, "one\ntwo\n")
	first := expect.Must(s.WorkingSet(t.Context(), Shared))(t)
	second := expect.Must(s.WorkingSet(t.Context(), Shared))(t)
	expect.False(t, len(first) != 2 || &first[0] != &second[0], "unchanged entries were read again")
	add(t, s, Shared, "three")
	expect.False(t, len(first) != 2 || first[1].Text != "two", "a slice that was handed out changed")
	put(t, s, Private(owner), "mine\n")
	expect.Equal(t, texts(t, s, Private(owner), Shared, Room("!a")), "mine|one|two|three", "got")
}

// TestMissingFileIsRestored: neither a file that is gone nor an empty one
// deletes memories.
// Holds L7.
func TestMissingFileIsRestored(t *testing.T) {
	for name, vanish := range map[string]func(path string) error{
		"gone": os.Remove, "empty": func(path string) error { return os.Truncate(path, 0) },
		"white space": func(path string) error { return os.WriteFile(path, []byte("\ufeff \n\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s := openWith(t, Config{Dir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
			path := put(t, s, Shared, "one\ntwo\n")
			texts(t, s, Shared)
			expect.OK(t, vanish(path))
			for range 3 {
				expect.Equal(t, texts(t, s, Shared), "one|two", "got")
			}
			if n := strings.Count(log.String(), "empty or missing"); n != 1 {
				t.Errorf("reported %d times:\n%s", n, log.String())
			}
			if got := onDisk(t, s, Shared); !strings.HasSuffix(got, "one\ntwo\n") {
				t.Errorf("file reads %q", got)
			}
			expect.False(t, !add(t, s, Shared, "three") || texts(t, s, Shared) != "one|two|three", "the file did not come back")
		})
	}
}

func TestUnreadableFileIsAnErrorAndSparesTheOthers(t *testing.T) {
	s := openAt(t, t.TempDir())
	put(t, s, Shared, "one\n")
	if err := os.MkdirAll(filepath.Join(s.dir, "MEMORIES.txt"), 0o700); err != nil { // a folder in its place
		t.Fatal(err)
	}
	entries, err := s.WorkingSet(t.Context(), Private(owner), Shared)
	if err == nil || !strings.Contains(err.Error(), "MEMORIES.txt") {
		t.Errorf("error %v", err)
	}
	expect.False(t, len(entries) != 1 || entries[0].Text != "one", "the readable file gave %v", entries)
	if _, _, err := s.Append(t.Context(), Private(owner), "x"); err == nil || !strings.Contains(err.Error(), "MEMORIES.txt") {
		t.Errorf("append: %v", err)
	}
}

// TestConcurrentEdits makes a hand edit between reading and writing, in the ways editors save.
// Holds L13.
func TestConcurrentEdits(t *testing.T) {
	t.Parallel()
	inPlace := func(t *testing.T, path string) {
		f := expect.Must(os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0))(t)
		defer f.Close()
		expect.Must(f.WriteString("# rewritten\nby hand\nzwei\n"))(t)
	}
	appended := func(t *testing.T, path string) {
		f := expect.Must(os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0))(t)
		defer f.Close()
		expect.Must(f.WriteString("by hand\n"))(t)
	}
	replaced := func(t *testing.T, path string) {
		expect.OK(t, os.WriteFile(path+"~", []byte("one\nby hand\n"), 0o600))
		expect.OK(t, os.Rename(path+"~", path))
	}
	tests := map[string]struct {
		edit func(*testing.T, string)
		want string
	}{
		"rewritten before the look": {inPlace, "# rewritten\nby hand\nzwei\nnew\n"},
		"appended before the look":  {appended, "one\nby hand\nnew\n"},
		"replaced before the look":  {replaced, "one\nby hand\nnew\n"},
		"removed before the look":   {func(t *testing.T, path string) { _ = os.Remove(path) }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, t.TempDir())
			path := put(t, s, Shared, "one\n")
			edited := false
			s.fault = func(point string) {
				if point == "rename" && !edited {
					edited = true
					tt.edit(t, path)
				}
			}
			add(t, s, Shared, "new")
			got := onDisk(t, s, Shared)
			if tt.want == "" { // a file that is gone begins anew, and nothing is forgotten
				heading, _, _ := strings.Cut(got, "one\n")
				expect.Has(t, heading, "# What is remembered here (shared)")
				tt.want = heading + "one\nnew\n"
			}
			expect.Equal(t, got, tt.want, "file reads")
		})
	}
	t.Run("all the time", func(t *testing.T) {
		s := openAt(t, t.TempDir())
		path := put(t, s, Shared, "one\n")
		s.fault = func(point string) {
			if point == "rename" {
				appended(t, path)
			}
		}
		if !add(t, s, Shared, "new") { // it is stored, whatever happens to the file
			t.Error("not added")
		}
		if _, err := s.WorkingSet(t.Context(), Shared); err == nil || !strings.Contains(err.Error(), "try again later") {
			t.Errorf("error %v", err)
		}
		s.fault = func(string) {}
		texts(t, s, Shared)
		if got := onDisk(t, s, Shared); strings.Count(got, "new\n") != 1 || strings.Count(got, "by hand\n") < 2 {
			t.Errorf("in the end the file reads %q", got)
		}
	})
}

// TestManyWriters: two stores stand for two processes.
// Holds L13.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for p := range 2 {
		s := openAt(t, dir)
		for g := range 3 {
			wg.Go(func() {
				for i := range 10 {
					if _, added, err := s.Append(t.Context(), Shared, fmt.Sprintf("fact %d %d %d", p, g, i)); err != nil || !added {
						t.Errorf("added %v, %v", added, err)
					}
				}
			})
		}
	}
	wg.Wait()
	expect.Equal(t, strings.Count(texts(t, openAt(t, dir), Shared), "fact"), 60, "of 60 facts are there")
}
