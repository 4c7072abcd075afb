package prompt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/skill"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// TestConfiguredSkills: skills that the configuration names are in every prompt, before all others; one
// that is too long is a hint, and one of a single person is not meant.
func TestConfiguredSkills(t *testing.T) {
	w := newWorld(t, Stable)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.skillFile(name, "alpha", 0, "Text of "+name)
	}
	w.skillFile("rules", "never", 1, "Be brief.")
	w.skillFile("long", "never", 1, strings.Repeat("Long. ", 4000))
	w.skillFile(skill.Folder(trust.PersonReaders(testUser))+"/mine", "never", 1, "CANARY")
	w.skills = skill.Open(filepath.Join(w.dir, "skills"), nil, "rules", "long", "mine", "none")
	w.assembler.cfg.Sources.Skills = w.skills
	w.says("hello")
	w.expectInUse("rules", "long")
	w.says("alpha")
	w.expectInUse("rules a b c", "long d")
	p := w.send()
	expect.Has(t, p.Tail, "## rules\n# rules\nBe brief.")
	expect.Lacks(t, p.Prefix+p.Tail, "CANARY", "Long. Long.")
	expect.Len(t, w.skills.Problems(), 2, "mine and none")
}

// TestSkillsFromOutside: until an owner has read one, the prompt has its name and none of its words. Its name is
// no foreign text.
func TestSkillsFromOutside(t *testing.T) {
	w := newWorld(t, Stable)
	source := filepath.Join(t.TempDir(), "tea")
	expect.OK(t, os.MkdirAll(source, 0o700))
	expect.OK(t, os.WriteFile(filepath.Join(source, "SKILL.md"), []byte("---\nname: tea\ndescription: CANARY\ntriggers: tea\n---\nCANARY\n"), 0o600))
	w.skills = skill.Open(filepath.Join(w.dir, "skills"), nil, "tea")
	w.assembler.cfg.Sources.Skills = w.skills
	_, _, err := w.skills.Import(source, trust.Everybody)
	expect.OK(t, err)
	w.says("tea please")
	p := w.send()
	expect.Has(t, p.Prefix, "- data/skills/tea/SKILL.md — from outside; no owner has read it yet")
	expect.Lacks(t, p.Prefix+p.Tail, "CANARY")
	for _, s := range p.Report.Sections {
		expect.False(t, s.ID == "skills" && s.Integrity != trust.Owner, "a name makes the list %v", s.Integrity)
	}
	_, trusted, err := w.skills.Review("tea")
	expect.OK(t, err)
	expect.OK(t, trusted())
	w.says("tea again")
	p = w.send()
	expect.Has(t, p.Prefix, "SKILL.md — CANARY")
	expect.Has(t, p.Tail, "## tea (its files are in data/skills/tea)\nCANARY")
}
