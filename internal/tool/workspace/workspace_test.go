package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const canary = "CANARY-8842"

var (
	ann    = trust.Place{Room: "!dm:x", Person: "@ann:x", Private: true}
	annToo = trust.Place{Room: "!dm2:x", Person: "@ann:x", Private: true}
	bob    = trust.Place{Room: "!bob:x", Person: "@bob:x", Private: true}
	group  = trust.Place{Room: "!group:x", Person: "@ann:x"}
	opened = trust.Place{Room: "!dm:x", Person: "@ann:x"} // the direct chat, with more people
)

// desk is a store in a folder of its own.
type desk struct {
	*Store
	dir string
}

func newDesk(t testing.TB, quota int64, folders ...Bound) desk {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { expect.OK(t, db.Close()) })
	return desk{Open(Config{Dir: dir, DB: db, Quota: quota, Folders: folders}), dir}
}

func (d desk) write(at trust.Place, path, text string, of trust.Integrity) error {
	return d.Change(context.Background(), at, path, func(Old) ([]byte, trust.Integrity, error) { return []byte(text), of, nil })
}

func (d desk) put(t testing.TB, at trust.Place, path, text string) {
	t.Helper()
	expect.OK(t, d.write(at, path, text, trust.User))
}

// in returns the path of a file on the disk.
func (d desk) in(at trust.Place, path string) string {
	return filepath.Join(Folder(d.dir, at), filepath.FromSlash(path))
}

func (d desk) text(t testing.TB, at trust.Place, path string) (string, trust.Integrity) {
	t.Helper()
	data, of, err := d.Read(t.Context(), at, path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return string(data), of
}

func (d desk) names(t testing.TB, at trust.Place, dir string) string {
	t.Helper()
	var names []string
	for _, e := range expect.Must(d.List(t.Context(), at, dir))(t).Entries {
		names = append(names, e.Path)
	}
	return strings.Join(names, " ")
}

// TestCircles: files are seen by the readers of the place that they were written at, and by nobody else.
func TestCircles(t *testing.T) {
	d := newDesk(t, 0)
	if _, err := os.Stat(filepath.Join(d.dir, Top)); err == nil || d.names(t, ann, "work") != "" {
		t.Error("a folder before anything is written")
	}
	d.put(t, ann, "work/a/one.txt", canary)
	if text, of := d.text(t, annToo, "work/a/one.txt"); text != canary || of != trust.User {
		t.Errorf("her other chat: %q, %v", text, of)
	}
	expect.Equal(t, d.names(t, ann, "work"), "work/a/one.txt")
	expect.Equal(t, d.names(t, ann, "work/a/"), "work/a/one.txt")
	for _, at := range []trust.Place{bob, group, opened, {Room: "!dm:x"}, {}, {Private: true}} {
		if data, _, err := d.Read(t.Context(), at, "work/a/one.txt"); err == nil {
			t.Errorf("%+v reads %q", at, data)
		}
		l, _ := d.List(t.Context(), at, "work")
		f, _ := d.Find(t.Context(), at, "work", "", func(string) bool { return true }, 9)
		if len(l.Entries) > 0 || len(f.Hits) > 0 || d.Remove(at, "work/a/one.txt") == nil {
			t.Errorf("%+v sees %v %v", at, l, f)
		}
	}
	for _, dir := range []string{"", "a"} {
		if info := expect.Must(os.Stat(d.in(ann, dir)))(t); info.Mode().Perm() != 0o700 {
			t.Errorf("folder %q has mode %v", dir, info.Mode())
		}
	}
	if info := expect.Must(os.Stat(d.in(ann, "a/one.txt")))(t); info.Mode().Perm() != 0o600 {
		t.Errorf("file mode %v", info.Mode())
	}
}

// badPaths never name a file.
var badPaths = []string{
	"", " ", ".", "..", "/", "work/..", "work/../bot.db", "work/a/../../bot.db", "../work/a", "work//a", "work/./a", "/work/a", "//work/a", "work/a/..", "work/\x00", "work/a\x00.txt",
	"work/a\nb", "work/\u202etxt.exe", "work/a\u200bb", "work/\xff\xfe", "work\\a", "work/..\\bot.db", "bot.db", "data/bot.db", "data/work/../bot.db", "Work/a", "WORK/a", "work2/a", "file:///etc/passwd",
	"/etc/passwd", "/proc/self/environ", "~/x", "%2e%2e/bot.db", "work/" + strings.Repeat("x", 256), "work/" + strings.Repeat("y/", 40) + "z", "work/" + strings.Repeat("long/", 300), "work/" + tempPrefix + "1",
	"notes/a", "work/received", "work/received/x", "work",
}

// TestPathsThatAreRefused: no form of path reads, writes or deletes outside, and each gets a word for the model.
func TestPathsThatAreRefused(t *testing.T) {
	d := newDesk(t, 0)
	d.put(t, ann, "work/a/b.txt", "x")
	before := expect.Must(os.ReadDir(d.dir))(t)
	for _, path := range badPaths {
		var said Refused
		if err := d.write(ann, path, canary, trust.User); !errors.As(err, &said) {
			t.Errorf("write %q: %v", path, err)
		}
		if err := d.Remove(ann, path); !errors.As(err, &said) {
			t.Errorf("remove %q: %v", path, err)
		}
		if data, _, err := d.Read(t.Context(), ann, path); err == nil || !errors.As(err, &said) && !errors.Is(err, ErrFolder) {
			t.Errorf("read %q: %q %v", path, data, err)
		}
	}
	expect.Equal(t, len(expect.Must(os.ReadDir(d.dir))(t)), len(before), "what is in the data folder")
	expect.Equal(t, d.names(t, ann, "work"), "work/a/b.txt")
	for _, path := range []string{"data/work/a/b.txt", " ./work/a/b.txt ", "work/a/b.txt/"} { // unambiguous
		if text, _ := d.text(t, ann, path); text != "x" {
			t.Errorf("%q: %q", path, text)
		}
	}
}

// TestWhatProgramsLeave: links outwards, pipes, hard links, huge and binary files are refused, do not block and are not
// listed as what they are not.
func TestWhatProgramsLeave(t *testing.T) {
	d := newDesk(t, 0)
	d.put(t, ann, "work/real.txt", "real")
	d.put(t, bob, "work/secret.txt", canary)
	outside := filepath.Join(t.TempDir(), "outside")
	expect.OK(t, os.WriteFile(outside, []byte(canary), 0o600))
	bots := d.in(bob, "")
	for link, target := range map[string]string{
		"out": outside, "db": "../../bot.db", "up": "..", "upup": "../..", "abs": filepath.Join(bots, "secret.txt"), "bob": bots, "rel": "../" + filepath.Base(bots) + "/secret.txt",
		"chain1": "chain2", "chain2": "chain3", "chain3": outside, "loop": "loop", "ping": "pong", "pong": "ping", "proc": "/proc/self/root", "env": "/proc/self/environ",
		"null": "/dev/null", "zero": "/dev/zero", "dangling": "nowhere", "self": ".",
	} {
		expect.OK(t, os.Symlink(target, d.in(ann, link)))
	}
	expect.OK(t, syscall.Mkfifo(d.in(ann, "pipe"), 0o600))
	expect.OK(t, os.Link(filepath.Join(d.dir, "bot.db"), d.in(ann, "hard")))
	expect.OK(t, os.WriteFile(d.in(ann, "binary"), []byte("ELF\x00"+canary), 0o600))
	expect.OK(t, os.WriteFile(d.in(ann, "huge"), []byte(canary), 0o600))
	expect.OK(t, os.Truncate(d.in(ann, "huge"), 1<<40))
	for _, path := range []string{"out", "db", "up", "up/x", "upup/bot.db", "abs", "bob/secret.txt", "rel", "chain1", "loop", "ping", "proc/etc/passwd", "env", "null", "zero", "dangling", "pipe", "hard",
		"binary", "huge", "real.txt/x"} {
		var said Refused
		if data, _, err := d.Read(t.Context(), ann, "work/"+path); err == nil || !errors.As(err, &said) && !errors.Is(err, ErrFolder) {
			t.Errorf("read %s: %.20q %v", path, data, err)
		}
		if path == "binary" || path == "huge" {
			continue
		}
		if f, err := d.OpenFile(ann, "work/"+path); err == nil {
			t.Errorf("open %s: %v", path, f.Name())
		}
		if err := d.write(ann, "work/"+path, "mine", trust.User); err == nil {
			t.Errorf("wrote %s", path)
		}
	}
	if text, _ := d.text(t, ann, "work/self/self/real.txt"); text != "real" { // a link that stays inside is harmless
		t.Errorf("%q", text)
	}
	f := expect.Must(d.Find(t.Context(), ann, "work", "", func(line string) bool { return strings.Contains(line, "CANARY") || strings.Contains(line, "real") }, 99))(t)
	expect.False(t, len(f.Hits) != 1 || f.Hits[0] != Hit{"work/real.txt", 1, "real"}, "found %+v", f)
	for _, e := range expect.Must(d.List(t.Context(), ann, "work"))(t).Entries {
		regular := slices.Contains([]string{"work/real.txt", "work/hard", "work/binary", "work/huge"}, e.Path)
		expect.False(t, regular != (e.Kind == "") || strings.Count(e.Path, "/") > 1, "listed: %+v", e)
	}
	expect.Equal(t, string(expect.Must(os.ReadFile(outside))(t)), canary)
	if text, _ := d.text(t, bob, "work/secret.txt"); text != canary {
		t.Error(text)
	}
}

// TestFolderIsALink: a work folder that is a link is not entered.
func TestFolderIsALink(t *testing.T) {
	d := newDesk(t, 0)
	d.put(t, bob, "work/secret.txt", canary)
	expect.OK(t, os.Symlink(filepath.Base(d.in(bob, "")), d.in(ann, "")))
	if data, _, err := d.Read(t.Context(), ann, "work/secret.txt"); err == nil {
		t.Errorf("read %q", data)
	}
	if d.write(ann, "work/secret.txt", "x", trust.User) == nil {
		t.Error("written")
	}
}

// TestSwappedWhileOpened: a program that swaps files, folders and links all the time wins nothing.
func TestSwappedWhileOpened(t *testing.T) {
	d := newDesk(t, 0)
	outside := t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(outside, "f"), []byte(canary), 0o600))
	d.put(t, ann, "work/d/f", "mine")
	expect.OK(t, os.Mkdir(d.in(ann, "e"), 0o700))
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(d.in(ann, "d"), d.in(ann, "e/d"))
			_ = os.Symlink(outside, d.in(ann, "d"))
			_ = os.Remove(d.in(ann, "d"))
			_ = syscall.Mkfifo(d.in(ann, "d"), 0o600)
			_ = os.Remove(d.in(ann, "d"))
			_ = os.Rename(d.in(ann, "e/d"), d.in(ann, "d"))
			_ = os.Rename(d.in(ann, "d/f"), d.in(ann, "d/g"))
			_ = os.Symlink(filepath.Join(outside, "f"), d.in(ann, "d/f"))
			_ = os.Remove(d.in(ann, "d/f"))
			_ = os.Rename(d.in(ann, "d/g"), d.in(ann, "d/f"))
		}
	}()
	for range 400 {
		if data, _, err := d.Read(t.Context(), ann, "work/d/f"); err == nil && strings.Contains(string(data), "CANARY") {
			t.Fatalf("read %q", data)
		}
		_ = d.write(ann, "work/d/f", "mine", trust.User)
		found, _ := d.Find(t.Context(), ann, "work", "", func(string) bool { return true }, 99)
		for _, h := range found.Hits {
			expect.False(t, strings.Contains(h.Text, "CANARY"), "found %+v", h)
		}
	}
	close(stop)
	<-done
	names := expect.Must(os.ReadDir(outside))(t)
	expect.False(t, len(names) != 1 || string(expect.Must(os.ReadFile(filepath.Join(outside, "f")))(t)) != canary, "outside: %v", names)
}

// TestLabels: a file has the integrity of what wrote it, until somebody else changes it.
func TestLabels(t *testing.T) {
	d := newDesk(t, 0)
	of := func(path string) trust.Integrity { _, of := d.text(t, ann, path); return of }
	for _, want := range []trust.Integrity{trust.Owner, trust.Foreign, trust.User, trust.Guest} {
		expect.OK(t, d.write(ann, "work/a", "text of "+want.String(), want))
		expect.Equal(t, of("work/a"), want)
	}
	d.put(t, ann, "work/a", "clean")
	expect.OK(t, os.WriteFile(d.in(ann, "a"), []byte("clean!"), 0o600))
	expect.Equal(t, of("work/a"), trust.Foreign, "changed by a program")
	expect.OK(t, os.WriteFile(d.in(ann, "a"), []byte("clean"), 0o600))
	expect.Equal(t, of("work/a"), trust.User, "the same words again")
	expect.OK(t, os.Rename(d.in(ann, "a"), d.in(ann, "b")))
	expect.Equal(t, of("work/b"), trust.Foreign, "renamed by a program")
	expect.OK(t, os.WriteFile(d.in(ann, "c"), []byte("made by a program"), 0o600))
	expect.Equal(t, of("work/c"), trust.Foreign)
	expect.OK(t, os.Symlink("c", d.in(ann, "a")))
	expect.Equal(t, of("work/a"), trust.Foreign, "behind a link")
	size := expect.Must(d.Copy(t.Context(), ann, "work/copy", strings.NewReader("copied"), trust.Foreign))(t)
	expect.False(t, size != 6 || of("work/copy") != trust.Foreign, "a copy has %d bytes, %v", size, of("work/copy"))
	if got := rows(t, d); got != 2 { // of a, now a link, and copy
		t.Errorf("%d labels are kept", got)
	}
	// The change sees the label of what it replaces.
	expect.OK(t, d.Change(t.Context(), ann, "work/c", func(old Old) ([]byte, trust.Integrity, error) {
		expect.False(t, old.Err != nil || old.Integrity != trust.Foreign || string(old.Text) != "made by a program", "%+v", old)
		return []byte("corrected"), min(trust.Owner, old.Integrity), nil
	}))
	expect.Equal(t, of("work/c"), trust.Foreign, "a corrected foreign file")
}

func rows(t testing.TB, d desk) (n int) {
	t.Helper()
	expect.OK(t, d.cfg.DB.QueryRowContext(t.Context(), `SELECT count(*) FROM work_file`).Scan(&n))
	return n
}

// TestQuota: a folder holds its quota to the byte, with what programs put there, and a refused write changes nothing.
func TestQuota(t *testing.T) {
	const quota = 5000
	d := newDesk(t, quota)
	var said Refused
	d.put(t, ann, "work/a", strings.Repeat("a", 3000))
	if err := d.write(ann, "work/b", strings.Repeat("b", 2001), trust.User); !errors.As(err, &said) {
		t.Errorf("one byte too many: %v", err)
	}
	d.put(t, ann, "work/b", strings.Repeat("b", 2000))
	if err := d.write(ann, "work/c", "c", trust.User); !errors.As(err, &said) {
		t.Errorf("a full folder: %v", err)
	}
	d.put(t, ann, "work/a", strings.Repeat("A", 3000)) // in its place
	if err := d.write(ann, "work/a", strings.Repeat("x", 3001), trust.User); !errors.As(err, &said) {
		t.Errorf("one byte more: %v", err)
	}
	if text, _ := d.text(t, ann, "work/a"); text != strings.Repeat("A", 3000) {
		t.Error("a refused write changed the file")
	}
	d.put(t, bob, "work/a", strings.Repeat("a", quota)) // his own
	expect.OK(t, d.Remove(ann, "work/b"))
	expect.OK(t, os.WriteFile(d.in(ann, ".hidden"), make([]byte, 1500), 0o600))
	if _, err := d.Copy(t.Context(), ann, "work/c", strings.NewReader(strings.Repeat("c", 501)), trust.User); !errors.As(err, &said) {
		t.Errorf("hidden files do not count: %v", err)
	}
	d.put(t, ann, "work/c", strings.Repeat("c", 500))
	for _, e := range expect.Must(os.ReadDir(d.in(ann, "")))(t) {
		expect.False(t, strings.HasPrefix(e.Name(), tempPrefix), "left: %s", e.Name())
	}
}

// TestTooManyFiles: the number of files is limited, and a folder with too many or too deep ones is listed in part.
func TestTooManyFiles(t *testing.T) {
	d := newDesk(t, 0)
	d.put(t, ann, "work/d/first", "x")
	for i := range maxEntries - 2 {
		expect.OK(t, os.Symlink("nowhere", d.in(ann, fmt.Sprintf("d/%d", i))))
	}
	var said Refused
	if err := d.write(ann, "work/one-more", "x", trust.User); !errors.As(err, &said) {
		t.Errorf("%v", err)
	}
	d.put(t, ann, "work/d/first", "y") // in its place
	expect.OK(t, os.Symlink("nowhere", d.in(ann, "more")))
	l := expect.Must(d.List(t.Context(), ann, "work"))(t)
	expect.False(t, !l.Cut || len(l.Entries) == 0, "cut %v, %d entries", l.Cut, len(l.Entries))
	deep := newDesk(t, 0)
	deep.put(t, ann, "work/a", "x")
	expect.OK(t, os.MkdirAll(deep.in(ann, strings.Repeat("d/", 200)), 0o700))
	l = expect.Must(deep.List(t.Context(), ann, "work"))(t)
	expect.False(t, !l.Cut || len(l.Entries) != 1, "%+v", l)
	if err := deep.write(ann, "work/b", "x", trust.User); !errors.As(err, &said) {
		t.Errorf("deep folders: %v", err)
	}
}

// TestHiddenNames: names with a dot are used by name, and not listed. Names that lie about themselves are counted.
func TestHiddenNames(t *testing.T) {
	d := newDesk(t, 0)
	d.put(t, ann, "work/.env", "hidden")
	d.put(t, ann, "work/.git/config", "hidden")
	d.put(t, ann, "work/b", "shown")
	for _, name := range []string{"line\nfake", "esc\x1b[31m", "\u202egpj.exe", "bad\xff", "back\\slash"} {
		expect.OK(t, os.WriteFile(d.in(ann, name), []byte("x"), 0o600))
	}
	l := expect.Must(d.List(t.Context(), ann, "work"))(t)
	expect.False(t, len(l.Entries) != 1 || l.Entries[0].Path != "work/b" || l.Skipped != 5, "%+v", l)
	expect.Equal(t, d.names(t, ann, "work/.git"), "work/.git/config")
	f := expect.Must(d.Find(t.Context(), ann, "work", "", func(line string) bool { return strings.Contains(line, "hidden") }, 9))(t)
	expect.Equal(t, len(f.Hits), 0)
	if text, _ := d.text(t, ann, "work/.env"); text != "hidden" {
		t.Error(text)
	}
}

// TestBoundFolders: a room sees its folder and no other room does. It is written only if the owner says so.
func TestBoundFolders(t *testing.T) {
	notes, drafts := t.TempDir(), t.TempDir()
	expect.OK(t, os.WriteFile(filepath.Join(notes, "a.txt"), []byte("note"), 0o644))
	expect.OK(t, os.WriteFile(filepath.Join(drafts, "b.sh"), []byte("draft"), 0o755))
	expect.OK(t, os.Symlink("/etc/passwd", filepath.Join(notes, "passwd")))
	d := newDesk(t, 10, Bound{Room: "!group:x", Path: notes, Name: "notes"}, Bound{Room: "!group:x", Path: drafts, Name: "drafts", Write: true})
	if text, of := d.text(t, group, "notes/a.txt"); text != "note" || of != trust.Foreign {
		t.Errorf("%q %v", text, of)
	}
	expect.Equal(t, d.names(t, group, "notes"), "notes/a.txt notes/passwd")
	var said Refused
	for _, err := range []error{
		d.write(group, "notes/a.txt", "x", trust.Owner), d.write(group, "notes/new", "x", trust.Owner), d.Remove(group, "notes/a.txt"), d.write(group, "drafts", "x", trust.Owner),
		d.write(group, "drafts/../b.sh", "x", trust.Owner), d.write(ann, "drafts/b.sh", "x", trust.Owner), d.write(opened, "drafts/b.sh", "x", trust.Owner),
		func() error { _, _, err := d.Read(t.Context(), group, "notes/passwd"); return err }(),
		func() error { _, _, err := d.Read(t.Context(), ann, "notes/a.txt"); return err }(),
		func() error { _, err := d.List(t.Context(), ann, "notes"); return err }(),
	} {
		expect.False(t, !errors.As(err, &said), "%v", err)
	}
	d.put(t, group, "drafts/b.sh", "better, and longer than the quota")
	info := expect.Must(os.Stat(filepath.Join(drafts, "b.sh")))(t)
	expect.False(t, info.Mode().Perm() != 0o755 || rows(t, d) != 0, "mode %v, %d labels", info.Mode(), rows(t, d))
	d.put(t, group, "drafts/new/c.txt", "c")
	if _, of := d.text(t, group, "drafts/new/c.txt"); of != trust.Foreign {
		t.Errorf("a file of the machine: %v", of)
	}
	expect.Equal(t, strings.Join(d.BoundNames(group), " ")+strings.Join(d.BoundNames(ann), " "), "notes drafts")
}

// TestMove: a room's files go with it, with their labels; what is there already stays.
func TestMove(t *testing.T) {
	d := newDesk(t, 0)
	next := trust.Place{Room: "!next:x", Person: "@ann:x"}
	d.put(t, group, "work/a/b", "moved")
	d.put(t, group, "work/c", "old")
	expect.OK(t, d.write(next, "work/c", "new", trust.Owner))
	d.put(t, ann, "work/hers", "stays")
	for range 2 {
		expect.OK(t, d.Move(t.Context(), "!group:x", "!next:x"))
	}
	expect.Equal(t, d.names(t, next, "work"), "work/a/b work/c")
	for path, want := range map[string]trust.Integrity{"work/a/b": trust.User, "work/c": trust.Owner} {
		if text, of := d.text(t, next, path); text == "old" || of != want {
			t.Errorf("%s: %q %v", path, text, of)
		}
	}
	expect.Equal(t, d.names(t, group, "work")+d.names(t, ann, "work"), "work/cwork/hers")
	for _, pair := range [][2]string{{"!none:x", "!next:x"}, {"", "!next:x"}, {"!next:x", ""}, {"!next:x", "!next:x"}} {
		expect.OK(t, d.Move(t.Context(), pair[0], pair[1]))
	}
	expect.Equal(t, d.names(t, next, "work"), "work/a/b work/c")
}

// TestLabelNotStored: a file without its label, as after a kill in between, is foreign.
func TestLabelNotStored(t *testing.T) {
	d := newDesk(t, 0)
	d.put(t, ann, "work/a", "old")
	broken := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	expect.OK(t, broken.Close())
	cut := desk{Open(Config{Dir: d.dir, DB: broken}), d.dir}
	_, err := cut.Copy(t.Context(), ann, "work/a", strings.NewReader("new"), trust.Owner)
	expect.False(t, err == nil, "no error")
	if text, of := d.text(t, ann, "work/a"); text != "new" || of != trust.Foreign {
		t.Errorf("%q %v", text, of)
	}
}

// TestLeftovers: the temporary file of a killed program is removed, and never listed.
func TestLeftovers(t *testing.T) {
	d := newDesk(t, 10)
	d.put(t, ann, "work/d/a", "x")
	for _, name := range []string{tempPrefix + "1", "d/" + tempPrefix + "2"} {
		expect.OK(t, os.WriteFile(d.in(ann, name), make([]byte, 100), 0o600))
	}
	expect.Equal(t, d.names(t, ann, "work"), "work/d/a")
	d.put(t, ann, "work/b", "y")
	for _, dir := range []string{"", "d"} {
		for _, e := range expect.Must(os.ReadDir(d.in(ann, dir)))(t) {
			expect.False(t, strings.HasPrefix(e.Name(), tempPrefix), "left: %s", e.Name())
		}
	}
}

// TestFullDisk: where there is no room, the old content stays and the operator is told.
func TestFullDisk(t *testing.T) {
	d := newDesk(t, 0)
	d.put(t, ann, "work/a", "old")
	smallDisk(t, d.in(ann, "small"))
	d.put(t, ann, "work/small/a", "old")
	err := d.write(ann, "work/small/a", strings.Repeat("x", 3<<20), trust.User)
	var said Refused
	if !errors.Is(err, syscall.ENOSPC) || errors.As(err, &said) {
		t.Errorf("%v", err)
	}
	if text, of := d.text(t, ann, "work/small/a"); text != "old" || of != trust.User {
		t.Errorf("%q %v", text, of)
	}
	entries := expect.Must(os.ReadDir(d.in(ann, "small")))(t)
	expect.Equal(t, len(entries), 1)
}
