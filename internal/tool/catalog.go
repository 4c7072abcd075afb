package tool

import (
	"context"
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"

	"reverie/internal/llm"
)

// What the model is told about each tool. Where the window is smallest it is the first paragraph alone.
var (
	//go:embed append_memory.md
	appendMemoryText string
	//go:embed search_memory.md
	searchMemoryText string
	//go:embed task.md
	taskText string
	//go:embed goal.md
	goalText string
	//go:embed stay_silent.md
	staySilentText string
	//go:embed spawn_sub_session.md
	spawnSubSessionText string
	//go:embed add_skill.md
	addSkillText string
	//go:embed read_file.md
	readFileText string
	//go:embed send_file.md
	sendFileText string
	//go:embed set_mode.md
	setModeText string
)

// catalog is all the tools, in the order in which the model sees them: name,
// description, an example of good arguments, and what it does.
var catalog = []entry{
	define("append_memory", appendMemoryText, `{"entry": "Ada's sister Jana lives in Brno."}`, (*Set).appendMemory),
	define("search_memory", searchMemoryText, `{"query": "Jana sister Brno"}`, (*Set).searchMemory),
	define("task", taskText, `{"action": "add", "content": "Water the plants", "schedule_type": "daily", "at": "09:00"}`, (*Set).task),
	define("goal", goalText, `{"action": "create", "text": "Ship the release by Friday", "priority": "high"}`, (*Set).goal),
	define(StaySilent, staySilentText, `{"reason": "Nothing has changed since yesterday."}`, (*Set).staySilent),
	define(SpawnSubSession, spawnSubSessionText, `{"objective": "List the steps in data/skills/weekly-report.md"}`, (*Set).spawnSubSession),
	define("add_skill", addSkillText, `{"skill_name": "tea", "summary": "Making tea", "documentation": "Boil water."}`, (*Set).addSkill),
	define("read_file", readFileText, `{"path": "data/skills/weekly-report.md"}`, (*Set).readFile),
	define(SendFile, sendFileText, `{"path": "data/skills/weekly-report.md"}`, (*Set).sendFile),
	define(SetMode, setModeText, `{"mode": "planning"}`, setMode),
}

// entry is one tool of the catalog.
type entry struct {
	name        string
	description string
	brief       llm.ToolSpec // for the smallest windows
	example     string       // valid arguments, shown when a model sent bad ones
	fields      []field
	schema      json.RawMessage
	fit         func(arguments string) (string, error) // makes what a model wrote fit for run
	run         func(s *Set, ctx context.Context, scope Scope, arguments string) (string, error)
}

// define makes an entry of a function over typed arguments: the struct A, with
// its tags, is the only place that says what the arguments are. Errors that the
// function returns go to the model; faults among them in the form of a list.
func define[A any](name, text, example string, run func(*Set, context.Context, Scope, A) (string, error)) entry {
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n\n")
	e := entry{name: name, description: strings.ReplaceAll(text, "\n\n", " "), example: example, fields: fieldsOf(reflect.TypeFor[A]())}
	e.schema = schemaOf(e.fields, true)
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
