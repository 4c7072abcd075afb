package tool

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/trust"
)

// rule says what a call of a tool needs, and what it does with text.
type rule struct {
	needs  trust.Integrity // of everything the model has read; below it a person is asked
	writes target          // readers of what the call stores or sends
	reads  source          // origin of the words in its result, see Scope.MarkShown
}

// target says who reads what a call writes.
type target string

const (
	nothing target = "nothing" // changes nothing
	readers target = "readers" // rows for the readers of the answer, see trust.Place
	room    target = "room"    // sent into the room
	worker  target = "worker"  // given to a sub-session
	shared  target = "shared"  // readable by everybody
)

// source says whose words a result holds, besides those of the call.
type source string

const (
	noText source = "none"
	rows   source = "rows" // stored rows and files, each with its own label
)

// rules are the rules of one tool, by action. Together with the catalog they are the whole policy,
// see allowed.
type rules map[string]rule

// anyAction is the rule for all actions without one of their own.
const anyAction = ""

// Acts without a tool.
const (
	Markers = "goal markers"
	Harvest = "harvest"
)

// AllowsAct reports whether text of this integrity may cause an act without a tool: one of otherActs,
// or "!" and the name of a command.
func AllowsAct(of trust.Integrity, act string) bool {
	return of >= max(otherActs[act], trust.User)
}

// ruleOf returns the rule for a call. An unknown call needs an owner.
func ruleOf(call llm.ToolCall) rule {
	e, _ := entryNamed(catalog, call.Name)
	if r, ok := e.rules[readRuleArgs(call).Action]; ok {
		return r
	}
	if r, ok := e.rules[anyAction]; ok {
		return r
	}
	return rule{trust.Owner, shared, rows}
}

// ruleArgs are the arguments that rules depend on.
type ruleArgs struct {
	Action string `json:"action"`    // "" for a tool with a single action
	Prompt *any   `json:"ai_prompt"` // makes a task that a model performs when due
}

func readRuleArgs(call llm.ToolCall) ruleArgs {
	var r ruleArgs
	if json.Unmarshal([]byte(call.Arguments), &r) != nil {
		return ruleArgs{Prompt: new(any)}
	}
	r.Action = strings.TrimSpace(r.Action)
	return r
}

// Act is a call as it is shown to the person who must approve it.
type Act struct {
	Call   llm.ToolCall `json:"call"`
	Action string       `json:"action,omitempty"` // may be empty
	// Covers names the tool, the action and the readers. An approval "for this conversation" allows
	// other acts with the same value; "" = none.
	Covers string `json:"covers"`
	// Shown are the lines that the person sees instead of the arguments. If they are others when the
	// act runs, the approval is void.
	Shown []string `json:"shown,omitempty"`
}

// Grants returns Scope.Granted for the run of an approved act; nil unless it needs its own approval.
func (a Act) Grants() map[string]bool {
	if a.Covers != "" {
		return nil
	}
	return map[string]bool{a.exact(): true}
}

// exact identifies the act with all that the person saw.
func (a Act) exact() string {
	return fmt.Sprintf("exactly %x", sha256.Sum256(quoted([]any{a.Call.Name, a.Call.Arguments, a.Shown})))
}

// act describes a call with what is shown of it.
func act(s *Set, scope Scope, call llm.ToolCall) Act {
	a := scope.describeAct(call)
	if AsksEachTime(call.Name) {
		a.Covers, a.Shown = "", showCommand(s, scope, call)
	}
	return a
}

func (s Scope) describeAct(call llm.ToolCall) Act {
	to, args := string(ruleOf(call).writes), readRuleArgs(call)
	if to == string(readers) {
		to = string(s.Place().Readers())
	}
	kind := args.Action
	if args.Prompt != nil {
		kind += " with ai_prompt"
	}
	return Act{Call: call, Action: args.Action, Covers: strings.Join(strings.Fields(call.Name+" "+kind+" "+to), " ")}
}

// allowed reports whether a call may run: everything the model has read is trusted enough, or a
// person allowed such acts for this conversation. A call that is asked about each time needs an
// approval of its own, by a person who is trusted enough.
func allowed(s *Set, scope Scope, call llm.ToolCall) bool {
	trusted := scope.Label.Integrity >= ruleOf(call).needs
	if AsksEachTime(call.Name) {
		return trusted && scope.Granted[act(s, scope, call).exact()]
	}
	return trusted || scope.Granted[scope.describeAct(call).Covers]
}

// NeedsApproval reports whether a person must approve call first, and the act to show. It is false for calls
// that Run refuses anyway.
func (s *Set) NeedsApproval(scope Scope, call llm.ToolCall) (Act, bool) {
	_, call, err := s.prepare(scope, call)
	if err != nil || allowed(s, scope, call) {
		return Act{}, false
	}
	return act(s, scope, call), true
}

// notTheSame tells that an approved call is no longer what was approved.
const notTheSame = refusal("Not done: an owner must agree to exactly this; a file that it names, its folder or the mode may have " +
	"changed since they were asked. Ask again.")

// notAllowed tells the model that no person can be asked here.
const notAllowed = refusal("Not done: text that did not come from the person who asks has been read here, and nobody can be asked now. " +
	"Say in your answer what you would do; the person can ask for it.")
