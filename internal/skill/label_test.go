package skill

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

var (
	bob   = trust.Place{Room: "!bob", Person: "@bob:x", Private: true}
	annIn = trust.Place{Room: "!Room", Person: "@ann:x"}
	bobIn = trust.Place{Room: "!Room", Person: "@bob:x"}
)

const roomFolder = "rooms/!=52oom"

func mustAdd(t testing.TB, l *Library, at trust.Place, name, text string) Skill {
	t.Helper()
	s, _, err := l.Add(at, trust.User, name, "About "+name, text)
	expect.OK(t, err)
	return s
}

// visible lists the IDs of the skills readable at a place.
func visible(t testing.TB, l *Library, at trust.Place) string {
	t.Helper()
	all := expect.Must(l.List(at))(t)
	var ids []string
	for _, s := range all {
		if !at.MayRead(s.Label.Readers) {
			t.Errorf("%s is for %q", s.ID(), s.Label.Readers)
		}
		ids = append(ids, s.ID())
	}
	return strings.Join(ids, " ")
}

// TestReaders: the folder determines the readers, in exactly one spelling.
func TestReaders(t *testing.T) {
	for rel, want := range map[string]trust.Readers{
		"": trust.Everybody, "a.md": trust.Everybody, "a/SKILL.md": trust.Everybody, "users.md": trust.Everybody,
		"users": trust.Nobody, "rooms": trust.Nobody, "Users/@ann=3ax/a.md": trust.Nobody, "u\u017fers/@ann=3ax": trust.Nobody, "users/@ann:x/a.md": trust.Nobody,
		"users/@ann=3AX": trust.Nobody, "users/": trust.Nobody, "users/SKILL.md": trust.Nobody,
		annFolder: ann.Readers(), annFolder + "/a/SKILL.md": ann.Readers(), roomFolder + "/a.md": annIn.Readers(),
	} {
		expect.Equal(t, Readers(rel), want, rel)
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.OneOf(rapid.String(), rapid.StringMatching(`[@!][A-Za-z0-9._=/+-]{1,100}:[a-z.]{1,60}`)).Draw(t, "id")
		for _, r := range []trust.Readers{trust.PersonReaders(id), trust.RoomReaders(id)} {
			if folder := Folder(r); folder != "" && Readers(folder+"/a.md") != r {
				t.Fatalf("%q lies in %q, which is for %q", r, folder, Readers(folder))
			}
		}
	})
	for _, r := range []trust.Readers{trust.Nobody, trust.Everybody, trust.PersonReaders(""), trust.RoomReaders(""), trust.RoomReaders("!" + strings.Repeat("A", 200))} {
		expect.Equal(t, Folder(r), "", r)
	}
}

// TestListReadable: a person's skills are listed in their direct chats, a room's in the room.
func TestListReadable(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, nil)
	put(t, dir, "shared.md", "Shared")
	visible(t, l, ann)
	mustAdd(t, l, ann, "notes", "Her PIN.")
	mustAdd(t, l, bob, "notes", "His PIN.")
	mustAdd(t, l, annIn, "minutes", "Who writes them.")
	for at, want := range map[trust.Place]string{
		ann: annFolder + "/notes shared", bob: "users/@bob=3ax/notes shared", annIn: roomFolder + "/minutes shared", bobIn: roomFolder + "/minutes shared",
		{Room: "!other", Person: "@ann:x"}: "shared", {Room: "!ann2", Person: "@ann:x", Private: true}: annFolder + "/notes shared", {}: "shared", {Private: true}: "shared",
	} {
		expect.Equal(t, visible(t, l, at), want, at)
	}
	expect.OK(t, os.RemoveAll(filepath.Join(dir, "users")))
	expect.Equal(t, visible(t, l, ann), "shared", "removed by hand")
	put(t, dir, annFolder+"/a.md", "By hand")
	put(t, dir, "users/@Carl:x/a.md", "In no folder of a person")
	put(t, dir, "users/SKILL.md", "Nobody's")
	expect.Equal(t, visible(t, l, ann), annFolder+"/a shared", "put there by hand")
	if p := l.Problems(); len(p) != 2 || !strings.Contains(p[0].Text, "Matrix id") {
		t.Errorf("%+v", p)
	}
}

// TestLabel: labels written by the program are read; broken ones make the skill foreign.
func TestLabel(t *testing.T) {
	for name, tt := range map[string]struct {
		file      string
		integrity trust.Integrity
		owner     string
	}{
		"by hand": {"How to\n\ntext\n", trust.Owner, ""}, "by hand, front matter": {"---\ntriggers: a\n---\nHow to\n", trust.Owner, ""},
		"by hand, faulty":          {"---\ndescription: a: b\n---\nHow to\n", trust.Owner, ""},
		"by hand, about integrity": {"How to\n\nintegrity: of the files\n", trust.Owner, ""},
		"by the model":             {annKeys + "How to\n", trust.User, "@ann:x"}, "foreign": {"---\nintegrity: foreign\n---\nHow to\n", trust.Foreign, ""},
		"keys deleted by hand":        {"---\ntriggers: a\n---\nHow to\n", trust.Owner, ""},
		"no integrity":                {"---\nwritten_by: \"@ann:x\"\n---\nHow to\n", trust.Foreign, ""},
		"unknown":                     {"---\nintegrity: root\nwritten_by: \"@ann:x\"\n---\nHow to\n", trust.Foreign, ""},
		"twice":                       {"---\nintegrity: user\n\"integrity\": owner\n---\nHow to\n", trust.Foreign, ""},
		"owner twice":                 {"---\nintegrity: user\nwritten_by: a\nwritten_by: b\n---\nHow to\n", trust.Foreign, ""},
		"a list":                      {"---\nintegrity: [owner]\n---\nHow to\n", trust.Foreign, ""},
		"an alias":                    {"---\na: &a owner\nintegrity: *a\n---\nHow to\n", trust.Foreign, ""},
		"empty":                       {"---\nintegrity:\n---\nHow to\n", trust.Foreign, ""},
		"unreadable":                  {"---\nintegrity: user\na: b: c\n---\nHow to\n", trust.Foreign, ""},
		"no end":                      {"---\nintegrity: user\nHow to\n", trust.Foreign, ""},
		"no beginning":                {"integrity: user\nwritten_by: \"@ann:x\"\n---\nHow to\n", trust.Foreign, ""},
		"after other text":            {"x\n---\nintegrity: user\n---\nHow to\n", trust.Foreign, ""},
		"the text has front matter":   {annKeys + "\n---\nintegrity: owner\ntriggers: a\n---\nHow to\n", trust.User, "@ann:x"},
		"the text has a longer fence": {annKeys + "----\nintegrity: owner\n---\n", trust.User, "@ann:x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, annFolder+"/a.md", tt.file)
			all, err := Open(dir, nil).All()
			if err != nil || len(all) != 1 || all[0].Label != (trust.Label{Integrity: tt.integrity, Readers: ann.Readers()}) || all[0].Owner != tt.owner {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}

// TestAddNeverReplacesOthers: no spelling of a name replaces the skill of others.
func TestAddNeverReplacesOthers(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, nil)
	put(t, dir, "deploy.md", "---\ntriggers: deploy\n---\nDeploy\n")
	put(t, dir, "cook/SKILL.md", "Cook\n")
	put(t, dir, annFolder+"/by-hand.md", "For Ann\n")
	mustAdd(t, l, annIn, "minutes", "As she likes it.")
	mustAdd(t, l, ann, "tea", "Boil.")
	before := read(t, dir, roomFolder+"/minutes.md")
	for _, tt := range []struct {
		at   trust.Place
		name string
	}{{ann, "deploy"}, {ann, "Deploy"}, {bobIn, "deploy"}, {bob, "cook"}, {ann, "by-hand"}, {bobIn, "minutes"}, {ann, "Tea"}} {
		if _, _, err := l.Add(tt.at, trust.Owner, tt.name, "s", "d"); err == nil || !strings.Contains(err.Error(), "choose another name") {
			t.Errorf("%s at %+v: %v", tt.name, tt.at, err)
		}
	}
	if read(t, dir, "deploy.md")+read(t, dir, "cook/SKILL.md")+read(t, dir, roomFolder+"/minutes.md") != "---\ntriggers: deploy\n---\nDeploy\nCook\n"+before {
		t.Error("one was replaced")
	}
	if s := mustAdd(t, l, bob, "minutes", "Of what he cannot see there may be one of the name."); s.Path != "data/skills/users/@bob=3ax/minutes.md" || s.triggers != "" {
		t.Errorf("%+v", s)
	}
	put(t, dir, "tea.md", "Tea for everybody, written later by hand\n")
	if _, replaced, err := l.Add(ann, trust.Guest, "tea", "s", "Hers stays hers."); err != nil || !replaced || strings.Contains(read(t, dir, "tea.md"), "hers") {
		t.Errorf("%v, %v", replaced, err)
	}
	for _, at := range []trust.Place{{}, {Private: true}, {Person: "@ann:x"}, {Room: "!r"}, {Person: "@" + strings.Repeat("A", 200), Private: true}} {
		if _, _, err := l.Add(at, trust.Owner, "x", "s", "d"); err == nil {
			t.Errorf("%+v has skills", at)
		}
	}
}

// TestMaxPerFolder: the limit counts only the skills of one person or room.
func TestMaxPerFolder(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, nil)
	for i := range MaxPerFolder {
		put(t, dir, fmt.Sprintf("shared-%d.md", i), "Shared")
		put(t, dir, fmt.Sprintf("%s/n%d.md", annFolder, i), annKeys+"Hers\n")
	}
	if _, _, err := l.Add(ann, trust.User, "one-more", "s", "d"); err == nil || !strings.Contains(err.Error(), "30 skills") {
		t.Errorf("%v", err)
	}
	if _, replaced, err := l.Add(ann, trust.User, "n3", "s", "d"); err != nil || !replaced {
		t.Errorf("%v, %v", replaced, err)
	}
	mustAdd(t, l, bob, "one-more", "d")
	mustAdd(t, l, annIn, "one-more", "d")
}

// TestShare: a shared skill is readable by everyone, with the integrity of an owner.
func TestShare(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, nil)
	put(t, dir, "taken.md", "Everybody's\n")
	put(t, dir, "Folder/x.txt", "x")
	put(t, dir, annFolder+"/kit/SKILL.md", annKeys+"Kit\n")
	put(t, dir, annFolder+"/kit/more.txt", "more")
	put(t, dir, annFolder+"/broken.md", "---\nintegrity: [\nwritten_by: x\n---\nBroken\n")
	put(t, dir, annFolder+"/taken.md", annKeys+"Hers\n")
	put(t, dir, annFolder+"/folder.md", annKeys+"Hers\n")
	mustAdd(t, l, ann, "tea", "Boil.\n\n---\nwritten_by: x\n---")
	for name, want := range map[string]error{"none": ErrUnknown, "../x": ErrUnknown, "taken": ErrTaken, "folder": ErrTaken} {
		if _, err := l.Share(ann, name); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := l.Share(bob, "tea"); !errors.Is(err, ErrUnknown) {
		t.Errorf("of others: %v", err)
	}
	if _, err := l.Share(bob, "taken"); !errors.Is(err, ErrShared) {
		t.Errorf("everybody's: %v", err)
	}
	for _, name := range []string{"tea", "kit", "broken"} {
		s, err := l.Share(ann, name)
		expect.False(t, err != nil || s.Label != (trust.Label{Integrity: trust.Owner, Readers: trust.Everybody}), "%s: %+v, %v", name, s, err)
		all, err := l.List(bob)
		if i := indexOf(all, name); err != nil || i < 0 || all[i] != s {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	expect.Equal(t, read(t, dir, "tea.md"), "---\nintegrity: owner\nwritten_by: \"@ann:x\"\n---\nAbout tea\n\nBoil.\n\n---\nwritten_by: x\n---\n", "it")
	if read(t, dir, "kit/more.txt") != "more" || !strings.Contains(read(t, dir, annFolder+"/.tea.md.1"), "integrity: user") {
		t.Error("not all of it moved, or no earlier version")
	}
}

func indexOf(all []Skill, name string) int {
	for i, s := range all {
		if s.Name == name && s.Label.Readers == trust.Everybody {
			return i
		}
	}
	return -1
}

// TestMove: a room's skills move with their earlier versions and replace nothing.
func TestMove(t *testing.T) {
	dir := t.TempDir()
	l := Open(dir, nil)
	next := trust.Place{Room: "!next", Person: "@ann:x"}
	for _, text := range []string{"one", "two"} {
		mustAdd(t, l, annIn, "minutes", text)
	}
	mustAdd(t, l, annIn, "both", "old")
	mustAdd(t, l, next, "both", "new")
	put(t, dir, roomFolder+"/kit/SKILL.md", "Kit\n")
	mustAdd(t, l, ann, "hers", "stays")
	for range 2 {
		expect.OK(t, l.Move("!Room", "!next"))
	}
	expect.Equal(t, visible(t, l, next), "rooms/!next/both rooms/!next/kit rooms/!next/minutes", "it")
	if got := visible(t, l, annIn); got != roomFolder+"/both" || visible(t, l, ann) != annFolder+"/hers" {
		t.Errorf("left: %s", got)
	}
	if !strings.Contains(read(t, dir, "rooms/!next/.minutes.md.1"), "one") || !strings.Contains(read(t, dir, "rooms/!next/both.md"), "new") {
		t.Error("no earlier version, or another's was replaced")
	}
	for _, pair := range [][2]string{{"!none", "!next"}, {"", "!next"}, {"!next", ""}, {"!next", "!next"}} {
		if err := l.Move(pair[0], pair[1]); err != nil {
			t.Errorf("%q: %v", pair, err)
		}
	}
	expect.Has(t, visible(t, l, next), "kit")
}
