package skill

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"reverie/internal/store"
	"reverie/internal/test/expect"
	words "reverie/internal/text"
	"reverie/internal/trust"
)

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o700))
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
}

func link(t testing.TB, to, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	expect.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path)))
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	b := expect.Must(os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))))(t)
	return string(b)
}

func list(t testing.TB, l *Library) string {
	t.Helper()
	skills := expect.Must(l.All())(t)
	var out []string
	for _, s := range skills {
		out = append(out, s.Name+"="+s.Summary)
	}
	return strings.Join(out, "|")
}

// plain is a skill without front matter.
func plain(name, summary, path string) Skill {
	return Skill{Name: name, Summary: summary, Path: path, Priority: 5, Turns: 4, Label: trust.Label{Integrity: trust.Owner, Readers: trust.Everybody}}
}

// ann is Ann's direct chat, annFolder the folder of her skills.
var ann = trust.Place{Room: "!ann", Person: "@ann:x", Private: true}

const (
	annFolder = "users/@ann=3ax"
	annKeys   = "---\nintegrity: user\nwritten_by: \"@ann:x\"\n---\n"
)

func TestList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	l := Open(dir, nil)
	expect.Equal(t, list(t, l), "", "no folder")
	put(t, dir, "water.md", "How to water\n\ntext")
	put(t, dir, "Build.md", "\ufeff\r\n## How to  build\r\nmore\r\n")
	put(t, dir, "cook/SKILL.md", "---\nname: cook\ndescription: \"How to cook: well\"\n---\n# Cook\n")
	put(t, dir, "front.md", "---\nname: front\n---\n# After it\n")
	put(t, dir, "both.md", "the file")
	put(t, dir, "both/SKILL.md", "the folder")
	put(t, dir, "empty.md", "")
	put(t, dir, "raw.md", "a\xff\x1b[1mb\n")
	put(t, dir, "long.md", strings.Repeat("茶", 5000))
	put(t, dir, "notes/other.md", "no skill")
	put(t, dir, "readme.txt", "no skill")
	put(t, dir, ".water.md.1", "an earlier version")
	want := []Skill{
		plain("Build", "How to build", "data/skills/Build.md"), plain("both", "the file", "data/skills/both.md"),
		plain("cook", "How to cook: well", "data/skills/cook/SKILL.md"), plain("empty", "", "data/skills/empty.md"),
		plain("front", "After it", "data/skills/front.md"), plain("long", strings.Repeat("茶", 299)+"…", "data/skills/long.md"),
		plain("raw", "a\uFFFD [1mb", "data/skills/raw.md"), plain("water", "How to water", "data/skills/water.md"),
	}
	got := expect.Must(l.All())(t)
	expect.EqualSlice(t, got, want, "it")
}

// An edit shows at once, also to the same size within one tick of the clock.
func TestEditsShowAtOnce(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, nil)
	summary := func() string {
		all := expect.Must(l.All())(t)
		if len(all) != 1 {
			t.Fatalf("%d skills, want one", len(all))
		}
		return all[0].Summary
	}
	for i := range 200 {
		want := fmt.Sprintf("Number %03d", i)
		put(t, dir, "a.md", want)
		if got := summary(); got != want {
			t.Fatalf("after an edit: %q, want %q", got, want)
		}
	}
	path := filepath.Join(dir, "a.md")
	later := time.Now().Add(time.Hour)
	expect.OK(t, os.Chtimes(path, later, later)) // so that the file is young, however slow the machine is
	if summary(); len(l.kept) != 0 {
		t.Error("the stamp of a file that changed just now is believed")
	}
	stamp := expect.Must(store.Stat(path))(t)
	settled := func() { l.kept["a.md"] = kept{stamp: stamp, skill: plain("a", "Kept", "a.md")} }
	if settled(); summary() != "Kept" {
		t.Error("a file that did not change was read again")
	}
	info := expect.Must(os.Stat(path))(t)
	put(t, dir, "b.md", "Number 200")
	expect.OK(t, os.Chtimes(filepath.Join(dir, "b.md"), info.ModTime(), info.ModTime()))
	expect.OK(t, os.Rename(filepath.Join(dir, "b.md"), path))
	if got := summary(); got != "Number 200" {
		t.Errorf("after a file of the same size and time took its place: %q", got)
	}
	settled()
	expect.OK(t, os.Remove(path))
	if all := expect.Must(l.All())(t); len(all)+len(l.kept) != 0 {
		t.Errorf("a removed file is still known: %v, %v", all, l.kept)
	}
}

func TestAdd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	l := Open(dir, nil)
	s, replaced, err := l.Add(ann, trust.User, "water-plants", "# How to\nwater ", "\n1. Take a can.\r\n2. Pour.\n\n")
	want := plain("water-plants", "How to water", "data/skills/"+annFolder+"/water-plants.md")
	want.Label, want.Owner = trust.Label{Integrity: trust.User, Readers: "private:@ann:x"}, "@ann:x"
	if err != nil || replaced || s != want {
		t.Fatalf("%+v, %v, %v", s, replaced, err)
	}
	expect.Equal(t, read(t, dir, annFolder+"/water-plants.md"), annKeys+"How to water\n\n1. Take a can.\n2. Pour.\n", "file reads")
	expect.Equal(t, list(t, l), "water-plants=How to water", "listed")
	for i, text := range []string{"two", "two", "three"} { // the same once more keeps no version
		if _, replaced, err := l.Add(ann, trust.User, "water-plants", "v", text); err != nil || !replaced {
			t.Errorf("%d: replaced %v, %v", i, replaced, err)
		}
	}
	if got := read(t, dir, annFolder+"/.water-plants.md.1") + read(t, dir, annFolder+"/.water-plants.md.2"); got != annKeys+"How to water\n\n1. Take a can.\n2. Pour.\n"+annKeys+"v\n\ntwo\n" {
		t.Errorf("earlier versions read %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, annFolder, ".water-plants.md.3")); err == nil {
		t.Error("a version too many")
	}
	put(t, dir, annFolder+"/cook/SKILL.md", annKeys+"Cook")
	s, replaced, err = l.Add(ann, trust.User, "cook", "better", "text")
	if err != nil || !replaced || s.Path != "data/skills/"+annFolder+"/cook/SKILL.md" || read(t, dir, annFolder+"/cook/.SKILL.md.1") != annKeys+"Cook" {
		t.Errorf("folder form: %+v, %v, %v", s, replaced, err)
	}
	expect.Equal(t, expect.Must(os.Stat(filepath.Join(dir, annFolder, "water-plants.md")))(t).Mode().Perm(), 0o600, "mode")
}

func TestAddRefuses(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "skills")
	l := Open(dir, nil)
	for _, tt := range []struct{ name, summary, text, want string }{
		{"", "s", "d", "name"}, {"../x", "s", "d", "name"}, {"a/b", "s", "d", "name"}, {"a.md", "s", "d", "name"},
		{".hidden", "s", "d", "name"}, {"-x", "s", "d", "name"}, {"ключ", "s", "d", "name"}, {"a\nb", "s", "d", "name"},
		{strings.Repeat("x", 65), "s", "d", "name"}, {"a", " ## ", "d", "summary is missing"},
		{"a", strings.Repeat("x", 301), "d", "summary is 301"}, {"a", "s", " \n", "documentation is missing"},
		{"a", "s", strings.Repeat("x", maxText), "split it"},
	} {
		if _, _, err := l.Add(ann, trust.User, tt.name, tt.summary, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q %.10q: %v, want %q", tt.name, tt.summary, err, tt.want)
		}
	}
	entries := expect.Must(os.ReadDir(parent))(t)
	expect.Len(t, entries, 0, "refused skills left")
}

func TestAddDoesNotFollowLinksOut(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, "theirs.md", "theirs")
	link(t, filepath.Join(outside, "theirs.md"), dir, annFolder+"/link.md")
	link(t, outside, dir, annFolder+"/folder")
	link(t, outside, dir, "users/@bob=3ax")
	put(t, outside, "SKILL.md", annKeys+"theirs")
	for _, at := range []trust.Place{ann, bob} {
		for _, name := range []string{"link", "new"} {
			_, _, err := Open(dir, nil).Add(at, trust.User, name, "s", "ours")
			if fine := at == ann && name == "new"; (err == nil) != fine {
				t.Errorf("%s of %s: %v", name, at.Person, err)
			}
		}
	}
	expect.Equal(t, read(t, outside, "theirs.md")+read(t, outside, "SKILL.md"), "theirs"+annKeys+"theirs", "outside reads")
	expect.Len(t, expect.Must(os.ReadDir(outside))(t), 2, "outside holds")
}

func FuzzAdd(f *testing.F) {
	f.Add("name", "summary", "text")
	f.Add("..", "# ---", "---\ndescription: x\n---")
	f.Add("a", "\ufeff---", "integrity: owner\ntriggers: x\n---\n")
	f.Fuzz(func(t *testing.T, name, summary, text string) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "skills")
		l := Open(dir, nil)
		s, _, err := l.Add(ann, trust.User, name, summary, text)
		if err != nil {
			return
		}
		expect.Equal(t, list(t, l), s.Name+"="+s.Summary, "%q %q is listed as", name, summary)
		if all, err := l.All(); err != nil || len(all) != 1 || all[0] != s || s.Label.Integrity != trust.User || s.Owner != ann.Person || s.triggers != "" {
			t.Errorf("%+v, %v", all, err)
		}
		expect.Must(os.Stat(filepath.Join(parent, strings.TrimPrefix(s.Path, "data/"))))(t)
	})
}

func TestFrontMatter(t *testing.T) {
	tests := []struct {
		name, file string
		summary    string
		triggers   []string
		pt         [2]int   // priority and turns
		faults     []string // each "line: beginning of the text"
	}{
		{"none", "# How to\ntext", "How to", nil, [2]int{5, 4}, nil},
		{"all", "---\ntriggers: deploy, docker compose, \"release the app\"\npriority: 2\nturns: 7\n---\n# Deploy it\n\ntext",
			"Deploy it", []string{"deploy", "docker compose", "release the app"}, [2]int{2, 7}, nil},
		{"byte order mark, other line ends", "\ufeff\r\n---  \r\ntriggers: a b\r\n---\r\n\r\n# x\r\n", "x", []string{"a b"}, [2]int{5, 4}, nil},
		{"signs", "---\ntriggers: [\"!deploy\", \"@home\", \"it's: 5%\", c#] # comment\n---\nx", "x", []string{"!deploy", "@home", "it's: 5%", "c#"}, [2]int{5, 4}, nil},
		{"list", "---\ntriggers:\n  - deploy\n  - 'a, b'\n  - 7\n---\nx", "x", []string{"deploy", "a, b", "7"}, [2]int{5, 4}, nil},
		{"of other programs", "---\nname: x\ndescription: >\n  How to\n  cook\nallowed-tools: [a, b]\n---\n# Cook", "How to cook", nil, [2]int{5, 4}, nil},
		{"no end", "\n---\ntriggers: a\nx", "triggers: a", nil, [2]int{5, 4}, []string{"2: the front matter that begins here has no end"}},
		{"a rule", "---\nJust text\n---\nmore", "Just text", nil, [2]int{5, 4}, []string{"1: between the first two"}},
		{"not readable", "---\ntriggers: kept\npriority: [1\nturns: 2\n---\nx", "x", nil, [2]int{5, 4}, []string{"1: the front matter below this line cannot be read: did not find"}},
		{"a sign too many", "---\ndescription: How to: cook\n---\n# x", "x", nil, [2]int{5, 4}, []string{"1: the front matter below this line cannot be read: mapping values"}},
		{"wrong values", "---\npriority: high\nturns: 0\ntriggers: {a: b}\n---\nx", "x", nil, [2]int{5, 4},
			[]string{"2: priority must be a whole number from 1 to 10: 5 holds", "3: turns must be a whole number from 1 to 50: 4 holds", "4: triggers are texts"}},
		{"a list in a list", "---\ntriggers:\n- a\n- [b]\n---\nx", "x", []string{"a"}, [2]int{5, 4}, []string{"4: triggers are texts"}},
		{"no end in reach", "---\n" + strings.Repeat("#\n", headSize/2) + "triggers: a\n---\nx", "", nil, [2]int{5, 4}, []string{"1: the front matter that begins here has no end"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := readHead([]byte(tt.file))
			expect.False(t, h.summary != tt.summary || [2]int{h.priority, h.turns} != tt.pt, "summary %q, priority %d, turns %d", h.summary, h.priority, h.turns)
			expect.NoDiff(t, h.triggers, tt.triggers, "other than wanted")
			if len(h.faults) != len(tt.faults) {
				t.Fatalf("faults: %v", h.faults)
			}
			for i, f := range h.faults {
				if got := fmt.Sprintf("%d: %s", f.Line, f.Text); !strings.HasPrefix(got, tt.faults[i]) {
					t.Errorf("fault %q, want %q", got, tt.faults[i])
				}
			}
		})
	}
}

// Problems lists each fault with file and line; the log has it once, and the skill still works.
func TestProblems(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	l := Open(dir, slog.New(slog.NewTextHandler(&log, nil)))
	put(t, dir, "good.md", "---\ntriggers: a\n---\nGood")
	put(t, dir, "bad.md", "---\nturns: 99\npriority: no\n---\nBad")
	put(t, dir, "cook/SKILL.md", "---\nno end")
	put(t, dir, "what is this?.md", "odd")
	put(t, dir, "-dash.md", "odd")
	put(t, dir, "folder.md/x", "x")
	outside := t.TempDir()
	put(t, outside, "secret.md", "secret")
	link(t, outside+"/secret.md", dir, "link.md")
	for range 2 {
		var got []string
		for _, p := range l.Problems() {
			got = append(got, fmt.Sprintf("%s:%d %.5s", p.File, p.Line, p.Text))
		}
		want := []string{"data/skills/-dash.md:0 its n", "data/skills/bad.md:2 turns", "data/skills/bad.md:3 prior", "data/skills/cook/SKILL.md:1 the f", "data/skills/folder.md:0 it is",
			"data/skills/link.md:0 opena", "data/skills/what is this?.md:0 its n"}
		expect.NoDiff(t, got, want, "other than wanted")
		expect.Equal(t, list(t, l), "bad=Bad|cook=no end|good=Good", "it")
	}
	if n := strings.Count(log.String(), "\n"); n != 7 || !strings.Contains(log.String(), "file=data/skills/bad.md line=2 why=\"turns must") {
		t.Errorf("%d lines:\n%s", n, &log)
	}
	put(t, dir, "bad.md", "---\nturns: 9\n---\nMended")
	put(t, dir, "cook/SKILL.md", "Cook")
	if got := l.Problems(); len(got) != 4 || got[3].File != "data/skills/what is this?.md" {
		t.Errorf("%v", got)
	}
}

func TestAddKeepsFrontMatter(t *testing.T) {
	const keys = "integrity: user\nwritten_by: \"@a:x\"\n"
	tests := []struct{ name, old, want string }{
		{"triggers", "---\ntriggers: a, b\n" + keys + "turns: 9\n---\n# Old\n", "---\n" + keys + "triggers: a, b\nturns: 9\n---\nNew\n\ntext\n"},
		{"description", "---\nname: x\n" + keys + "description: >\n  Old\n\n  text\nlicense: y\n---\n", "---\n" + keys + "name: x\nlicense: y\n---\nNew\n\ntext\n"},
		{"only a description", "---\n" + keys + "description: Old\n---\n# x", "---\n" + keys + "---\nNew\n\ntext\n"},
		{"a description in another form", "---\n" + keys + "\"description\": Old\n---\n# x", "---\n" + keys + "---\nNew\n\ntext\n"},
		{"faulty", "---\n" + keys + "triggers: a\nturns: 99\n---\n# Old\n", "---\n" + keys + "triggers: a\nturns: 99\n---\nNew\n\ntext\n"},
		{"another integrity", "---\nintegrity: guest\nwritten_by: '@a:x'\n---\n# Old\n", "---\n" + keys + "---\nNew\n\ntext\n"},
	}
	at := trust.Place{Room: "!a", Person: "@a:x", Private: true}
	folder := Folder(at.Readers())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, folder+"/x.md", tt.old)
			l := Open(dir, nil)
			for range 2 {
				s, replaced, err := l.Add(at, trust.User, "x", "New", "text")
				if err != nil || !replaced {
					t.Fatalf("%v, %v", replaced, err)
				}
				expect.NoDiff(t, read(t, dir, folder+"/x.md"), tt.want, "other than wanted")
				if all, err := l.List(at); err != nil || len(all) != 1 || all[0] != s || s.Summary != "New" {
					t.Errorf("added %+v, listed %+v, %v", s, all, err)
				}
			}
			expect.Equal(t, read(t, dir, folder+"/.x.md.1"), tt.old, "the earlier version reads")
		})
	}
}

func FuzzFrontMatter(f *testing.F) {
	for _, seed := range []string{"", "# x\n", "---\ndescription: 'y'\n---\n", "---", "\ufeff\r\n###\n a\x00", "description: z",
		"---\ntriggers: deploy, docker compose, \"release the app\"\npriority: 5\nturns: 4\n---\n# Summary\n",
		"---\ntriggers: [a, &x b, *x]\nturns: 0x10\n---\n", "---\ntriggers:\n - a\n - {b: c}\npriority: 1e3\n---\nx", "---\na: &a [*a]\n---", "---\n? [a]\n: b\n---\n",
		"---\ntriggers: \"a, b\n---\n", "---\n%YAML 9\n---\n", "---\ntriggers: |\n  a\n  b\n...\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		h := readHead(file)
		expect.False(t, h.summary != oneLine(h.summary) || utf8.RuneCountInString(h.summary) > maxSummary, "summary %q", h.summary)
		expect.False(t, h.priority < 1 || h.priority > lowestPriority || h.turns < 1 || h.turns > mostTurns, "%+v", h)
		for _, tr := range h.triggers {
			expect.False(t, tr == "" || tr != oneLine(tr), "trigger %q", tr)
		}
		lines := bytes.Count(file, []byte("\n")) + 1
		for _, fault := range h.faults {
			if fault.Line < 1 || fault.Line > lines || fault.Text == "" || fault.Text != oneLine(fault.Text) {
				t.Errorf("fault %d %q in a file of %d lines", fault.Line, fault.Text, lines)
			}
		}
		front, body, line, closed := splitFront(file)
		expect.False(t, !bytes.HasSuffix(file, body) || closed != (front != nil) || closed && line == 0, "front %q (%d, %v), body %q", front, line, closed, body)
		_, text := splitValidFront(file)
		if got := words.Clean(string(text)); len(got) > 3*len(file) || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\x00") {
			t.Errorf("text %q", got)
		}
		s := newSkill("a", "a.md", h)
		expect.Equal(t, newSkill("a", "a.md", readHead(file)), s, "then")
		for _, tr := range h.triggers {
			expect.Equal(t, len(Match([]Skill{s}, "("+tr+")", 1)), 1, "%q does not match itself", tr)
		}
	})
}

func TestBody(t *testing.T) {
	late := "---\n" + strings.Repeat("#\n", headSize/2) + "---\nx" // its front matter ends too late to be some
	dir := t.TempDir()
	for name, file := range map[string]string{
		"plain.md": "\ufeff# How to\r\n\r\ntext\r\n", "front.md": "---\ntriggers: a\n---\n\n# How to\n\n---\ntext\n",
		"faulty.md": "---\ntriggers: [a\n---\n# How to\n", "open.md": "---\nno end\n", "rule.md": "---\nJust text\n---\nmore\n",
		"cook/SKILL.md": "---\ndescription: x\n---\nCook\n", "both.md": "the file", "both/SKILL.md": "the folder",
		"raw.md": "a\xffb\x00c\x1b[1m\td\re", "empty.md": "", "late.md": late,
	} {
		put(t, dir, name, file)
	}
	l := Open(dir, nil)
	for name, want := range map[string]string{
		"plain": "# How to\n\ntext", "front": "# How to\n\n---\ntext", "faulty": "# How to", "open": "---\nno end",
		"rule": "---\nJust text\n---\nmore", "cook": "Cook", "both": "the file", "raw": "abc[1m\td\ne", "empty": "", "late": late,
	} {
		expect.Equal(t, expect.Must(l.Body(name))(t), want, name)
	}
}

func TestLongBodyIsCut(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, nil)
	front := "---\n" + strings.Repeat("# comment\n", 1600) + "---\n"
	line := strings.Repeat("茶", 20) + "\n"
	for name, tt := range map[string]struct {
		file string
		cut  bool
	}{
		"fits": {strings.Repeat("x", maxBody), false}, "just-over": {strings.Repeat("x", maxBody+1), true},
		"lines": {strings.Repeat(line, 5000), true}, "front": {front + strings.Repeat(line, 5000), true},
	} {
		put(t, dir, name+".md", tt.file)
		got, err := l.Body(name)
		expect.False(t, err != nil || len(got) > maxBody || !utf8.ValidString(got) || strings.Contains(got, "comment"), "%s: %d bytes, %v", name, len(got), err)
		if says := strings.HasSuffix(got, "\n[The skill is longer than 64 KiB. The rest stands in data/skills/"+name+".md.]"); says != tt.cut {
			t.Errorf("%s: ends in %q", name, got[max(0, len(got)-100):])
		}
		if text, _, _ := strings.Cut(got, "\n["); strings.Contains(tt.file, line) && !strings.HasSuffix(text, line[:len(line)-1]) {
			t.Errorf("%s: cut within a line: %q", name, text[max(0, len(text)-70):])
		}
	}
}

func TestBodyRefuses(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside, "secret.md", "secret")
	link(t, filepath.Join(outside, "secret.md"), dir, "link.md")
	put(t, dir, "folder.md/x", "x")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.md"), 0o600); err != nil { // reading it would never end
		t.Fatal(err)
	}
	l := Open(dir, nil)
	for _, name := range []string{"../secret", "", "a/b", "secret.md", "a\x00", "link", "folder", "pipe"} {
		if got, err := l.Body(name); err == nil || got != "" || !strings.HasPrefix(err.Error(), "skill ") {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

func triggered(name string, priority int, triggers ...string) Skill {
	return newSkill(name, name+".md", head{priority: priority, turns: 4, triggers: triggers})
}

func TestMatch(t *testing.T) {
	tests := []struct {
		trigger, text string
		want          bool
	}{
		{"deploy", "Please DEPLOY it.", true}, {"Deploy", "deploy", true}, {"deploy", "redeploy", false}, {"deploy", "deployment", false},
		{"deploy", "pre-deploy_step", true}, {"docker compose", "use docker\n  compose now", true}, {"a", "aa a", true},
		{"a a", "xa a a", true}, {"straße", "die STRAßE", true}, {"größe", "GRÖSSE", true}, {"café", "cafés", false},
		{"σίσυφος", "Ο ΣΊΣΥΦΟΣ", true}, {"привет", "приветствие", false}, {"kelvin", "\u212aelvin", true}, {"部署", "请帮我部署应用", true},
		{"docker", "用docker部署", true}, {"docker", "用dockerfile部署", false}, {"สวัสดี", "ครับสวัสดีครับ", true},
		{"c++", "c++17 and C++", true}, {".go", "main.go", true}, {"🚀", "go🚀go", true}, {"deploy", "", false},
	}
	for _, tt := range tests {
		expect.Equal(t, len(Match([]Skill{triggered("a", 5, "not this one", tt.trigger)}, tt.text, 3)) == 1, tt.want, "%q in %q", tt.trigger, tt.text)
	}
}

func TestMatchRanks(t *testing.T) {
	skills := []Skill{triggered("d", 5, "x"), triggered("a", 9, "x", "y"), triggered("c", 1, "z"), triggered("b", 5, "y"), triggered("e", 1), triggered("f", 1, "y")}
	names := func(most int) (names string) {
		for _, s := range Match(skills, "x and y", most) {
			names += s.Name
		}
		return names
	}
	for most, want := range map[int]string{0: "", 1: "f", 3: "fbd", 4: "fbda", 99: "fbda"} {
		expect.Equal(t, names(most), want, most)
	}
	slices.Reverse(skills)
	expect.Equal(t, names(99), "fbda", "the order of the skills shows")
}

// Phrases are found by the rules of triggers.
func TestFinder(t *testing.T) {
	occurs := Finder([]string{"make a plan", "Let's plan", "计划"})
	for text, want := range map[string]bool{
		"Let's  PLAN it": true, "let's plan, make a plan": true, "outlet's plan": false, "let's plans": false, "我的计划书": true, "": false,
	} {
		expect.Equal(t, occurs(text), want, text)
	}
	expect.False(t, Finder(nil)("anything"), "no phrases, and one was said")
}
