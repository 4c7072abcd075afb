package tool

import (
	"context"
	"embed"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/trust"
)

// catalog is all the tools, in the order in which the model sees them: the name, the tier from
// which it is offered, what its calls need and do, an example of good arguments, and what runs
// it. NAME.md describes it to the model.
var catalog = []entry{
	define("append_memory", 1, rules{anyAction: {trust.User, readers, noText}},
		`{"entry": "Ada's sister Jana lives in Brno."}`, (*Set).appendMemory),
	define("search_memory", 2, rules{anyAction: {trust.Foreign, nothing, rows}},
		`{"query": "Jana sister Brno"}`, (*Set).searchMemory),
	define("task", 1, rules{anyAction: {trust.User, readers, rows}, "list": {trust.Foreign, nothing, rows}},
		`{"action": "add", "content": "Water the plants", "schedule_type": "daily", "at": "09:00"}`, (*Set).task),
	define("goal", 2, rules{anyAction: {trust.User, readers, rows}, "list": {trust.Foreign, nothing, rows}},
		`{"action": "create", "text": "Ship the release by Friday", "priority": "high"}`, (*Set).goal),
	define(StaySilent, 2, rules{anyAction: {trust.Foreign, nothing, noText}},
		`{"reason": "Nothing has changed since yesterday."}`, (*Set).staySilent),
	define(SpawnSubSession, 3, rules{anyAction: {trust.User, worker, noText}, "status": {trust.Foreign, nothing, rows}},
		`{"objective": "List the steps in data/skills/weekly-report.md"}`, (*Set).spawnSubSession),
	define("add_skill", 1, rules{anyAction: {trust.User, readers, noText}},
		`{"skill_name": "tea", "summary": "Making tea", "documentation": "Boil water."}`, (*Set).addSkill),
	define("read_file", 1, rules{anyAction: {trust.Foreign, nothing, rows}},
		`{"path": "data/skills/weekly-report.md"}`, (*Set).readFile),
	define(SendFile, 2, rules{anyAction: {trust.User, room, noText}},
		`{"path": "data/skills/weekly-report.md"}`, (*Set).sendFile),
	define(SetMode, 4, rules{anyAction: {trust.User, room, noText}},
		`{"mode": "planning"}`, (*Set).setMode),
}

// otherActs are acts that no tool does, and what they need: what an answer says of the goal in
// lines of its own, what is learned from a conversation, and commands that change things for
// everybody.
var otherActs = map[string]trust.Integrity{
	Markers:         trust.User,
	Harvest:         trust.User,
	"!config":       trust.Owner,
	"!model":        trust.Owner,
	"!dream":        trust.Owner,
	"!skills share": trust.Owner,
}

// Tier is the smallest class of windows in which the tool name is offered; 0 if there is no such tool.
func Tier(name string) int {
	e, _ := named(catalog, name)
	return e.tier
}

func named(tools []entry, name string) (e entry, ok bool) {
	i := slices.IndexFunc(tools, func(t entry) bool { return t.name == name })
	if i < 0 {
		return entry{}, false
	}
	return tools[i], true
}

// texts describe the tools to the model. Where the window is smallest it reads the first
// paragraph alone.
//
//go:embed *.md
var texts embed.FS

// entry is one tool of the catalog.
type entry struct {
	name    string
	tier    int
	rules   rules
	spec    llm.ToolSpec
	brief   llm.ToolSpec // for the smallest windows
	example string       // valid arguments, shown when a model sent bad ones
	fields  []field
	fit     func(arguments string) (string, error) // makes what a model wrote fit for run
	run     func(s *Set, ctx context.Context, scope Scope, arguments string) (string, error)
}

// define makes an entry of a function over typed arguments: the struct A, with
// its tags, is the only place that says what the arguments are. Errors that the
// function returns go to the model; faults among them in the form of a list.
func define[A any](name string, tier int, by rules, example string, run func(*Set, context.Context, Scope, A) (string, error)) entry {
	file, err := texts.ReadFile(name + ".md")
	if err != nil {
		panic("tool: nothing describes " + name + ": " + err.Error()) // every test sees it
	}
	text := strings.TrimSpace(string(file))
	first, _, _ := strings.Cut(text, "\n\n")
	e := entry{name: name, tier: tier, rules: by, example: example, fields: fieldsOf(reflect.TypeFor[A]())}
	e.spec = llm.ToolSpec{Name: name, Description: strings.ReplaceAll(text, "\n\n", " "), Parameters: schemaOf(e.fields, true)}
	e.brief = llm.ToolSpec{Name: name, Description: first, Parameters: schemaOf(briefly(e.fields), false)}
	e.fit = func(arguments string) (string, error) {
		var a A
		v := reflect.ValueOf(&a).Elem()
		if found := decode(arguments, e.fields, v); len(found) > 0 {
			return "", found.refuse(e)
		}
		if fit := encode(e.fields, v); !equal(arguments, fit) {
			return fit, nil
		}
		return arguments, nil // in the model's own bytes, which its server may have kept
	}
	e.run = func(s *Set, ctx context.Context, scope Scope, arguments string) (string, error) {
		var a A
		if err := json.Unmarshal([]byte(arguments), &a); err != nil {
			return "", err
		}
		text, err := run(s, ctx, scope, a)
		if found, ok := err.(faults); ok { // not wrapped: only tools themselves make them
			return "", found.refuse(e)
		}
		return text, err
	}
	return e
}
