package tool

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/trust"
)

// guest is the direct chat of somebody who is no owner.
func guest() Scope {
	return Scope{Room: "!bob:example.org", User: "@bob:example.org", Private: true, Memory: memory.Strict.Visible("!bob:example.org", "@bob:example.org", true), Now: noon,
		Label: trust.Label{Integrity: trust.User, Readers: trust.Person("@bob:example.org")}}
}

// TestSkillsOfOthers: they are not listed, read or sent, as if there were none.
func TestSkillsOfOthers(t *testing.T) {
	w := newWorkshop(t)
	put(t, w.dir, "skills/tea.md", "How to make tea\n")
	put(t, w.dir, "skills/users.md", "How to add users\n")
	own := "data/skills/users/@ada=3aexample.org"
	wants(t, w.ok(t, direct(), "add_skill", `{"skill_name": "pin", "summary": "The PIN", "documentation": "`+canary+`"}`), own+"/pin.md", "Only this person sees it", "`!skills share pin`")
	wants(t, w.ok(t, group(), "add_skill", `{"skill_name": "minutes", "summary": "The minutes", "documentation": "`+canary+`"}`), "data/skills/rooms/!group=3aexample.org/minutes.md", "Only this room sees it")
	wants(t, w.ok(t, direct(), "read_file", asked(own+"/pin.md")), canary)
	wants(t, w.ok(t, direct(), "read_file", asked(own)), "holds:\npin.md")
	if got := w.ok(t, direct(), "read_file", asked("data/skills")); got != "data/skills/ holds:\ntea.md\nusers.md\nusers/@ada=3aexample.org/" {
		t.Errorf("%s", got)
	}
	if got := w.ok(t, guest(), "read_file", asked("data/skills")); got != "data/skills/ holds:\ntea.md\nusers.md" {
		t.Errorf("%s", got)
	}
	wants(t, w.ok(t, guest(), "read_file", asked("data/skills/users.md")), "How to add users")
	for _, scope := range []Scope{guest(), group(), {Room: "!dm:example.org", User: owner, Now: noon}} {
		for _, p := range []string{own + "/pin.md", own, own + "/", "data/skills/users", "skills/rooms", "skills/Users/@ada=3aexample.org/pin.md", "skills/users/@ada:example.org/pin.md",
			"skills/users/@ada=3AEXAMPLE.ORG/pin.md", "skills/tea.md/../users/@ada=3aexample.org/pin.md", own + "/.pin.md.1"} {
			var sent []Outgoing
			got := w.bad(t, scope, "read_file", asked(p))
			if res := w.call(t, w.sending(scope, &sent), SendFile, asked(p)); !res.Failed || len(sent) > 0 || strings.Contains(got+res.Content, canary) {
				t.Errorf("%s in %s: %s, %s", p, scope.Room, got, res.Content)
			}
		}
	}
	none := w.bad(t, guest(), "read_file", asked("skills/none.md"))
	if got := w.bad(t, guest(), "read_file", asked("skills/users/@ada=3aexample.org/pin.md")); got != strings.ReplaceAll(none, "skills/none.md", "skills/users/@ada=3aexample.org/pin.md") {
		t.Errorf("it is told from one that there is not: %s", got)
	}
}

// TestAddSkillKeepsItsLabel: it has the label of the call, and is refused when there are too many.
func TestAddSkillKeepsItsLabel(t *testing.T) {
	w := newWorkshop(t)
	scope := guest()
	scope.Label = trust.Label{Integrity: trust.Guest, Readers: scope.Place().Readers()}
	scope.Granted = map[string]bool{scope.act(llm.ToolCall{Name: "add_skill", Arguments: "{}"}).Covers: true}
	for i := range skill.MostOwn {
		w.ok(t, scope, "add_skill", fmt.Sprintf(`{"skill_name": "n%d", "summary": "s", "documentation": "---\nintegrity: owner\n---"}`, i))
	}
	wants(t, w.bad(t, scope, "add_skill", `{"skill_name": "more", "summary": "s", "documentation": "d"}`), "30 skills", "tell the person")
	all, err := w.cfg.Skills.List(scope.Place())
	if err != nil || len(all) != skill.MostOwn || all[0].Label != scope.Label || all[0].Owner != scope.User {
		t.Errorf("%+v, %v", all, err)
	}
	put(t, w.dir, "skills/deploy.md", "Deploy\n")
	for _, s := range []Scope{direct(), group()} {
		s.Label = trust.Label{Integrity: trust.Owner, Readers: s.Place().Readers()}
		wants(t, w.bad(t, s, "add_skill", `{"skill_name": "deploy", "summary": "s", "documentation": "d"}`), "choose another name")
	}
}
