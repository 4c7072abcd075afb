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

// catalog lists the tools in the order in which the model sees them. Each has a name, the tier from
// which it is offered, what its calls need and do, an example of valid arguments, and the function
// that runs it. NAME.md describes it to the model.
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
	define(AskPerson, 2, rules{anyAction: {trust.Foreign, room, noText}},
		`{"question": "Which day suits you?", "answers": ["Saturday", "Sunday"]}`, (*Set).askPerson),
	define(SpawnSubSession, 3, rules{anyAction: {trust.User, worker, noText}, "status": {trust.Foreign, nothing, rows}},
		`{"objective": "List the steps in data/skills/weekly-report.md"}`, (*Set).spawnSubSession),
	define("add_skill", 1, rules{anyAction: {trust.User, readers, noText}},
		`{"skill_name": "tea", "summary": "Making tea", "documentation": "Boil water."}`, (*Set).addSkill),
	define("read_file", 1, rules{anyAction: {trust.Foreign, nothing, rows}},
		`{"path": "data/skills/weekly-report.md"}`, (*Set).readFile),
	define(SendFile, 2, rules{anyAction: {trust.User, room, noText}},
		`{"path": "data/skills/weekly-report.md"}`, (*Set).sendFile),
	define(webSearch, 3, rules{anyAction: {trust.User, internet, strangers}},
		`{"query": "weather Brno tomorrow"}`, (*Set).webSearch).asStep(),
	define(webFetch, 3, rules{anyAction: {trust.User, internet, strangers}},
		`{"url": "https://example.org/news"}`, (*Set).webFetch).asStep(),
	define("list_files", 3, rules{anyAction: {trust.Foreign, nothing, rows}},
		`{"path": "work"}`, onFiles(files.list)),
	define("find_in_files", 3, rules{anyAction: {trust.Foreign, nothing, rows}},
		`{"text": "func main", "files": "*.go"}`, onFiles(files.find)),
	define("write_file", 3, rules{anyAction: {trust.User, readers, rows}, bound: {trust.Owner, machine, rows}},
		`{"path": "work/hello.py", "content": "print(\"hello\")\n"}`, onFiles(files.write)).asStep(),
	define("edit_file", 3, rules{anyAction: {trust.User, readers, rows}, bound: {trust.Owner, machine, rows}},
		`{"path": "work/hello.py", "old": "hello", "new": "good morning"}`, onFiles(files.edit)).asStep(),
	define("delete_file", 3, rules{anyAction: {trust.User, readers, noText}, bound: {trust.Owner, machine, noText}},
		`{"path": "work/hello.py"}`, onFiles(files.remove)),
	define(SetMode, 4, rules{anyAction: {trust.User, room, noText}},
		`{"mode": "planning"}`, (*Set).setMode),
	define(SetModel, 4, rules{anyAction: {trust.Owner, room, noText}}, // like !model
		`{"model": "big"}`, setModel),
	define(FindTool, 3, rules{anyAction: {trust.Foreign, nothing, noText}},
		`{"query": "create an issue"}`, (*Set).findTool),
	define(CallTool, 3, rules{anyAction: {trust.Owner, program, rows}}, // or less, see refuse
		`{"tool": "github.create_issue", "arguments": {"title": "The build fails"}}`, (*Set).callTool).asStep(),
	define(askAdvisors, 3, rules{anyAction: {trust.Foreign, nothing, rows}},
		`{"question": "Rent or buy?", "context": "They stay for three years."}`, putToAdvisors),
	define(RunCode, 3, rules{anyAction: {trust.Foreign, nothing, noText}},
		`{"code": "[3, 1, 2].sort().join()"}`, runCode),
	define(Shell, 3, rules{anyAction: {trust.Owner, room, rows}},
		`{"command": "wc -l *.txt"}`, shell).where(mayUseShell, true).asStep(),
	define(ShellStatus, 3, rules{anyAction: {trust.Foreign, nothing, rows}, ending: {trust.User, readers, rows}},
		`{"id": "cmd_ab12cd34"}`, shellStatus).where(mayLookAtCommands, false),
}

// otherActs are acts without a tool, and the integrity that each needs: goal markers in an answer,
// facts and wishes learned from a conversation, and commands that affect everybody.
var otherActs = map[string]trust.Integrity{
	Markers:         trust.User,
	Harvest:         trust.User,
	Manner:          trust.User,
	"!config":       trust.Owner,
	"!model":        trust.Owner,
	"!dream":        trust.Owner,
	"!web":          trust.Owner,
	"!skills share": trust.Owner,
}

// MinTier returns the smallest window class in which the tool is offered; 0 = no such tool.
func MinTier(name string) int {
	e, _ := entryNamed(catalog, name)
	return e.tier
}

func entryNamed(tools []entry, name string) (e entry, ok bool) {
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

type entry struct {
	name    string
	tier    int
	rules   rules
	spec    llm.ToolSpec
	brief   llm.ToolSpec // for the smallest windows
	example string       // valid arguments, shown after bad ones
	step    bool         // see asStep
	fields  []field
	fit     func(arguments string) (string, error) // normalizes a model's arguments for run
	run     func(s *Set, ctx context.Context, scope Scope, arguments string) (string, error)

	may      func(s *Set, scope Scope) error // returns why it is not used here; nil = it is
	eachTime bool                            // a person approves each call as it is
}

// where returns e as a tool that is used where may returns nil. eachTime says that its calls can start
// anything, so that no approval covers another call.
func (e entry) where(may func(*Set, Scope) error, eachTime bool) entry {
	e.may, e.eachTime = may, eachTime
	return e
}

// asStep makes calls of e steps of work: once a person has approved one, the model goes on.
func (e entry) asStep() entry {
	e.step = true
	return e
}

// IsStep reports whether calls of the tool are steps of work.
func IsStep(name string) bool {
	e, _ := entryNamed(catalog, name)
	return e.step
}

// AsksEachTime reports whether a person must approve each call of the tool.
func AsksEachTime(name string) bool {
	e, _ := entryNamed(catalog, name)
	return e.eachTime
}

// define makes an entry from a function over typed arguments. The tags of struct A are the only
// definition of the arguments. Errors of run go to the model; faults among them become a list.
func define[A any](name string, tier int, by rules, example string, run func(*Set, context.Context, Scope, A) (string, error)) entry {
	file, err := texts.ReadFile(name + ".md")
	if err != nil {
		panic("tool: nothing describes " + name + ": " + err.Error()) // every test finds it
	}
	text := strings.TrimSpace(string(file))
	first, _, _ := strings.Cut(text, "\n\n")
	e := entry{name: name, tier: tier, rules: by, example: example, fields: fieldsOf(reflect.TypeFor[A]())}
	e.spec = llm.ToolSpec{Name: name, Description: strings.ReplaceAll(text, "\n\n", " "), Parameters: schemaOf(e.fields, true)}
	e.brief = llm.ToolSpec{Name: name, Description: first, Parameters: schemaOf(briefFields(e.fields), false)}
	e.fit = func(arguments string) (string, error) {
		var a A
		v := reflect.ValueOf(&a).Elem()
		if found := decode(arguments, e.fields, v); len(found) > 0 {
			return "", found.refuse(e)
		}
		if fit := encode(e.fields, v); !equal(arguments, fit) {
			return fit, nil
		}
		return arguments, nil // byte for byte the model's, because its server may have cached them
	}
	e.run = func(s *Set, ctx context.Context, scope Scope, arguments string) (string, error) {
		var a A
		if err := json.Unmarshal([]byte(arguments), &a); err != nil {
			return "", err
		}
		text, err := run(s, ctx, scope, a)
		if found, ok := err.(faults); ok { // not wrapped: only tools make them
			return "", found.refuse(e)
		}
		return text, err
	}
	return e
}
