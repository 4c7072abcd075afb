package tool

import (
	"encoding/json"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/trust"
)

// rule says what a call of a tool needs, and what it does with text.
type rule struct {
	needs  trust.Integrity // of all that the model has read; below it a person is asked first
	writes target          // who reads what the call stores or sends
	reads  source          // whose words its result holds, see Scope.Shows
}

// target says who reads what a call writes.
type target string

const (
	nothing target = "nothing" // it changes nothing
	readers target = "readers" // rows for those who read the answer, see trust.Place
	room    target = "room"    // it is sent into the room
	worker  target = "worker"  // a sub-session gets it
	shared  target = "shared"  // it is for everybody
)

// source says whose words a result holds besides those of the call.
type source string

const (
	noText source = "none"
	rows   source = "rows" // of stored rows and files: each with the label it has
)

// rules are those of one tool, by the action of a call. With the catalog they are the policy: what
// stands there is decided nowhere else, see allowed.
type rules map[string]rule

// anyAction is the rule of a tool that does one thing, and of actions without a rule of their own.
const anyAction = ""

// Acts that are no tools.
const (
	Markers = "goal markers"
	Harvest = "harvest"
)

// Allows reports whether text of this integrity may cause an act that is no tool: one of
// otherActs, or "!" and the name of a command.
func Allows(of trust.Integrity, act string) bool {
	return of >= max(otherActs[act], trust.User)
}

// ruleOf is the rule for a call; what no rule names needs an owner.
func ruleOf(call llm.ToolCall) rule {
	e, _ := named(catalog, call.Name)
	if r, ok := e.rules[read(call).Action]; ok {
		return r
	}
	if r, ok := e.rules[anyAction]; ok {
		return r
	}
	return rule{trust.Owner, shared, rows}
}

// ruled is what the rules look at in the arguments of a call.
type ruled struct {
	Action string `json:"action"`    // what it does with its tool; "" for a tool that does one thing
	Prompt *any   `json:"ai_prompt"` // it makes a task that a model works on when it is due
}

func read(call llm.ToolCall) ruled {
	var r ruled
	if json.Unmarshal([]byte(call.Arguments), &r) != nil {
		return ruled{Prompt: new(any)}
	}
	r.Action = strings.TrimSpace(r.Action)
	return r
}

// Act is a call as a person is asked about it.
type Act struct {
	Call   llm.ToolCall `json:"call"`
	Action string       `json:"action,omitempty"` // what it does with the tool; may be empty
	// Covers names the tool, the action and who reads what is written: "for this
	// conversation" allows other acts of the same.
	Covers string `json:"covers"`
}

func (s Scope) act(call llm.ToolCall) Act {
	to, args := string(ruleOf(call).writes), read(call)
	if to == string(readers) {
		to = string(s.Place().Readers())
	}
	kind := args.Action
	if args.Prompt != nil {
		kind += " with ai_prompt"
	}
	return Act{Call: call, Action: args.Action, Covers: strings.Join(strings.Fields(call.Name+" "+kind+" "+to), " ")}
}

// allowed reports whether a call may run: all that the model has read is trusted enough for it,
// or a person allowed such acts for this conversation.
func (s Scope) allowed(call llm.ToolCall) bool {
	return s.Label.Integrity >= ruleOf(call).needs || s.Granted[s.act(call).Covers]
}

// Asks reports whether a person must be asked before call may run, and about what. It is false
// also for calls that Run refuses anyway: nobody is asked about an act that cannot be done.
func (s *Set) Asks(scope Scope, call llm.ToolCall) (Act, bool) {
	_, call, err := s.ready(scope, call)
	if err != nil || scope.allowed(call) {
		return Act{}, false
	}
	return scope.act(call), true
}

// notAllowed tells the model about a call for which nobody can be asked here.
const notAllowed = refusal("Not done: text that did not come from the person who asks has been read here, and nobody can be asked now. " +
	"Say in your answer what you would do; the person can ask for it.")
