package skill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// published returns the folders of testdata/published.txtar: name → path → text.
func published(t testing.TB) map[string]map[string]string {
	t.Helper()
	archive := expect.Must(txtar.ParseFile("testdata/published.txtar"))(t)
	folders := map[string]map[string]string{}
	for _, f := range archive.Files {
		name, rest, _ := strings.Cut(f.Name, "/")
		if folders[name] == nil {
			folders[name] = map[string]string{}
		}
		folders[name][rest] = string(f.Data)
	}
	return folders
}

// TestPublished: each skill of the published form works as it is, or is refused with file, line and reason.
func TestPublished(t *testing.T) {
	works := 0
	for name, files := range published(t) {
		t.Run(name, func(t *testing.T) {
			want := strings.Split(strings.TrimSpace(files["want"]), "\n")
			if want[0] == "" {
				want = nil
			}
			delete(files, "want")
			source := t.TempDir()
			for file, text := range files {
				put(t, source, name+"/"+file, text)
			}
			found := expect.Must(CheckSource(filepath.Join(source, name)))(t)
			checkFound(t, name, found, want)
			l := Open(t.TempDir(), nil)
			s, again, err := l.Import(filepath.Join(source, name), trust.Everybody)
			expect.Equal(t, len(again), len(found), "findings when it is added")
			if Faulty(found) {
				expect.False(t, !errors.Is(err, ErrForm), "%v, want %v", err, ErrForm)
				expect.Equal(t, list(t, l), "", "refused, and something is there")
				return
			}
			expect.OK(t, err)
			works++
			for file, text := range files {
				expect.Equal(t, read(t, l.dir, name+"/"+file), text, "%s was changed", file)
			}
			all := expect.Must(l.All())(t)
			expect.False(t, len(all) != 1 || all[0] != s || s.Name != name || s.Summary == "" || !s.Unreviewed || s.Label.Integrity != trust.Foreign, "%+v", all)
			expect.Len(t, l.Problems(), 0, "problems")
			checkFound(t, "data/skills/"+name, expect.Must(l.Check(name))(t)[1:], want) // the first says that it is not reviewed
		})
	}
	expect.False(t, works < 15, "only %d work", works)
}

// checkFound compares findings with lines of the form "LINE beginning", "~" before a warning.
func checkFound(t *testing.T, folder string, found []Finding, want []string) {
	t.Helper()
	for i, f := range found {
		got := fmt.Sprintf("%d %s", f.Line, f.Text)
		if f.Warning {
			got = "~" + got
		}
		expect.False(t, i >= len(want) || !strings.HasPrefix(got, want[i]), "%d: %s", i, got)
		expect.False(t, f.File != folder+"/SKILL.md" || strings.Contains(f.Text, "CANARY"), "%+v", f)
	}
	expect.False(t, len(found) < len(want), "found %v, want %v", found, want)
}

const goodHead = "---\nname: good\ndescription: Is good.\n---\n"

// TestPublishedBytes: other encodings and lengths of the same file.
func TestPublishedBytes(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"carriage returns":  {strings.ReplaceAll(goodHead+"Text.\n", "\n", "\r\n"), ""},
		"byte order mark":   {"\ufeff" + goodHead + "Text.\n", ""},
		"both, and blanks":  {"\ufeff" + strings.ReplaceAll(strings.ReplaceAll(goodHead, "---\n", "--- \t\n"), "\n", "\r\n") + "Text.\r\n", ""},
		"latin1":            {goodHead + "Caf\xe9.\n", "it is not UTF-8 text"},
		"longest":           {strings.Replace(goodHead, "Is good.", strings.Repeat("語", 1024), 1) + "Text.\n", ""},
		"too long":          {strings.Replace(goodHead, "Is good.", strings.Repeat("語", 1025), 1) + "Text.\n", "description is 1025 characters long, the most is 1024"},
		"compatibility":     {strings.Replace(goodHead, "---\nn", "---\ncompatibility: "+strings.Repeat("x", 501)+"\nn", 1) + "Text.\n", "compatibility is 501 characters long"},
		"long name":         {strings.Replace(goodHead, "good", strings.Repeat("x", 65), 1) + "Text.\n", "name must have 1 to 64"},
		"many lines":        {goodHead + strings.Repeat("Line.\n", 500), "~the text is long (500 lines"},
		"one long line":     {goodHead + strings.Repeat("語", 20_001), "~the text is long (0 lines, 20001 characters)"},
		"499 lines":         {goodHead + strings.Repeat("Line.\n", 499), ""},
		"deep":              {strings.Replace(goodHead, "name", "x: "+strings.Repeat("[", 15_000)+"\nname", 1), "the front matter below this line cannot be read"},
		"long front matter": {strings.Replace(goodHead, "name", "x: "+strings.Repeat("y", headSize)+"\nname", 1), "the front matter that begins here has no end"},
		"null characters":   {strings.Replace(goodHead, "Is good", "Is\x00good", 1), "the front matter below this line cannot be read: control characters"},
	} {
		t.Run(name, func(t *testing.T) {
			source := t.TempDir()
			put(t, source, "good/SKILL.md", tt.text)
			found := expect.Must(CheckSource(filepath.Join(source, "good")))(t)
			if tt.want == "" {
				expect.Len(t, found, 0, "found")
				return
			}
			warning, want := strings.HasPrefix(tt.want, "~"), strings.TrimPrefix(tt.want, "~")
			expect.False(t, len(found) != 1 || found[0].Warning != warning || !strings.HasPrefix(found[0].Text, want), "%+v", found)
		})
	}
}

// TestPublishedFiles: links, devices, odd names and too many or too large files are refused. Scripts
// keep their permission, binary files their bytes, hidden files stay outside.
func TestPublishedFiles(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, "secret", "CANARY")
	for name, tt := range map[string]struct {
		make func(dir string)
		want string
	}{
		"link to a file":       {func(dir string) { link(t, filepath.Join(outside, "secret"), dir, "references/x.md") }, "good/references/x.md: it is a symbolic link"},
		"link to a folder":     {func(dir string) { link(t, outside, dir, "references") }, "good/references: it is a symbolic link"},
		"link inside":          {func(dir string) { link(t, "SKILL.md", dir, "x.md") }, "good/x.md: it is a symbolic link"},
		"pipe":                 {func(dir string) { expect.OK(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600)) }, "good/pipe: it is neither a file nor a folder"},
		"control in a name":    {func(dir string) { put(t, dir, "a\nb", "x") }, "good/a\nb: its name has characters"},
		"name is not UTF-8":    {func(dir string) { put(t, dir, "a\xff", "x") }, "good/a\uFFFD: its name has characters"},
		"too many files":       {func(dir string) { many(t, dir, maxFiles) }, "good: the folder has more than 200 files"},
		"as many as there may": {func(dir string) { many(t, dir, maxFiles-1) }, ""},
		"too large":            {func(dir string) { put(t, dir, "assets/x", strings.Repeat("x", maxBytes)) }, "good: the folder has more than"},
		"a sparse file":        {func(dir string) { sparse(t, dir) }, "good: the folder has more than"},
	} {
		t.Run(name, func(t *testing.T) {
			source := t.TempDir()
			put(t, source, "good/SKILL.md", goodHead+"Text.\n")
			tt.make(filepath.Join(source, "good"))
			l := Open(t.TempDir(), nil)
			_, _, err := l.Import(filepath.Join(source, "good"), trust.Everybody)
			if tt.want == "" {
				expect.OK(t, err)
				return
			}
			expect.False(t, !errors.Is(err, ErrForm), "%v, want %v", err, ErrForm)
			found := expect.Must(CheckSource(filepath.Join(source, "good")))(t)
			expect.False(t, len(found) != 1 || !strings.HasPrefix(found[0].String(), tt.want), "%v", found)
			expect.Len(t, expect.Must(os.ReadDir(l.dir))(t), 0, "left")
		})
	}
	source := t.TempDir()
	put(t, source, "good/SKILL.md", goodHead+"Text.\n")
	put(t, source, "good/assets/logo.png", "\x89PNG\x00\xff")
	put(t, source, "good/scripts/run.sh", "#!/bin/sh\n")
	expect.OK(t, os.Chmod(filepath.Join(source, "good/scripts/run.sh"), 0o755))
	for _, hidden := range []string{".git/config", ".imported", "references/.secret"} {
		put(t, source, "good/"+hidden, "CANARY")
	}
	l := Open(filepath.Join(t.TempDir(), "skills"), nil)
	_, _, err := l.Import(filepath.Join(source, "good"), trust.Everybody)
	expect.OK(t, err)
	expect.Equal(t, read(t, l.dir, "good/assets/logo.png"), "\x89PNG\x00\xff", "binary file")
	var modes []string
	expect.OK(t, filepath.Walk(l.dir, func(name string, info os.FileInfo, err error) error {
		rel, _ := filepath.Rel(l.dir, name)
		modes = append(modes, fmt.Sprintf("%s %v", rel, info.Mode()))
		return err
	}))
	expect.NoDiff(t, modes, []string{". drwx------", "good drwx------", "good/.imported -rw-------", "good/SKILL.md -rw-------", "good/assets drwx------",
		"good/assets/logo.png -rw-------", "good/references drwx------", "good/scripts drwx------", "good/scripts/run.sh -rwx------"}, "files")
	expect.Equal(t, read(t, l.dir, "good/.imported"), "", "the mark")
}

func many(t *testing.T, dir string, n int) {
	for i := range n {
		put(t, dir, fmt.Sprintf("x%d", i), "")
	}
}

func sparse(t *testing.T, dir string) {
	put(t, dir, "assets/x", "")
	expect.OK(t, os.Truncate(filepath.Join(dir, "assets/x"), 1<<40))
}

// imported returns a library with the skill good of everybody, and its source.
func imported(t *testing.T) (l *Library, source string) {
	t.Helper()
	source = filepath.Join(t.TempDir(), "good")
	put(t, source, "SKILL.md", strings.Replace(goodHead, "name", "triggers: deploy\nname", 1)+"Text.\n")
	put(t, source, "references/x.md", "More.\n")
	l = Open(t.TempDir(), nil, "good")
	_, _, err := l.Import(source, trust.Everybody)
	expect.OK(t, err)
	return l, source
}

func only(t *testing.T, l *Library, id string) Skill {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	return expect.Must(l.find(id))(t)
}

func review(t *testing.T, l *Library, id string) {
	t.Helper()
	_, trusted, err := l.Review(id)
	expect.OK(t, err)
	expect.OK(t, trusted())
}

// TestReview: a skill from outside is foreign, with all its files, until an owner has read all of it, and
// again after every change.
func TestReview(t *testing.T) {
	l, _ := imported(t)
	foreign := func(what string) {
		t.Helper()
		s := only(t, l, "good")
		expect.False(t, !s.Unreviewed || s.Always || s.Label.Integrity != trust.Foreign || len(Match([]Skill{s}, "deploy", 9)) > 0, "%s: %+v", what, s)
		for _, rel := range []string{"good/SKILL.md", "good/references/x.md", "good", "good/references"} {
			expect.Equal(t, l.Integrity(ann, rel), trust.Foreign, "%s: %s", what, rel)
		}
		expect.False(t, len(l.Problems()) != 1 || !strings.Contains(l.Problems()[0].Text, "the skill good"), "%s: %v", what, l.Problems())
	}
	foreign("added")
	files, _, err := l.Review("good")
	expect.False(t, err != nil || len(files) != 3 || string(files[2].Data) != "More.\n", "%v, %v", files, err)
	put(t, l.dir, "good/.imported", strings.Repeat("0", 64))
	foreign("another hash")
	for what, change := range map[string]func(){
		"edited":     func() { put(t, l.dir, "good/references/x.md", "Less.\n") },
		"a new file": func() { put(t, l.dir, "good/references/y.md", "") },
		"renamed": func() {
			expect.OK(t, os.Rename(filepath.Join(l.dir, "good/references"), filepath.Join(l.dir, "good/refs")))
		},
		"executable":   func() { expect.OK(t, os.Chmod(filepath.Join(l.dir, "good/references/x.md"), 0o700)) },
		"a link":       func() { link(t, "/etc/passwd", l.dir, "good/references/passwd") },
		"mark emptied": func() { put(t, l.dir, "good/.imported", "") },
		"no mark but a folder": func() {
			expect.OK(t, os.Remove(filepath.Join(l.dir, "good/.imported")))
			put(t, l.dir, "good/.imported/x", "")
		},
		"mark is odd": func() { put(t, l.dir, "good/.imported", strings.Repeat("0", 900)) },
	} {
		l, _ = imported(t)
		review(t, l, "good")
		s := only(t, l, "good")
		expect.False(t, s.Unreviewed || !s.Always || s.Label.Integrity != trust.Owner || len(Match([]Skill{s}, "deploy", 9)) != 1, "%+v", s)
		expect.Equal(t, l.Integrity(ann, "good/references/x.md"), trust.Owner, "reviewed")
		expect.Len(t, l.Problems(), 0, "problems")
		put(t, l.dir, "good/.swp", "an editor's") // hidden: the model cannot read it
		expect.False(t, only(t, l, "good").Unreviewed, "a hidden file changes it")
		change()
		foreign(what)
	}
	put(t, l.dir, "by-hand/SKILL.md", "By hand\n")
	if _, _, err := l.Review("by-hand"); !errors.Is(err, ErrByHand) || only(t, l, "by-hand").Label.Integrity != trust.Owner {
		t.Error("what was written by hand is not the owner's")
	}
}

// TestReviewShowsWhatIsTrusted: a change between reading and answering is not trusted.
func TestReviewShowsWhatIsTrusted(t *testing.T) {
	l, _ := imported(t)
	_, trusted, err := l.Review("good")
	expect.OK(t, err)
	put(t, l.dir, "good/references/x.md", "Obey me.\n")
	expect.OK(t, trusted())
	expect.False(t, !only(t, l, "good").Unreviewed, "unread text is trusted")
}

// TestImportedStaysForeign: nothing but a review makes a skill from outside trusted.
func TestImportedStaysForeign(t *testing.T) {
	l, source := imported(t)
	_, _, err := l.Import(source, trust.PersonReaders("@ann:x"))
	expect.OK(t, err)
	_, _, err = l.Import(source, trust.RoomReaders("!Room"))
	expect.OK(t, err)
	expect.OK(t, l.Move("!Room", "!next"))
	expect.False(t, !only(t, l, "rooms/!next/good").Unreviewed, "moved with the room")
	_, err = l.Share(ann, "good")
	expect.False(t, !errors.Is(err, ErrTaken), "%v, want %v", err, ErrTaken)
	expect.OK(t, l.Remove("good"))
	_, err = l.Share(ann, "good")
	expect.False(t, !errors.Is(err, ErrUnreviewed), "%v, want %v", err, ErrUnreviewed)
	put(t, l.dir, annFolder+"/good/SKILL.md", annKeys+goodHead) // claims to be hers
	_, _, err = l.Add(ann, trust.Owner, "good", "s", "d")
	expect.False(t, err == nil || !strings.Contains(err.Error(), "choose another name"), "%v", err)
	put(t, l.dir, annFolder+"/good/SKILL.md", goodHead)
	review(t, l, annFolder+"/good")
	s := expect.Must(l.Share(ann, "good"))(t)
	expect.False(t, s.Label != (trust.Label{Integrity: trust.Owner, Readers: trust.Everybody}) || s.Path != "data/skills/good/SKILL.md", "%+v", s)
	expect.False(t, only(t, l, "good").Unreviewed, "sharing a reviewed one makes it foreign again")
}

// TestImportSources: a folder, its SKILL.md, and what is none.
func TestImportSources(t *testing.T) {
	source := t.TempDir()
	put(t, source, "good/SKILL.md", goodHead+"Text.\n")
	put(t, source, "one/plain.md", "How to make tea\n")
	put(t, source, "good.txt", goodHead)
	for _, from := range []string{"good", "good/", "good/SKILL.md"} {
		l := Open(t.TempDir(), nil)
		s, _, err := l.Import(filepath.Join(source, from), trust.PersonReaders("@ann:x"))
		expect.False(t, err != nil || s.Path != "data/skills/"+annFolder+"/good/SKILL.md" || s.Label.Readers != ann.Readers(), "%s: %+v, %v", from, s, err)
	}
	l := Open(t.TempDir(), nil)
	outside := t.TempDir()
	link(t, outside, l.dir, "users")
	_, _, err := l.Import(filepath.Join(source, "good"), ann.Readers())
	expect.False(t, err == nil, "a link leads out of the library")
	expect.Len(t, expect.Must(os.ReadDir(outside))(t), 0, "outside")
	l = Open(t.TempDir(), nil)
	for _, from := range []string{"one/plain.md", "good.txt", "none", "one"} {
		_, _, err := l.Import(filepath.Join(source, from), trust.Everybody)
		expect.False(t, err == nil, "%s is a skill", from)
	}
	for _, to := range []trust.Readers{trust.Nobody, trust.PersonReaders("@" + strings.Repeat("A", 200))} {
		_, _, err := l.Import(filepath.Join(source, "good"), to)
		expect.False(t, err == nil, "%q has skills", to)
	}
	expect.Len(t, expect.Must(os.ReadDir(l.dir))(t), 0, "left")
}

// TestCheck: a skill is named as in the list; those with another form have only their own faults.
func TestCheck(t *testing.T) {
	l, _ := imported(t)
	put(t, l.dir, "plain.md", "Plain\n")
	put(t, l.dir, "plain/references/x.md", "no skill")
	put(t, l.dir, "bad.md", "---\nturns: 0\n---\nx")
	put(t, l.dir, "cook/SKILL.md", annKeys+"Cook\n")
	put(t, l.dir, "what?.md", "x")
	var got []string
	for _, f := range expect.Must(l.Check(""))(t) {
		got = append(got, fmt.Sprintf("%s %v", f.Problem, f.Warning))
	}
	for i, want := range []string{"data/skills/cook/SKILL.md:1: the field name", "data/skills/cook/SKILL.md:1: the field desc", "data/skills/good/SKILL.md: it came from outside",
		"the configuration names", "data/skills/bad.md:2: turns", "data/skills/what?.md: its name"} {
		expect.False(t, i >= len(got) || !strings.HasPrefix(got[i], want), "%d: %q of %q", i, want, got)
	}
	expect.Len(t, got, 6, "found")
	for id, n := range map[string]int{"plain": 0, "bad": 1, "cook": 2, "good": 1, "what?": 1} {
		expect.Len(t, expect.Must(l.Check(id))(t), n, id)
	}
	_, err := l.Check("none")
	expect.False(t, !errors.Is(err, ErrUnknown), "%v, want %v", err, ErrUnknown)
}

// FuzzForm: the check of any file ends, names lines of the file, and repeats no values.
func FuzzForm(f *testing.F) {
	for _, files := range published(f) {
		f.Add([]byte(files["SKILL.md"]))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		c := form{name: "good"}
		c.checkForm(file)
		lines := bytes.Count(file, []byte("\n")) + 1
		for _, p := range c.found {
			expect.False(t, p.Line < 0 || p.Line > lines || p.Text == "" || p.Text != oneLine(p.Text) || strings.Contains(p.Text, "CANARY"), "%+v in %d lines", p, lines)
		}
		if !Faulty(c.found) {
			h := readHead(file)
			expect.False(t, h.summary == "" || h.integrity != trust.Owner || h.owner != "", "%+v", h)
		}
	})
}

func BenchmarkListImported(b *testing.B) {
	source := filepath.Join(b.TempDir(), "good")
	put(b, source, "SKILL.md", goodHead+"Text.\n")
	for i := range 20 {
		put(b, source, fmt.Sprintf("references/%d.md", i), strings.Repeat("Text.\n", 8<<10))
	}
	l := Open(b.TempDir(), nil)
	_, _, err := l.Import(source, trust.Everybody)
	expect.OK(b, err)
	_, trusted, err := l.Review("good")
	expect.OK(b, err)
	expect.OK(b, trusted())
	for b.Loop() {
		if all, err := l.All(); err != nil || slices.ContainsFunc(all, func(s Skill) bool { return s.Unreviewed }) {
			b.Fatal(all, err)
		}
	}
}
