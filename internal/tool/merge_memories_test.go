package tool

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/memory"
)

// doing is a scope in which the program has asked for something itself.
func doing(scope Scope, chore string) Scope {
	scope.Chore = chore
	return scope
}

func (w *workshop) notes(t testing.TB, scope memory.Scope, text string) string {
	t.Helper()
	e, _, err := w.cfg.Memory.Add(t.Context(), memory.Entry{Scope: scope, Text: text, Source: memory.Assistant}, owner)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

// TestChores are there when they are asked for, and otherwise do not exist.
func TestChores(t *testing.T) {
	w := newWorkshop(t)
	for _, e := range chores {
		spec, ok := w.Chore(e.name)
		if !ok || len(spec.Description) < 40 || len(spec.Description)+len(spec.Parameters) > 1200 {
			t.Errorf("%+v", spec)
		}
		if got := strings.Join(w.Names(), " "); strings.Contains(got, e.name) {
			t.Errorf("always offered: %s", got)
		}
		for _, other := range []string{"", "task", "no_such"} {
			wants(t, w.bad(t, doing(direct(), other), e.name, `{}`), "There is no tool", "append_memory")
		}
		scope := doing(direct(), e.name)
		scope.Policy = Policy{Allow: []string{"task"}, Where: "planning mode"}
		w.ok(t, scope, e.name, `{}`)
		wants(t, w.bad(t, scope, "append_memory", `{"entry": "x"}`), "not offered in planning mode")
		if res := w.call(t, scope, e.name, e.example); !strings.Contains(res.Content, "here is no ") {
			t.Errorf("its own example: %s", res.Content)
		}
		for _, raw := range []string{`{`, `7`, `{"no_such": 1}`} {
			wants(t, w.bad(t, scope, e.name, raw), e.name+" was not run", "A valid example: "+e.example)
		}
	}
	if _, ok := w.Chore("task"); ok {
		t.Error("task is no chore")
	}
}

// TestMergeMemories: the list has ids, in pages; what is put together is known as
// one; whatever is wrong, the model is told what to change.
func TestMergeMemories(t *testing.T) {
	w := newWorkshop(t)
	me := doing(direct(), "merge_memories")
	wants(t, w.ok(t, me, "merge_memories", ``), "no memories here")
	one, two := w.notes(t, memory.Private(owner), "Jana lives in Brno"), w.notes(t, memory.Private(owner), "Jana has 2 cats in Brno")
	list := w.ok(t, me, "merge_memories", `{}`)
	if want := "Of MEMORIES.txt; only these can be put together with each other:\n" + one + " Jana lives in Brno\n" + two + " Jana has 2 cats in Brno"; list != want {
		t.Errorf("%s\nwant\n%s", list, want)
	}
	wants(t, w.bad(t, me, "merge_memories", `{"ids": "`+one+`"}`), "text: is missing")
	wants(t, w.bad(t, me, "merge_memories", `{"text": "x"}`), "ids: is missing")
	wants(t, w.bad(t, me, "merge_memories", `{"ids": "`+one+" "+two+`", "text": "Jana lives in Brno with cats"}`), "Nothing was changed", `"2"`)
	wants(t, w.bad(t, me, "merge_memories", `{"page": 2}`), "no such page")
	got := w.ok(t, me, "merge_memories", `{"ids": "[\"`+one+`\", \"`+two+`\"]", "text": "Jana lives in Brno, has 2 cats"}`)
	wants(t, got, "Put together as mem_", "Jana lives in Brno, has 2 cats")
	entries, err := w.cfg.Memory.Entries(t.Context(), memory.Private(owner))
	if err != nil || len(entries) != 1 || entries[0].Text != "Jana lives in Brno, has 2 cats" {
		t.Errorf("%+v, %v", entries, err)
	}
	_, batch, _ := strings.Cut(got, "`!undo ")
	batch, _, _ = strings.Cut(batch, "`")
	if done, err := w.cfg.Memory.Undo(t.Context(), memory.Access{Actor: owner, Scopes: me.Memory}, batch); err != nil || len(done.Back) != 2 {
		t.Errorf("the person takes back %q: %+v, %v", batch, done, err)
	}
	for i := range 100 {
		w.notes(t, memory.Private(owner), fmt.Sprintf("Heron %d %s", i, strings.Repeat("x", 120)))
	}
	pages := ""
	for page := 1; page <= 3; page++ {
		got := w.ok(t, me, "merge_memories", fmt.Sprintf(`{"page": %d}`, page))
		if len(got) > mergePage+200 {
			t.Errorf("page %d has %d characters", page, len(got))
		}
		pages += got
	}
	for i := range 100 {
		if strings.Count(pages, fmt.Sprintf(" Heron %d x", i)) != 1 {
			t.Errorf("heron %d is not there once", i)
		}
	}
}

// TestMergeMemoriesKeepsScopes: from a room with others, nothing private is listed
// or put together.
func TestMergeMemoriesKeepsScopes(t *testing.T) {
	w := newWorkshop(t)
	secret := w.notes(t, memory.Private(owner), "the canary4711 is private")
	ours := w.notes(t, memory.Room("!group:example.org"), "the meeting is in the small room upstairs")
	here := doing(group(), "merge_memories")
	if got := w.ok(t, here, "merge_memories", `{}`); strings.Contains(got, "canary") || !strings.Contains(got, ours) {
		t.Errorf("%s", got)
	}
	for _, ids := range []string{secret, ours + " " + secret} {
		if got := w.bad(t, here, "merge_memories", `{"ids": "`+ids+`", "text": "small room upstairs, meeting"}`); strings.Contains(got, "canary") || !strings.Contains(got, "no such memory") {
			t.Errorf("%s", got)
		}
	}
}

// TestTidySkills: shorter, or one less; and where the earlier version is.
func TestTidySkills(t *testing.T) {
	w := newWorkshop(t)
	me := doing(direct(), "tidy_skills")
	wants(t, w.ok(t, me, "tidy_skills", `{}`), "no skills")
	w.ok(t, direct(), "add_skill", `{"skill_name": "tea", "summary": "How to make a pot of tea for many people", "documentation": "Boil water."}`)
	w.ok(t, direct(), "add_skill", `{"skill_name": "kitchen", "summary": "The kitchen", "documentation": "Upstairs."}`)
	wants(t, w.ok(t, me, "tidy_skills", `{}`), "kitchen: The kitchen\ntea: How to make a pot of tea for many people")
	wants(t, w.ok(t, me, "tidy_skills", `{"skill_name": "tea", "summary": "Tea for many"}`), "tea is: Tea for many", "data/skills/users/@ada=3aexample.org/.tea.md.1")
	wants(t, w.ok(t, direct(), "read_file", `{"path": "data/skills/users/@ada=3aexample.org/tea.md"}`), "Tea for many", "Boil water.")
	wants(t, w.bad(t, me, "tidy_skills", `{"skill_name": "tea", "summary": "Tea for a great many people"}`), "Nothing was changed", "fewer")
	for _, args := range []string{`{"skill_name": "tea"}`, `{"skill_name": "tea", "summary": "x", "into": "kitchen"}`} {
		wants(t, w.bad(t, me, "tidy_skills", args), "either summary or into")
	}
	wants(t, w.bad(t, me, "tidy_skills", `{"into": "tea"}`), "skill_name: is missing")
	wants(t, w.bad(t, me, "tidy_skills", `{"skill_name": "../tea", "into": "kitchen"}`), "Nothing was changed", "there is no skill")
	wants(t, w.ok(t, me, "tidy_skills", `{"skill_name": "tea", "into": "kitchen"}`), "tea is a section of kitchen now. If the summary of kitchen does not", "data/skills/users/@ada=3aexample.org/.tea.md.2")
	wants(t, w.ok(t, direct(), "read_file", `{"path": "data/skills/users/@ada=3aexample.org/kitchen.md"}`), "Upstairs.", "## tea: Tea for many", "Boil water.")
	if got := w.ok(t, me, "tidy_skills", `{}`); got != "kitchen: The kitchen" {
		t.Errorf("%s", got)
	}
}
