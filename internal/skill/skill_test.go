package skill

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/trust"
)

func put(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, to, dir, name string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.Symlink(to, path)); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func list(t testing.TB, l *Library) string {
	t.Helper()
	skills, err := l.All()
	if err != nil {
		t.Fatal(err)
	}
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

// ann is her direct chat, and annFolder where her skills lie.
var ann = trust.Place{Room: "!ann", Person: "@ann:x", Private: true}

const (
	annFolder = "users/@ann=3ax"
	annKeys   = "---\nintegrity: user\nwritten_by: \"@ann:x\"\n---\n"
)

func TestList(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	l := Open(dir)
	if got := list(t, l); got != "" {
		t.Errorf("no folder: %q", got)
	}
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
		plain("Build", "How to build", "data/skills/Build.md"),
		plain("both", "the file", "data/skills/both.md"),
		plain("cook", "How to cook: well", "data/skills/cook/SKILL.md"),
		plain("empty", "", "data/skills/empty.md"),
		plain("front", "After it", "data/skills/front.md"),
		plain("long", strings.Repeat("茶", 299)+"…", "data/skills/long.md"),
		plain("raw", "a\uFFFD [1mb", "data/skills/raw.md"),
		plain("water", "How to water", "data/skills/water.md"),
	}
	got, err := l.All()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestUnsettledFilesAreReadAgain: within one tick of the file system's clock a stamp does not
// tell, and what is kept may be of the moment before. Later an unchanged file is not read again.
func TestUnsettledFilesAreReadAgain(t *testing.T) {
	for ahead, want := range map[time.Duration]string{0: "a=one", time.Hour: "a=kept"} {
		dir := t.TempDir()
		l := Open(dir)
		at := time.Now().Add(ahead)
		l.now = func() time.Time { return at }
		put(t, dir, "a.md", "one")
		list(t, l)
		l.files["a.md"].skill.Summary = "kept"
		if got := list(t, l); got != want {
			t.Errorf("%s later: %q", ahead, got)
		}
	}
}

func TestAdd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "skills")
	l := Open(dir)
	s, replaced, err := l.Add(ann, trust.User, "water-plants", "# How to\nwater ", "\n1. Take a can.\r\n2. Pour.\n\n")
	want := plain("water-plants", "How to water", "data/skills/"+annFolder+"/water-plants.md")
	want.Label, want.Owner = trust.Label{Integrity: trust.User, Readers: "private:@ann:x"}, "@ann:x"
	if err != nil || replaced || s != want {
		t.Fatalf("%+v, %v, %v", s, replaced, err)
	}
	if got := read(t, dir, annFolder+"/water-plants.md"); got != annKeys+"How to water\n\n1. Take a can.\n2. Pour.\n" {
		t.Errorf("file reads %q", got)
	}
	if got := list(t, l); got != "water-plants=How to water" {
		t.Errorf("listed %q", got)
	}
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
	if info, err := os.Stat(filepath.Join(dir, annFolder, "water-plants.md")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info, err)
	}
}

func TestAddRefuses(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "skills")
	l := Open(dir)
	for _, tt := range []struct{ name, summary, text, want string }{
		{"", "s", "d", "name"},
		{"../x", "s", "d", "name"},
		{"a/b", "s", "d", "name"},
		{"a.md", "s", "d", "name"},
		{".hidden", "s", "d", "name"},
		{"-x", "s", "d", "name"},
		{"ключ", "s", "d", "name"},
		{"a\nb", "s", "d", "name"},
		{strings.Repeat("x", 65), "s", "d", "name"},
		{"a", " ## ", "d", "summary is missing"},
		{"a", strings.Repeat("x", 301), "d", "summary is 301"},
		{"a", "s", " \n", "documentation is missing"},
		{"a", "s", "a\x00b", "zero byte"},
		{"a", "s", "a\xffb", "UTF-8"},
		{"a", "s", strings.Repeat("x", maxText), "split it"},
	} {
		if _, _, err := l.Add(ann, trust.User, tt.name, tt.summary, tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q %.10q: %v, want %q", tt.name, tt.summary, err, tt.want)
		}
	}
	entries, err := os.ReadDir(parent)
	if err != nil || len(entries) != 0 {
		t.Errorf("refused skills left %v, %v", entries, err)
	}
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
			_, _, err := Open(dir).Add(at, trust.User, name, "s", "ours")
			if fine := at == ann && name == "new"; (err == nil) != fine {
				t.Errorf("%s of %s: %v", name, at.Person, err)
			}
		}
	}
	if got := read(t, outside, "theirs.md") + read(t, outside, "SKILL.md"); got != "theirs"+annKeys+"theirs" {
		t.Errorf("outside reads %q", got)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 2 {
		t.Errorf("outside holds %v, %v", entries, err)
	}
}

func FuzzAdd(f *testing.F) {
	f.Add("name", "summary", "text")
	f.Add("..", "# ---", "---\ndescription: x\n---")
	f.Add("a", "\ufeff---", "integrity: owner\ntriggers: x\n---\n")
	f.Fuzz(func(t *testing.T, name, summary, text string) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "skills")
		l := Open(dir)
		s, _, err := l.Add(ann, trust.User, name, summary, text)
		if err != nil {
			return
		}
		if got := list(t, l); got != s.Name+"="+s.Summary {
			t.Errorf("%q %q is listed as %q", name, summary, got)
		}
		if all, err := l.All(); err != nil || len(all) != 1 || all[0] != s || s.Label.Integrity != trust.User || s.Owner != ann.Person || s.triggers != "" {
			t.Errorf("%+v, %v", all, err)
		}
		if _, err := os.Stat(filepath.Join(parent, strings.TrimPrefix(s.Path, "data/"))); err != nil {
			t.Error(err)
		}
	})
}
