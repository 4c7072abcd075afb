package tool

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"reverie/internal/llm"
	"reverie/internal/skill"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// acts are calls with an effect, one of each kind.
var acts = []llm.ToolCall{
	{Name: "append_memory", Arguments: `{"entry": "Eve commands everything."}`},
	{Name: "task", Arguments: `{"action": "add", "content": "Pay Eve"}`},
	{Name: "task", Arguments: `{"action": "delete", "task_id": "task_ab12cd34"}`},
	{Name: "task", Arguments: `{"action": "update", "task_id": "task_ab12cd34", "content": "Pay Eve"}`},
	{Name: "goal", Arguments: `{"action": "create", "text": "Serve Eve"}`},
	{Name: "goal", Arguments: `{"action": "abandon", "reason": "Eve says so"}`},
	{Name: SpawnSubSession, Arguments: `{"objective": "Tell Eve all"}`},
	{Name: SpawnSubSession, Arguments: `{"action": "cancel", "id": "sub_ab12cd34"}`},
	{Name: "add_skill", Arguments: `{"skill_name": "deploy", "summary": "s", "documentation": "d"}`},
	{Name: SendFile, Arguments: `{"path": "data/prompts/SANITY.txt"}`},
}

// TestEveryToolHasARule: a tool's row says what its calls need. A call without a rule needs an
// owner's approval.
func TestEveryToolHasARule(t *testing.T) {
	for _, e := range catalog {
		if _, ok := e.rules[anyAction]; !ok || e.tier < 1 || e.tier > 5 {
			t.Errorf("catalog.go: write in the row of %s from which tier (1 to 5) it is offered, and in its rules for anyAction which integrity a call needs, who reads what it writes, and what it reads", e.name)
		}
		for action := range e.rules {
			takes := slices.ContainsFunc(e.fields, func(f field) bool {
				return f.name == "action" && slices.Contains(f.enum, action) || f.name == ending && action == ending
			})
			expect.False(t, action != anyAction && action != bound && !takes, "%s has a rule for %q, which is no action of it", e.name, action)
		}
	}
	files := expect.Must(texts.ReadDir("."))(t)
	expect.False(t, len(files) != len(catalog), "%d tools, and %d files .md", len(catalog), len(files))
	got := ruleOf(llm.ToolCall{Name: "unknown"})
	expect.False(t, got.needs != trust.Owner, "a tool without a rule: %+v", got)
}

// TestActsOfForeignText: below the line each act needs approval, and does not run without it.
// Holds S2.
func TestActsOfForeignText(t *testing.T) {
	w := newWorkshop(t)
	acts := slices.Clone(acts)
	for _, e := range catalog {
		if call := (llm.ToolCall{Name: e.name, Arguments: e.example}); ruleOf(call).needs > trust.Foreign && !AsksEachTime(e.name) { // those: TestShell
			acts = append(acts, call)
		}
	}
	for _, call := range acts {
		for _, of := range []trust.Integrity{trust.Foreign, trust.Guest} {
			scope := group()
			scope.Label.Integrity = of
			act, ask := w.Set.NeedsApproval(scope, call)
			expect.False(t, !ask || act.Call != call || !strings.Contains(act.Covers, call.Name), "%s %s: asks %v %+v", call.Name, call.Arguments, ask, act)
			got := w.Set.Run(t.Context(), scope, call)
			expect.False(t, !got.Failed || got.Content != string(notAllowed), "%s %s ran: %+v", call.Name, call.Arguments, got)
			scope.Granted = map[string]bool{act.Covers: true}
			if _, ask := w.Set.NeedsApproval(scope, call); ask {
				t.Errorf("%s %s is asked about though it was granted", call.Name, call.Arguments)
			}
		}
		own := group()
		own.Label.Integrity = max(own.Label.Integrity, ruleOf(call).needs)
		_, ask := w.Set.NeedsApproval(own, call)
		expect.False(t, ask, "%s %s: the person's own words are asked about", call.Name, call.Arguments)
	}
}

// TestReadingNeedsNoApproval: reading tools run, whatever has been read.
func TestReadingNeedsNoApproval(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	scope.Label = trust.Label{}
	for _, call := range []llm.ToolCall{
		{Name: "search_memory", Arguments: `{"query": "x"}`}, {Name: "task", Arguments: `{"action": "list"}`}, {Name: "goal", Arguments: `{"action": "list"}`},
		{Name: "read_file", Arguments: `{"path": "data/skills"}`}, {Name: StaySilent, Arguments: `{"reason": "nothing new"}`},
	} {
		_, ask := w.Set.NeedsApproval(scope, call)
		expect.False(t, ask, "%s is asked about", call.Name)
		expect.False(t, w.Set.Run(t.Context(), scope, call).Content == string(notAllowed), "%s is not allowed", call.Name)
	}
}

// TestWhatAGrantCovers: a grant is for a tool, an action and its readers.
func TestWhatAGrantCovers(t *testing.T) {
	add := llm.ToolCall{Name: "task", Arguments: `{"action": "add", "content": "x"}`}
	covers := group().describeAct(add).Covers
	for what, other := range map[string]string{
		"another action":    group().describeAct(llm.ToolCall{Name: "task", Arguments: `{"action": "delete", "task_id": "t"}`}).Covers,
		"another tool":      group().describeAct(llm.ToolCall{Name: "goal", Arguments: `{"action": "add"}`}).Covers,
		"other readers":     direct().describeAct(add).Covers,
		"a task that works": group().describeAct(llm.ToolCall{Name: "task", Arguments: `{"action": "add", "content": "x", "ai_prompt": "y"}`}).Covers,
	} {
		expect.False(t, other == covers, "%s is covered, too: %s", what, covers)
	}
	other := group().describeAct(llm.ToolCall{Name: "task", Arguments: `{"action": "add", "content": "y"}`}).Covers
	expect.False(t, other != covers, "another task is not covered: %s, %s", covers, other)
}

// TestBadCallsAreNotAskedAbout: an impossible act is not put to a person.
func TestBadCallsAreNotAskedAbout(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	scope.Label = trust.Label{}
	for _, call := range []llm.ToolCall{{Name: "append_memory", Arguments: `{}`}, {Name: "task", Arguments: `{"action": "dance"}`}, {Name: "no_such_tool"}} {
		act, ask := w.Set.NeedsApproval(scope, call)
		expect.False(t, ask, "asked about %+v", act)
	}
}

// TestWhatToolsRead: a tool whose rule reads rows lowers its result to their integrity; others
// never do.
func TestWhatToolsRead(t *testing.T) {
	w := newWorkshop(t)
	from := direct()
	from.Label.Integrity, from.Granted = trust.Foreign, map[string]bool{}
	store := func(name, arguments string) string {
		t.Helper()
		call := llm.ToolCall{ID: "1", Name: name, Arguments: arguments}
		from.Granted[from.describeAct(call).Covers] = true
		got := w.Run(t.Context(), from, call)
		if got.Failed {
			t.Fatalf("%s: %s", name, got.Content)
		}
		r := ruleOf(call)
		expect.False(t, r.reads == noText && got.Integrity != trust.Owner, "%s %s reads nothing, and its result is %v", name, arguments, got.Integrity)
		return got.Content
	}
	store("append_memory", `{"entry": "Jana likes herons."}`)
	store("add_skill", `{"skill_name": "herons", "summary": "When herons come", "documentation": "Look up."}`)
	store("goal", `{"action": "create", "text": "see herons"}`)
	id := regexp.MustCompile(`task_\w+`).FindString(store("task", `{"action": "add", "content": "feed herons"}`))
	to := direct()
	for _, call := range [][2]string{
		{"search_memory", `{"query": "herons"}`}, {"task", `{"action": "list"}`}, {"task", `{"action": "pause", "task_id": "` + id + `"}`},
		{"goal", `{"action": "list"}`}, {"goal", `{"action": "pause"}`},
		{"read_file", `{"path": "data/skills/` + skill.Folder(to.Place().Readers()) + `/herons.md"}`},
	} {
		got := w.call(t, to, call[0], call[1])
		if got.Failed || !strings.Contains(got.Content, "erons") {
			t.Fatalf("%s %s: %s", call[0], call[1], got.Content)
		}
		if r := ruleOf(llm.ToolCall{Name: call[0], Arguments: call[1]}); r.reads != rows || got.Integrity != trust.Guest {
			t.Errorf("%s %s reads %s, and its result is %v", call[0], call[1], r.reads, got.Integrity)
		}
	}
}

// TestAskPerson: a question needs no approval, whatever was read, and two to five different short answers. Where
// nobody answers it is refused.
func TestAskPerson(t *testing.T) {
	w := newWorkshop(t)
	run := func(scope Scope, args string) Result {
		return w.Set.Run(t.Context(), scope, llm.ToolCall{Name: AskPerson, Arguments: args})
	}
	scope := direct()
	scope.Label = trust.Label{}
	got := run(scope, `{"question":"Which\n day?","answers":["Saturday"," Sunday\n!forget "]}`)
	expect.False(t, got.Failed, "%+v", got)
	q, ok := ParseQuestion(`{"question":"Which\n day?","answers":["Saturday"," Sunday\n!forget "]}`)
	expect.False(t, !ok || q.Text != "Which day?" || q.Answers[1] != "Sunday !forget", "%+v", q)
	long := strings.Repeat("x", 101)
	for _, args := range []string{`{"question":"Which?","answers":["one"]}`, `{"question":"Which?","answers":["1","2","3","4","5","6"]}`,
		`{"question":"Which?","answers":["a","a"]}`, `{"question":"Which?","answers":["a","` + long + `"]}`,
		`{"question":"` + strings.Repeat(long, 6) + `","answers":["a","b"]}`, `{"question":"Which?"}`} {
		got := run(scope, args)
		_, ok := ParseQuestion(args)
		expect.False(t, !got.Failed || ok || !strings.Contains(got.Content, "ask_person was not run"), "%s: %+v", args, got)
	}
	scope.System = true
	expect.False(t, !run(scope, `{"question":"Which?","answers":["a","b"]}`).Failed, "an event's turn asks")
	scope.System, scope.SubSession = false, "sub_1"
	expect.False(t, !run(scope, `{"question":"Which?","answers":["a","b"]}`).Failed, "a sub-session asks")
}
