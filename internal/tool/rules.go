package tool

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/llm"
	"reverie/internal/tool/workspace"
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
	program target = "program" // given to a connected program, see package mcp
	// internet: the query or address is sent to servers of strangers. If the integrity is too low, it may
	// still hold what is public, see Scope.sendsKnown.
	internet target = "internet"
	machine  target = "machine" // into a folder of the machine that an owner bound to the room
)

// source says whose words a result holds, besides those of the call.
type source string

const (
	noText source = "none"
	rows   source = "rows" // stored rows and files, each with its own label
	// strangers: pages of the web, always foreign.
	strangers source = "strangers"
)

// rules are the rules of one tool, by action. Together with the catalog they are the whole policy,
// see allowed.
type rules map[string]rule

// anyAction is the rule for all actions without one of their own.
const anyAction = ""

// bound is the rule for paths outside the room's work folder. No action has this name.
const bound = "in a bound folder"

// ending is the rule for a call that ends a command in the background.
const ending = "end"

// Acts without a tool.
const (
	Markers = "goal markers"
	Harvest = "harvest"
	Manner  = "manner"
)

// AllowsAct reports whether text of this integrity may cause an act without a tool: one of otherActs,
// or "!" and the name of a command.
func AllowsAct(of trust.Integrity, act string) bool {
	return of >= max(otherActs[act], trust.User)
}

// ruleOf returns the rule for a call. An unknown call needs an owner.
func ruleOf(call llm.ToolCall) rule {
	e, _ := entryNamed(catalog, call.Name)
	args := readRuleArgs(call)
	if r, ok := e.rules[bound]; ok && !workspace.InWork(args.Path) {
		return r
	}
	if r, ok := e.rules[args.Action]; ok && args.Action != bound {
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
	Tool   string `json:"tool"`      // of a connected program
	Prompt *any   `json:"ai_prompt"` // makes a task that a model performs when due
	URL    string `json:"url"`       // of web_fetch
	Query  string `json:"query"`     // of web_search
	Path   string `json:"path"`      // of a file
	End    any    `json:"end"`       // of shell_status; false = not
}

func readRuleArgs(call llm.ToolCall) ruleArgs {
	var r ruleArgs
	if json.Unmarshal([]byte(call.Arguments), &r) != nil {
		return ruleArgs{Prompt: new(any)}
	}
	if r.Action = strings.TrimSpace(r.Action); r.End != nil && r.End != false {
		r.Action = ending
	}
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
	switch target(to) {
	case readers:
		to = string(s.Place().Readers())
	case machine:
		to, _, _ = strings.Cut(args.Path, "/")
	}
	kind := args.Action + args.Tool
	if args.Prompt != nil {
		kind += " with ai_prompt"
	}
	return Act{Call: call, Action: args.Action, Covers: strings.Join(strings.Fields(call.Name+" "+kind+" "+to), " ")}
}

// refuse returns why a call may not run; nil = it may. It may if everything the model has read is
// trusted enough, if a person allowed such acts for this conversation, or if it sends only what is
// public. A call that is asked about each time needs an approval of its own, by a person who is
// trusted enough.
func (s *Set) refuse(scope Scope, call llm.ToolCall) error {
	r := ruleOf(call)
	if call.Name == CallTool && s.cfg.MCP.IsForEveryone(readRuleArgs(call).Tool) {
		r.needs = trust.User
	}
	trusted := scope.Label.Integrity >= r.needs
	switch {
	case AsksEachTime(call.Name):
		if !trusted || !scope.Granted[act(s, scope, call).exact()] {
			return notTheSame
		}
		return nil
	case trusted, scope.Granted[scope.describeAct(call).Covers], r.writes == internet && scope.sendsKnown(call):
		return nil
	case scope.Label.Integrity >= trust.User: // no text from outside: the person who asks is no owner
		return ownersOnly
	}
	return notAllowed
}

// NeedsApproval reports whether a person must approve call first, and the act to show. It is false for calls
// that Run refuses anyway.
func (s *Set) NeedsApproval(scope Scope, call llm.ToolCall) (Act, bool) {
	_, call, err := s.prepare(scope, call)
	if err != nil {
		return Act{}, false
	}
	if err = s.refuse(scope, call); err == nil || err == ownersOnly && scope.Private { //nolint:errorlint // our own values
		return Act{}, false
	}
	return act(s, scope, call), true
}

// ownersOnly tells the model that no approval of this person helps. In a room with others an owner may
// approve.
const ownersOnly = refusal("Not done: only an owner of the assistant may have this done. Tell the person so.")

// notTheSame tells that an approved call is no longer what was approved.
const notTheSame = refusal("Not done: an owner must agree to exactly this; a file that it names, its folder or the mode may have " +
	"changed since they were asked. Ask again.")

// RunApproved runs an approved act. The acts approved with it stay so if it changes files that they name.
func RunApproved(ctx context.Context, s *Set, scope Scope, a Act, later []*Act) Result {
	var same []*Act
	for _, l := range later {
		if slices.Equal(act(s, scope, l.Call).Shown, l.Shown) {
			same = append(same, l)
		}
	}
	scope.Granted = a.Grants()
	result := s.Run(ctx, scope, a.Call)
	for _, l := range same {
		l.Shown = act(s, scope, l.Call).Shown
	}
	return result
}

// notAllowed tells the model that no person can be asked here.
const notAllowed = refusal("Not done: text that did not come from the person who asks has been read here, and nobody can be asked now. " +
	"Say in your answer what you would do; the person can ask for it.")

// Policy restricts the tools of a turn. The zero value allows all.
//
// A pattern is a tool's name, or a prefix with *: "git_*"; "*" is every tool.
type Policy struct {
	Allow []string // allowed tools; empty = every tool
	Deny  []string // denied tools; overrides Allow
	Where string   // where it applies, for the model: "planning mode"
	Else  string   // how a person gets a denied tool; a clause: "`!mode developer` offers it"
}

// Allows reports whether the tool may be offered and used.
func (p Policy) Allows(name string) bool {
	fits := func(pattern string) bool {
		begin, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, begin)
	}
	return (len(p.Allow) == 0 || slices.ContainsFunc(p.Allow, fits)) && !slices.ContainsFunc(p.Deny, fits)
}

// Filter returns the specs that may be offered, in order. It does not change specs.
func (p Policy) Filter(specs []llm.ToolSpec) []llm.ToolSpec {
	var out []llm.ToolSpec
	for _, s := range specs {
		if p.Allows(s.Name) {
			out = append(out, s)
		}
	}
	return out
}

// refuse explains to the model that the tool exists, but not in this turn.
func (p Policy) refuse(name string, offered []string) error {
	text := name + " is not offered in " + cmp.Or(p.Where, "this turn") + ", so nothing was done. "
	if len(offered) > 0 {
		text += "Do without it; the tools are: " + strings.Join(offered, ", ") + "."
	} else {
		text += "There are no tools here: answer in words."
	}
	if p.Else != "" {
		text += " If the person needs it, tell them that " + p.Else + "."
	}
	return refusal(text)
}
