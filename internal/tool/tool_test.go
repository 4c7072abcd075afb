package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"reverie/internal/goal"
	"reverie/internal/llm"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/store/storetest"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/tool/mcp/mcptest"
	"reverie/internal/tool/web"
	"reverie/internal/tool/workspace"
	"reverie/internal/trust"
)

const owner = "@ada:example.org"

// workshop is a set over real stores in a folder of its own.
type workshop struct {
	*Set
	dir     string
	log     strings.Builder
	folders []workspace.Bound
}

func newWorkshop(t testing.TB, folders ...workspace.Bound) *workshop {
	t.Helper()
	w := &workshop{dir: filepath.Join(t.TempDir(), "data"), folders: folders}
	db := expect.Must(storetest.Open(t, filepath.Join(w.dir, "bot.db")))(t)
	t.Cleanup(func() { expect.OK(t, db.Close()) })
	mem := expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: w.dir, Owner: owner}))(t)
	clock := func() time.Time { return noon }
	w.Set = New(Config{
		Memory: mem, Tasks: task.NewStore(db, task.Config{Now: clock}), Goals: goal.NewStore(db, clock), Skills: skill.Open(filepath.Join(w.dir, "skills"), nil),
		Models: []string{"small", "big"}, Dir: w.dir, Media: media.Open(w.dir, 0), Files: workspace.Open(workspace.Config{Dir: w.dir, DB: db, Quota: 1_000_000, Folders: w.folders}),
		Web: web.New(web.Config{Fetch: true, Engines: []web.Engine{{Kind: web.SearXNG, URL: "http://127.0.0.1:1"}}}),
		MCP: mcptest.Start(t, true).Connect(t, db), Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	return w
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// direct is the owner's own chat, group a room with others in it.
func direct() Scope {
	return Scope{Room: "!dm:example.org", User: owner, Private: true, Memory: memory.Strict.Visible("!dm:example.org", owner, true), Now: noon,
		Label: trust.Label{Integrity: trust.Owner, Readers: trust.PersonReaders(owner)}}
}

func group() Scope {
	return Scope{Room: "!group:example.org", User: owner, Memory: memory.Strict.Visible("!group:example.org", owner, false), Now: noon,
		Label: trust.Label{Integrity: trust.User, Readers: trust.RoomReaders("!group:example.org")}}
}

func (w *workshop) call(t testing.TB, scope Scope, name, arguments string) Result {
	t.Helper()
	return w.Run(t.Context(), scope, llm.ToolCall{ID: "1", Name: name, Arguments: arguments})
}

// ok runs a call that must succeed, and bad one that must be refused.
func (w *workshop) ok(t testing.TB, scope Scope, name, arguments string) string {
	t.Helper()
	res := w.call(t, scope, name, arguments)
	if res.Failed {
		t.Fatalf("%s %s: %s", name, arguments, res.Content)
	}
	return res.Content
}

func (w *workshop) bad(t testing.TB, scope Scope, name, arguments string) string {
	t.Helper()
	res := w.call(t, scope, name, arguments)
	if !res.Failed {
		t.Fatalf("%s %s was accepted: %s", name, arguments, res.Content)
	}
	return res.Content
}

// TestCatalog holds for every tool, present and future.
func TestCatalog(t *testing.T) {
	w := newWorkshop(t)
	again := newWorkshop(t)
	expect.False(t, !reflect.DeepEqual(w.Specs(), again.Specs()), "two sets describe the tools in different bytes")
	for i, spec := range w.Specs() {
		t.Run(spec.Name, func(t *testing.T) {
			e := catalog[i]
			expect.False(t, len(spec.Description) < 40 || strings.TrimSpace(spec.Description) != spec.Description, "description %q", spec.Description)
			var schema struct {
				Type                 string
				Properties           map[string]struct{ Type, Description string }
				Required             []string
				AdditionalProperties *bool
			}
			expect.OK(t, json.Unmarshal(spec.Parameters, &schema))
			expect.False(t, schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties, "schema %s", spec.Parameters)
			offered := slices.DeleteFunc(slices.Clone(e.fields), func(f field) bool {
				return e.name == "append_memory" && f.name == "source" // taken, but not offered
			})
			expect.False(t, len(schema.Properties) != len(offered), "%d properties for %d arguments", len(schema.Properties), len(offered))
			for _, f := range offered {
				p, ok := schema.Properties[f.name]
				kind := map[reflect.Kind]string{reflect.String: "string", reflect.Int: "integer", reflect.Pointer: "boolean", reflect.Slice: "array"}[f.kind]
				if f.object {
					kind = "object"
				}
				if !ok || p.Description == "" || p.Type != kind {
					t.Errorf("%s: property %+v", f.name, p)
				}
				expect.False(t, f.required != slices.Contains(schema.Required, f.name), "%s: required differs", f.name)
			}
			w.badArguments(t, e)
			scope := direct()
			scope.System, scope.Spawner = e.name == StaySilent, &spawned{}
			scope.Send = func(context.Context, Outgoing) error { return nil }
			scope.Set = func(context.Context, string, string) error { return nil }
			res := w.call(t, scope, e.name, e.example)
			expect.False(t, res.Failed && !strings.Contains(res.Content, "There is no file") && !strings.HasPrefix(e.name, "web_"), "its own example is refused: %s", res.Content)
		})
		if n := llm.EstimateTokens(spec.Name + spec.Description + string(spec.Parameters)); n > 700 { // the sums are in session's TestToolBudget
			t.Errorf("%s takes %d tokens of every prompt", spec.Name, n)
		}
		checkBrief(t, catalog[i])
	}
}

// checkBrief: the brief description is a part of the full one.
func checkBrief(t *testing.T, e entry) {
	t.Helper()
	var full, brief struct {
		Properties map[string]struct{ Description string }
		Required   []string
	}
	if json.Unmarshal(e.spec.Parameters, &full) != nil || json.Unmarshal(e.brief.Parameters, &brief) != nil || len(brief.Properties) == 0 && len(full.Properties) > 0 ||
		!slices.Equal(full.Required, brief.Required) || !strings.HasPrefix(e.spec.Description, e.brief.Description) {
		t.Errorf("%s in brief: %+v", e.name, e.brief)
	}
	for name, p := range brief.Properties {
		_, ok := full.Properties[name]
		expect.False(t, !ok || p.Description == "", "%s in brief: %s %+v", e.name, name, p)
	}
}

// badArguments: for each fault the answer names the argument and the remedy, and shows an example.
func (w *workshop) badArguments(t *testing.T, e entry) {
	for _, raw := range []string{`{`, `{"a": `, `[1]`, `7`, `"text"`, `true`, `{"x": 1} {"x": 2}`, `{'entry': 'x'}`, `<tool>`, `{"no_such": 1}`} {
		expect.Has(t, w.bad(t, direct(), e.name, raw), e.name+" was not run", "A valid example: "+e.example)
	}
	for _, f := range e.fields {
		wrong := []string{`[1]`, `{}`}
		switch {
		case f.object:
			wrong = []string{`[1]`, `1`, `true`, `"text"`, `"[]"`, `"{"`}
		case f.kind == reflect.String:
			wrong = append(wrong, `1`, `true`)
		case f.kind == reflect.Int:
			wrong = append(wrong, `1.5`, `"many"`, `true`, `-1`, `1e99`, `"1e99"`)
		case f.kind == reflect.Slice:
			wrong = append(wrong, `1`, `true`, `["a",{}]`, `"[1]"`)
		default:
			wrong = append(wrong, `1`, `"perhaps"`, `"t"`)
		}
		if f.kind != reflect.Slice {
			wrong = append(wrong, `[]`)
		}
		if f.enum != nil {
			wrong = append(wrong, `"no such"`)
		}
		for _, v := range wrong {
			expect.Has(t, w.bad(t, direct(), e.name, `{"`+f.name+`": `+v+`}`), "\n- "+f.name+": ", f.describeValid())
		}
		if f.required {
			for _, raw := range []string{``, `{}`, `null`, `{"` + f.name + `": null}`, `{"` + f.name + `": ""}`, `{"` + f.name + `": "  "}`} {
				expect.Has(t, w.bad(t, direct(), e.name, raw), "\n- "+f.name+": is missing")
			}
		}
	}
}

func TestUnknownTool(t *testing.T) {
	expect.Has(t, newWorkshop(t).bad(t, direct(), "execute_shell", `{}`), `no tool "execute_shell"`, "append_memory, search_memory, task, goal, stay_silent, ask_person, spawn_sub_session, add_skill, read_file")
}

func TestAppendMemory(t *testing.T) {
	w := newWorkshop(t)
	got := w.ok(t, direct(), "append_memory", `{"entry": "  My sister's   name is Jana.\n", "source": "user_explicit"}`)
	want := "Remembered, in this person's private memory:\nMy sister's name is Jana."
	expect.False(t, got != want, "got %q, want %q", got, want)
	// Whatever a model says of it: that a person asked is proven by !remember alone.
	all, err := w.cfg.Memory.WorkingSet(t.Context(), direct().Memory...)
	expect.False(t, err != nil || len(all) != 1 || all[0].Source != memory.Assistant, "got %+v, %v", all, err)
	if spec := w.Specs()[0]; spec.Name != "append_memory" || strings.Contains(string(spec.Parameters), `"source"`) {
		t.Errorf("%s offers a source: %s", spec.Name, spec.Parameters)
	}
	expect.Has(t, w.ok(t, direct(), "append_memory", `{"entry": "my sister's name is jana."}`), "known already", "\nMy sister's name is Jana.")
	expect.Has(t, w.ok(t, group(), "append_memory", `{"entry": "We meet on Mondays."}`), "this room's memory", "\nWe meet on Mondays.")

	file, err := os.ReadFile(filepath.Join(w.dir, "MEMORIES.txt"))
	expect.False(t, err != nil || strings.Count(string(file), "Jana") != 1 || strings.Contains(string(file), "Mondays"),
		"MEMORIES.txt (%v): %s", err, file)
	expect.Has(t, w.bad(t, direct(), "append_memory", `{"entry": "`+strings.Repeat("x", 2001)+`"}`), "append_memory failed", "shorten")
	nowhere := direct()
	nowhere.Memory = nil
	expect.Has(t, w.bad(t, nowhere, "append_memory", `{"entry": "x"}`), "Nothing can be remembered")
}

// TestForgottenIsNotNoted: the tool reports that the fact was forgotten, and tells the model not to
// insist.
func TestForgottenIsNotNoted(t *testing.T) {
	w := newWorkshop(t)
	w.ok(t, direct(), "append_memory", `{"entry": "Jana is my sister."}`)
	known := expect.Must(w.cfg.Memory.WorkingSet(t.Context(), direct().Memory...))(t)
	expect.Must(w.cfg.Memory.Forget(t.Context(), memory.Access{All: true}, known[0].ID))(t)
	expect.Has(t, w.bad(t, direct(), "append_memory", `{"entry": "Jana is my sister."}`), "had this forgotten", "!remember")
}

func TestAddSkill(t *testing.T) {
	w := newWorkshop(t)
	got := w.ok(t, direct(), "add_skill", `{"skill_name": "tea", "summary": "How to make tea", "documentation": "Boil water."}`)
	expect.Has(t, got, "data/skills/users/@ada=3aexample.org/tea.md", "How to make tea", "Only this person")
	expect.Has(t, w.ok(t, direct(), "add_skill", `{"skill_name": "tea", "summary": "How to make tea", "documentation": "Warm the pot first."}`), "replaces", "copy")
	expect.Has(t, w.ok(t, direct(), "read_file", `{"path": "data/skills/users/@ada=3aexample.org/tea.md"}`), "Warm the pot first.")
	for _, name := range []string{"../evil", "a/b", ".hidden", "a b", "x\u0000"} {
		w.bad(t, direct(), "add_skill", string(quoted(map[string]string{"skill_name": name, "summary": "s", "documentation": "d"})))
	}
}

// trial is a set with one tool, which runs run.
func trial(t *testing.T, w *workshop, run func(context.Context) (string, error)) *Set {
	t.Helper()
	e := define(StaySilent, 1, nil, `{}`, func(_ *Set, ctx context.Context, _ Scope, _ struct{}) (string, error) { return run(ctx) })
	e.name = "trial"
	return newSet(w.cfg, []entry{e})
}

func TestRunGuards(t *testing.T) {
	w := newWorkshop(t)
	lost := &fs.PathError{Op: "open", Path: "/secret/place", Err: errors.New("input/output error")}
	for name, c := range map[string]struct {
		run  func(context.Context) (string, error)
		want string
		ok   bool
	}{
		"panic":        {func(context.Context) (string, error) { panic("boom /secret/place") }, "operator's log", false},
		"system error": {func(context.Context) (string, error) { return "", lost }, "operator's log", false},
		"lesson":       {func(context.Context) (string, error) { return "", errors.New("write it shorter") }, "trial failed: write it shorter", false},
		"empty":        {func(context.Context) (string, error) { return " \n", nil }, "Done", true},
		"not text":     {func(context.Context) (string, error) { return "a\xffb", nil }, "a\uFFFDb", true},
		"long":         {func(context.Context) (string, error) { return strings.Repeat("日本\n", 9000), nil }, "[cut here: this is the beginning of 27000 characters]", true},
		"long line":    {func(context.Context) (string, error) { return strings.Repeat("日", 20000), nil }, "beginning of 20000 characters]", true},
		"long error":   {func(context.Context) (string, error) { return "", errors.New(strings.Repeat("x", 20000)) }, "characters]", false},
	} {
		t.Run(name, func(t *testing.T) {
			res := trial(t, w, c.run).Run(t.Context(), direct(), llm.ToolCall{Name: "trial"})
			expect.Has(t, res.Content, c.want)
			expect.False(t, res.Failed == c.ok || strings.Contains(res.Content, "/secret"), "result %+v", res)
			n := utf8.RuneCountInString(res.Content)
			expect.False(t, n > MaxResult || !utf8.ValidString(res.Content), "%d characters", n)
		})
	}
	expect.Has(t, w.log.String(), "boom", "/secret/place") // the operator gets what the model does not
}

func TestRunLimits(t *testing.T) {
	waits := trial(t, newWorkshop(t), func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	waits.limit = time.Millisecond
	res := waits.Run(t.Context(), direct(), llm.ToolCall{Name: "trial"})
	if expect.Has(t, res.Content, "took longer than"); !res.Failed {
		t.Error("not failed")
	}
	waits.limit = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res = waits.Run(ctx, direct(), llm.ToolCall{Name: "trial"})
	if expect.Has(t, res.Content, "was stopped"); !res.Failed {
		t.Error("not failed")
	}
}

func TestSummary(t *testing.T) {
	s := &Set{tools: []entry{{name: "a", spec: llm.ToolSpec{Description: "Does this. And that.\nMore."}}, {name: "b", spec: llm.ToolSpec{Description: "Only this\n\nMore. Yes."}}}}
	for name, want := range map[string]string{"a": "Does this.", "b": "Only this", "c": ""} {
		got := s.Summary(name)
		expect.False(t, got != want, "%s: %q, want %q", name, got, want)
	}
}

// TestFloodOfTasks: a model that keeps adding tasks is refused from the limit on, and told what to
// tell the person.
func TestFloodOfTasks(t *testing.T) {
	w := newWorkshop(t)
	refused := 0
	for i := range 1000 {
		b := expect.Must(json.Marshal(map[string]any{"action": "add", "content": fmt.Sprintf("task %d", i), "schedule_type": "interval", "interval_seconds": 60, "ai_prompt": "think hard"}))(t)
		if r := w.Set.Run(t.Context(), direct(), llm.ToolCall{ID: "1", Name: "task", Arguments: string(b)}); r.Failed {
			if refused++; !strings.Contains(r.Content, "tell the person") {
				t.Fatal(r.Content)
			}
		}
	}
	expect.False(t, refused != 1000-task.DefaultPerPerson, "%d of 1000 tasks were refused", refused)
}

func TestPolicyAllows(t *testing.T) {
	for _, tt := range []struct {
		allow, deny string
		yes, no     string
	}{
		{"", "", "task shell mcp:a:b", ""},
		{"*", "", "task shell mcp:a:b", ""},
		{"task", "", "task", "tasks Task tas mcp:task"},
		{"git_*", "", "git_log git_commit", "git gitlog my_git_log"},
		{"mcp:*", "", "mcp:calendar:add", "mcp mcp_calendar task"},
		{"mcp:calendar:*", "", "mcp:calendar:add", "mcp:files:read"},
		{"", "*", "", "task shell"},
		{"", "shell git_*", "task", "shell git_log"},
		{"task git_*", "git_commit", "task git_log", "git_commit shell"},
		{"task", "task", "", "task"}, // what is denied stays so
		{"t*sk", "", "", "task"},     // a * stands at the end
	} {
		p := Policy{Allow: strings.Fields(tt.allow), Deny: strings.Fields(tt.deny)}
		for name := range strings.FieldsSeq(tt.yes) {
			expect.False(t, !p.Allows(name), "%+v does not allow %s", p, name)
		}
		for name := range strings.FieldsSeq(tt.no) {
			expect.False(t, p.Allows(name), "%+v allows %s", p, name)
		}
	}
}

// TestPolicyHolds: what may not be used is neither offered nor run, and the model reads what to do instead.
func TestPolicyHolds(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	scope.Policy = Policy{Deny: []string{"append_*", "add_skill"}, Where: "planning mode", Else: "`!mode developer` offers it"}
	offered := scope.Policy.Filter(w.Specs())
	expect.False(t, len(offered) != len(w.Specs())-2 || offered[0].Name != "search_memory", "offered: %+v", offered)
	expect.Has(t, w.bad(t, scope, "append_memory", `{"entry": "Ada likes tea."}`),
		"append_memory is not offered in planning mode, so nothing was done.", "the tools are: search_memory, task, ", "tell them that `!mode developer` offers it.")
	entries, err := w.cfg.Memory.WorkingSet(t.Context(), scope.Memory...)
	expect.False(t, err != nil || len(entries) != 0, "it was done: %v, %v", entries, err)
	got := w.bad(t, scope, "append_memories", `{}`)
	expect.False(t, !strings.HasPrefix(got, "There is no tool") || strings.Contains(got, "append_memory,"), "unknown: %s", got)
	w.ok(t, scope, "task", `{"action": "list"}`)
	scope.Policy = Policy{Deny: []string{"*"}}
	expect.Has(t, w.bad(t, scope, "task", `{"action": "list"}`), "task is not offered in this turn", "There are no tools here: answer in words.")
	if got := scope.Policy.Filter([]llm.ToolSpec{{Name: "task"}}); got != nil {
		t.Errorf("offered: %v", got)
	}
}

// guest is the direct chat of a person who is not an owner.
func guest() Scope {
	return Scope{Room: "!bob:example.org", User: "@bob:example.org", Private: true, Memory: memory.Strict.Visible("!bob:example.org", "@bob:example.org", true), Now: noon,
		Label: trust.Label{Integrity: trust.User, Readers: trust.PersonReaders("@bob:example.org")}}
}

// TestSkillsOfOthers: other people's skills are not listed, read or sent, as if they did not exist.
func TestSkillsOfOthers(t *testing.T) {
	w := newWorkshop(t)
	put(t, w.dir, "skills/tea.md", "How to make tea\n")
	put(t, w.dir, "skills/users.md", "How to add users\n")
	own := "data/skills/users/@ada=3aexample.org"
	expect.Has(t, w.ok(t, direct(), "add_skill", `{"skill_name": "pin", "summary": "The PIN", "documentation": "`+canary+`"}`), own+"/pin.md", "Only this person sees it", "`!skills share pin`")
	expect.Has(t, w.ok(t, group(), "add_skill", `{"skill_name": "minutes", "summary": "The minutes", "documentation": "`+canary+`"}`), "data/skills/rooms/!group=3aexample.org/minutes.md", "Only this room sees it")
	expect.Has(t, w.ok(t, direct(), "read_file", asked(own+"/pin.md")), canary)
	expect.Has(t, w.ok(t, direct(), "read_file", asked(own)), "holds:\npin.md")
	if got := w.ok(t, direct(), "read_file", asked("data/skills")); got != "data/skills/ holds:\ntea.md\nusers.md\nusers/@ada=3aexample.org/" {
		t.Errorf("%s", got)
	}
	if got := w.ok(t, guest(), "read_file", asked("data/skills")); got != "data/skills/ holds:\ntea.md\nusers.md" {
		t.Errorf("%s", got)
	}
	expect.Has(t, w.ok(t, guest(), "read_file", asked("data/skills/users.md")), "How to add users")
	for _, scope := range []Scope{guest(), group(), {Room: "!dm:example.org", User: owner, Now: noon}} {
		for _, p := range []string{own + "/pin.md", own, own + "/", "data/skills/users", "skills/rooms", "skills/Users/@ada=3aexample.org/pin.md", "skills/users/@ada:example.org/pin.md",
			"skills/users/@ada=3AEXAMPLE.ORG/pin.md", "skills/tea.md/../users/@ada=3aexample.org/pin.md", own + "/.pin.md.1"} {
			var sent []Outgoing
			got := w.bad(t, scope, "read_file", asked(p))
			res := w.call(t, w.sending(scope, &sent), SendFile, asked(p))
			expect.False(t, !res.Failed || len(sent) > 0 || strings.Contains(got+res.Content, canary), "%s in %s: %s, %s", p, scope.Room, got, res.Content)
		}
	}
	none := w.bad(t, guest(), "read_file", asked("skills/none.md"))
	if got := w.bad(t, guest(), "read_file", asked("skills/users/@ada=3aexample.org/pin.md")); got != strings.ReplaceAll(none, "skills/none.md", "skills/users/@ada=3aexample.org/pin.md") {
		t.Errorf("it is told from one that there is not: %s", got)
	}
}

// TestAddSkillKeepsItsLabel: a skill has the label of the call, and is refused when there are too
// many.
func TestAddSkillKeepsItsLabel(t *testing.T) {
	w := newWorkshop(t)
	scope := guest()
	scope.Label = trust.Label{Integrity: trust.Guest, Readers: scope.Place().Readers()}
	scope.Granted = map[string]bool{scope.describeAct(llm.ToolCall{Name: "add_skill", Arguments: "{}"}).Covers: true}
	for i := range skill.MaxPerFolder {
		w.ok(t, scope, "add_skill", fmt.Sprintf(`{"skill_name": "n%d", "summary": "s", "documentation": "---\nintegrity: owner\n---"}`, i))
	}
	expect.Has(t, w.bad(t, scope, "add_skill", `{"skill_name": "more", "summary": "s", "documentation": "d"}`), "30 skills", "tell the person")
	all, err := w.cfg.Skills.List(scope.Place())
	expect.False(t, err != nil || len(all) != skill.MaxPerFolder || all[0].Label != scope.Label || all[0].Owner != scope.User, "%+v, %v", all, err)
	put(t, w.dir, "skills/deploy.md", "Deploy\n")
	for _, s := range []Scope{direct(), group()} {
		s.Label = trust.Label{Integrity: trust.Owner, Readers: s.Place().Readers()}
		expect.Has(t, w.bad(t, s, "add_skill", `{"skill_name": "deploy", "summary": "s", "documentation": "d"}`), "choose another name")
	}
}
