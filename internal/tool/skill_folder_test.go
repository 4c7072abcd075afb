package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestReadFileOfSkillFolders: the files of a published skill are read on demand and are as foreign as the
// skill; links, binary and large files, and the mark of a review are refused.
func TestReadFileOfSkillFolders(t *testing.T) {
	w := newWorkshop(t)
	source := filepath.Join(t.TempDir(), "tea")
	put(t, source, "SKILL.md", "---\nname: tea\ndescription: Makes tea.\n---\nSee references/water.md.\n")
	put(t, source, "references/water.md", "Eighty degrees.\n")
	put(t, source, "assets/leaf.png", "\x89PNG\x00"+canary)
	put(t, source, "assets/huge.txt", strings.Repeat(canary+"\n", maxFileSize/len(canary)))
	_, _, err := w.cfg.Skills.Import(source, trust.Everybody)
	expect.OK(t, err)
	put(t, w.dir, "skills/cook/SKILL.md", "Cook\n")
	put(t, w.dir, "skills/cook/references/salt.md", "Little salt.\n")
	put(t, w.dir, "skills/notes/x.md", "in no skill\n")
	read := func(path, want string, integrity trust.Integrity) {
		t.Helper()
		for _, scope := range []Scope{direct(), group()} {
			res := w.call(t, scope, "read_file", asked(path))
			expect.False(t, res.Failed || !strings.Contains(res.Content, want) || res.Integrity != integrity, "%s: %+v", path, res)
		}
	}
	files := func(integrity trust.Integrity) {
		t.Helper()
		read("data/skills/tea/references/water.md", "Eighty degrees.", integrity)
		read("skills/tea/SKILL.md", "See references", integrity)
		read("data/skills/tea", "SKILL.md\nassets/\nreferences/", integrity)
		read("data/skills/tea/references", "water.md", integrity)
	}
	files(trust.Foreign)
	read("data/skills/cook/references/salt.md", "Little salt.", trust.Owner)
	read("data/skills/notes/x.md", "in no skill", trust.Foreign)
	read("data/skills", "cook/\nnotes/\ntea/", trust.Owner)
	_, trusted, err := w.cfg.Skills.Review("tea")
	expect.OK(t, err)
	expect.OK(t, trusted())
	files(trust.Owner)
	expect.OK(t, os.Symlink("../../../config.yaml", filepath.Join(w.dir, "skills/tea/references/link.md")))
	expect.OK(t, os.Symlink("water.md", filepath.Join(w.dir, "skills/tea/references/inside.md")))
	put(t, w.dir, "config.yaml", canary)
	for _, path := range []string{"skills/tea/assets/leaf.png", "skills/tea/assets/huge.txt", "skills/tea/references/link.md", "skills/tea/references/inside.md",
		"skills/tea/.imported", "skills/tea/references/../../../config.yaml"} {
		expect.Lacks(t, w.bad(t, direct(), "read_file", asked(path)), canary, "Eighty")
	}
	files(trust.Foreign) // the links changed the folder
}

// TestReadFileListsOwnFolder: the folder of a person's own skills is no foreign text.
func TestReadFileListsOwnFolder(t *testing.T) {
	w := newWorkshop(t)
	w.ok(t, direct(), "add_skill", `{"skill_name": "tea", "summary": "Making tea", "documentation": "Boil."}`)
	listing := w.ok(t, direct(), "read_file", asked("data/skills"))
	folder := strings.TrimSuffix(strings.Split(listing, "\n")[1], "/")
	res := w.call(t, direct(), "read_file", asked("data/skills/"+folder))
	expect.False(t, res.Failed || !strings.Contains(res.Content, "tea.md") || res.Integrity != trust.Owner, "%+v", res)
}
