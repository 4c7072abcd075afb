package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/task"
	"reverie/internal/test/expect"
)

// folder is a data folder with an open database.
func folder(t *testing.T) Source {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { db.Close() })
	for name, text := range map[string]string{
		"MEMORIES.txt": "Jana likes tea.\n", "memories/room.txt": "", "skills/a.md": "# a", "matrix/recovery.key": "EsTx\n",
		"matrix/account.json": "the token", "matrix/account.json.17": "an old token", ".lock": "1", "work/.profile": "x", "work/Cargo.lock": "x", "work/x.db": "SQLite format 3\x00", "work/x.db-wal": "x", "manifest.json": "{}",
	} {
		expect.OK(t, store.WriteFile(filepath.Join(dir, name), []byte(text)))
	}
	expect.OK(t, os.Symlink("../matrix/recovery.key", filepath.Join(dir, "work/link")))
	other := expect.Must(sql.Open("sqlite", filepath.Join(dir, "other.db")))(t)
	t.Cleanup(func() { other.Close() })
	expect.Must(other.Exec(`PRAGMA journal_mode(WAL); CREATE TABLE x (a TEXT); INSERT INTO x VALUES ('in the log')`))(t)
	return Source{Dir: dir, DB: db, Version: "0.1.0"}
}

func target() Target { return Target{Migrations: reverie.Migrations} }

// tree lists the files below dir with their content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	expect.OK(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(b)
		return err
	}))
	return all
}

// A data folder is backed up while its databases are open and written, and restored.
func TestRoundTrip(t *testing.T) {
	for _, passphrase := range []string{"", "correct horse"} {
		s := folder(t)
		s.Passphrase = passphrase
		file := filepath.Join(t.TempDir(), "b.tar.gz")
		expect.OK(t, store.Exec(t.Context(), s.DB, `INSERT INTO room_setting (room, name, value, person, at) VALUES ('!r', 'listen', 'on', '', 0)`))
		w := expect.Must(Write(t.Context(), file, s))(t)
		expect.Equal(t, strings.Join(w.LeftOut, " "), "work/link", "left out")
		if info := expect.Must(os.Stat(file))(t); info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", info.Mode())
		}
		if text := expect.Must(os.ReadFile(file))(t); passphrase != "" && !bytes.HasPrefix(text, []byte("age-encryption.org/v1")) {
			t.Error("it is not encrypted")
		}
		expect.Equal(t, len(tree(t, filepath.Dir(file))), 1, "files beside the backup")
		to := target()
		to.Passphrase = passphrase
		dir := filepath.Join(t.TempDir(), "new", "data")
		m := expect.Must(Restore(t.Context(), file, dir, to))(t)
		expect.OK(t, CheckFinished(dir))
		files := tree(t, dir)
		var names []string
		for _, f := range m.Files {
			names = append(names, f.Path)
		}
		slices.Sort(names)
		expect.Equal(t, strings.Join(names, " "),
			"MEMORIES.txt bot.db manifest.json matrix/recovery.key memories/room.txt other.db skills/a.md work/.profile work/Cargo.lock work/x.db work/x.db-wal")
		expect.Equal(t, len(files), len(names), "restored files")
		expect.Equal(t, files["MEMORIES.txt"], "Jana likes tea.\n")
		db := expect.Must(store.Open(t.Context(), filepath.Join(dir, "bot.db"), reverie.Migrations))(t)
		expect.Equal(t, expect.Must(store.Value[string](t.Context(), db, `SELECT value FROM room_setting`))(t), "on", "the row")
		expect.OK(t, db.Close())
		other := expect.Must(sql.Open("sqlite", filepath.Join(dir, "other.db")))(t)
		expect.Equal(t, expect.Must(store.Value[string](t.Context(), other, `SELECT a FROM x`))(t), "in the log", "the other database")
		expect.OK(t, other.Close())
		if _, err := Restore(t.Context(), file, dir, to); err == nil || !strings.Contains(err.Error(), "is not empty (it has") {
			t.Errorf("restored over a folder in use: %v", err)
		}
		for _, wrong := range []string{"", "wrong"} {
			to.Passphrase = wrong
			if _, err := Check(t.Context(), file, t.TempDir(), to); passphrase != "" && (err == nil || !strings.Contains(err.Error(), "passphrase")) {
				t.Errorf("opened with %q: %v", wrong, err)
			}
		}
	}
}

// entry is a file of a planted archive.
type entry struct {
	tar.Header
	text string
}

// plant writes an archive with the files of a good one and more.
func plant(t *testing.T, good []byte, more ...entry) []byte {
	t.Helper()
	zipped := expect.Must(gzip.NewReader(bytes.NewReader(good)))(t)
	in := tar.NewReader(zipped)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	out := tar.NewWriter(z)
	for _, e := range more {
		e.Mode = 0o600
		if e.Size == 0 && e.Typeflag == tar.TypeReg {
			e.Size = int64(len(e.text))
		}
		expect.OK(t, out.WriteHeader(&e.Header))
		_, _ = out.Write([]byte(e.text))
	}
	for h, err := in.Next(); err == nil; h, err = in.Next() {
		expect.OK(t, out.WriteHeader(h))
		_, err := io.Copy(out, in)
		expect.OK(t, err)
	}
	_ = out.Close() // an entry may have no content
	expect.OK(t, z.Close())
	return b.Bytes()
}

// A damaged or planted backup is refused, and nothing of it stays, inside or outside of the folder.
func TestFaultyBackups(t *testing.T) {
	s := folder(t)
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	expect.Must(Write(t.Context(), file, s))(t)
	good := expect.Must(os.ReadFile(file))(t)
	s.Passphrase = "a"
	expect.Must(Write(t.Context(), file, s))(t)
	sealed := expect.Must(os.ReadFile(file))(t)
	flip := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 4
		return b
	}
	reg := func(name, text string) entry {
		return entry{tar.Header{Typeflag: tar.TypeReg, Name: name}, text}
	}
	long := strings.Repeat("x", 5000)
	zeros := func(n int) string { return strings.Repeat("\x00", n) }
	tests := map[string]struct {
		data []byte
		want string
	}{
		"empty":               {nil, "cut off"},
		"cut off":             {good[:len(good)/2], "cut off"},
		"cut off at the end":  {good[:len(good)-3], "cut off"},
		"a bit":               {flip(good, len(good)/3), "damaged"},
		"a bit at the end":    {flip(good, len(good)-6), "damaged"},
		"sealed, a bit":       {flip(sealed, len(sealed)/2), "damaged"},
		"sealed, cut off":     {sealed[:len(sealed)/2], "damaged"},
		"sealed, header":      {sealed[:40], "damaged"},
		"text":                {[]byte("Dear diary, this is no archive"), "no backup of this program"},
		"up":                  {plant(t, good, reg("data/../../x", "evil")), "no backup of this program has"},
		"up at the top":       {plant(t, good, reg("../x", "evil")), "no backup of this program has"},
		"absolute":            {plant(t, good, reg("/tmp/reverie-x", "evil")), "no backup of this program has"},
		"absolute below data": {plant(t, good, reg("data//tmp/reverie-x", "evil")), "no backup of this program has"},
		"link": {plant(t, good, entry{tar.Header{Typeflag: tar.TypeSymlink, Name: "data/work", Linkname: "/tmp"}, ""}),
			"no backup of this program has"},
		"hard link": {plant(t, good, entry{tar.Header{Typeflag: tar.TypeLink, Name: "data/x", Linkname: "/etc/passwd"}, ""}),
			"no backup of this program has"},
		"device":         {plant(t, good, entry{tar.Header{Typeflag: tar.TypeChar, Name: "data/x", Devmajor: 1, Devminor: 3}, ""}), "no backup of"},
		"not listed":     {plant(t, good, reg("data/extra.txt", "evil")), "not in its manifest"},
		"twice":          {plant(t, good, reg("data/MEMORIES.txt", "evil")), "file exists"},
		"huge":           {plant(t, empty(t), entry{tar.Header{Typeflag: tar.TypeReg, Name: "data/huge", Size: 1 << 50}, zeros(1000)}), "the disk has room for"},
		"manifest alone": {plant(t, empty(t), reg("manifest.json", `{"format":1,"files":[]}`)), "it has no bot.db"},
		"missing":        {plant(t, empty(t), reg("data/bot.db", ""), reg("manifest.json", `{"format":1,"files":[{"path":"bot.db","size":1}]}`)), "missing or damaged"},
		"no manifest":    {plant(t, empty(t), reg("data/x", "")), "cut off"},
		"newer":          {plant(t, empty(t), reg("manifest.json", `{"format":2,"version":"9"}`)), "made by a newer release (9)"},
		"no database":    {plant(t, empty(t), reg("data/bot.db", long), manifest("bot.db", long)), "not a SQLite database"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			dir := filepath.Join(around, "a", "data")
			file := filepath.Join(t.TempDir(), "b")
			expect.OK(t, os.WriteFile(file, test.data, 0o600))
			to := target()
			to.Passphrase = "a"
			_, err := Restore(t.Context(), file, dir, to)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("restore: %v", err)
			}
			if !strings.HasPrefix(name, "sealed") { // which takes its time
				_, err = Check(t.Context(), file, around, to)
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("check: %v", err)
			}
			expect.Equal(t, len(tree(t, around)), 0, "files left behind")
			if _, err := os.Lstat("/tmp/reverie-x"); err == nil {
				t.Error("it wrote outside")
			}
		})
	}
}

// empty returns an empty archive.
func empty(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	expect.OK(t, tar.NewWriter(z).Close())
	expect.OK(t, z.Close())
	return b.Bytes()
}

func manifest(name, text string) entry {
	m, _ := json.Marshal(Manifest{Format: 1, Files: []File{{name, int64(len(text)), fmt.Sprintf("%x", sha256.Sum256([]byte(text)))}}})
	return entry{tar.Header{Typeflag: tar.TypeReg, Name: "manifest.json"}, string(m)}
}

// A backup fails: there is no file, the old one stays, and nothing else is left.
func TestFailedBackupLeavesTheOldOne(t *testing.T) {
	s := folder(t)
	file := filepath.Join(t.TempDir(), "b.tar.gz")
	expect.OK(t, os.WriteFile(file, []byte("the old one"), 0o600))
	ctx, cancel := context.WithCancel(t.Context())
	s.Progress = func(int64) { cancel() }
	if _, err := Write(ctx, file, s); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	expect.Equal(t, fmt.Sprint(tree(t, filepath.Dir(file))), "map[b.tar.gz:the old one]")
	for _, inside := range []string{"b.tar.gz", "work/b.tar.gz"} {
		if _, err := Write(t.Context(), filepath.Join(s.Dir, inside), s); err == nil || !strings.Contains(err.Error(), "inside the data folder") {
			t.Errorf("error %v", err)
		}
	}
}

// A restore that was killed is noticed, and its folder is not used.
func TestInterruptedRestore(t *testing.T) {
	dir := t.TempDir()
	expect.OK(t, CheckFinished(dir))
	expect.OK(t, os.Mkdir(filepath.Join(dir, staging), 0o700))
	if err := CheckFinished(dir); err == nil || !strings.Contains(err.Error(), "was interrupted") {
		t.Errorf("error %v", err)
	}
	s, file := folder(t), filepath.Join(t.TempDir(), "b")
	expect.Must(Write(t.Context(), file, s))(t)
	expect.Must(Restore(t.Context(), file, dir, target()))(t) // only an unpacking is there: it begins anew
	expect.OK(t, CheckFinished(dir))
}

// The keeper makes backups on schedule, keeps the newest, tries weekly to restore one, and records failures.
func TestKeeper(t *testing.T) {
	s := folder(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	k := &Keeper{Source: s, Target: target(), Folder: filepath.Join(t.TempDir(), "b"), Keep: 2, Location: time.UTC,
		Schedule: task.Schedule{Type: "cron", Expression: "30 4 * * *"}, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	run := func(d time.Duration, want string) State {
		t.Helper()
		now = now.Add(d)
		expect.OK(t, k.runDue(t.Context()))
		expect.Equal(t, strings.Join(slices.Sorted(func(yield func(string) bool) {
			for name := range tree(t, k.Folder) {
				if !yield(strings.TrimSuffix(strings.TrimPrefix(name, "reverie-202601"), ".tar.gz")) {
					return
				}
			}
		}), " "), want, "at %v there is", now)
		return expect.Must(ReadState(t.Context(), s.DB))(t)
	}
	if st := run(0, "01-120000"); st.Problem() != "" || st.Check.GoodAt != st.Backup.GoodAt || st.Backup.GoodAt.IsZero() {
		t.Errorf("state %+v", st)
	}
	run(time.Hour, "01-120000")
	run(16*time.Hour, "01-120000 02-050000")
	checked := run(24*time.Hour, "02-050000 03-050000").Check.At
	expect.OK(t, os.Rename(k.Folder, k.Folder+".away"))
	expect.OK(t, os.WriteFile(k.Folder, nil, 0o600)) // a file in its place
	now = now.Add(24 * time.Hour)
	expect.OK(t, k.runDue(t.Context()))
	st := expect.Must(ReadState(t.Context(), s.DB))(t)
	if !strings.Contains(st.Problem(), "not a directory") || st.Backup.GoodAt.Day() != 3 || st.Check.At != checked {
		t.Errorf("state %+v", st)
	}
	expect.OK(t, os.Remove(k.Folder))
	expect.OK(t, os.Rename(k.Folder+".away", k.Folder))
	expect.Equal(t, run(30*time.Minute, "02-050000 03-050000").Problem() != "", true, "still failed")
	expect.Equal(t, run(30*time.Minute, "03-050000 04-060000").Problem(), "", "an hour later")
	expect.OK(t, os.Truncate(filepath.Join(k.Folder, "reverie-20260104-060000.tar.gz"), 100))
	st = run(4*24*time.Hour-2*time.Hour, "04-060000 08-040000")
	if st.Check.At == checked { // a week has not passed since noon of the first
		t.Log("not checked yet")
	}
	k.Target.Migrations = os.DirFS(t.TempDir()) // no restore can work
	if st = run(24*time.Hour, "08-040000 09-040000"); !strings.Contains(st.Problem(), "cannot be restored") {
		t.Errorf("state %+v", st)
	}
}
