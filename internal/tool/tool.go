// Package tool holds the tools of the model: each is one Go file and one text that describes it to
// the model. Set checks a model's arguments, runs the tool within the rights of the asking room,
// and always answers in words that the model can act on. Rights come from Scope and rules.go, never
// from what the model writes.
//
// catalog.go lists the tools. A new one is a file of its own and a line there.
package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"reverie/internal/goal"
	"reverie/internal/llm"
	"reverie/internal/media"
	"reverie/internal/memory"
	"reverie/internal/skill"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/tool/advisor"
	"reverie/internal/tool/mcp"
	"reverie/internal/tool/web"
	"reverie/internal/tool/workspace"
	"reverie/internal/trace"
	"reverie/internal/trust"
)

// Scope says on whose behalf a tool runs and what it may access. It comes from the session, never
// from the model.
type Scope struct {
	Room    string
	User    string // who asked
	Private bool   // the room has no other readers
	// Memory lists the readable scopes; new entries go to the first.
	Memory []memory.Scope
	Now    time.Time
	Label  trust.Label // of everything the model has read, and so of what a call stores
	Policy Policy      // applies to calls, whatever was offered

	Event  string    // id of the message that is answered, as the transport names it
	Quote  string    // text of that message
	At     time.Time // time of that message; may be zero
	System bool      // a system event is handled: no person waits for an answer

	// Granted are the acts that a person allowed for this conversation, by Act.Covers.
	Granted map[string]bool
	// Key identifies what an approved call creates, so that a repeated run creates it once; "" = a
	// new identity each time.
	Key            string
	shownIntegrity *trust.Integrity // of the rows that the call has shown; nil = not tracked

	// Files are the files received in this conversation: path below the data folder → name for
	// people. They may be read and sent.
	Files map[string]string
	Web   map[string][]string                         // results of web tools in this conversation, by the tool's name
	Send  func(ctx context.Context, f Outgoing) error // into the room, once for each call; nil = files cannot be sent
	// Set changes the room's mode or model, named as in package settings; nil = no person asks here.
	Set func(ctx context.Context, name, value string) error

	Spawner    Spawner // nil = sub-sessions are off
	SubSession string  // id of the sub-session that calls; "" = the conversation itself
}

// Place returns where the answer is read.
func (s Scope) Place() trust.Place {
	return trust.Place{Room: s.Room, Person: s.User, Private: s.Private}
}

// causeID returns the message, or the sub-session, that the work is for. A system event has no
// message.
func (s Scope) causeID() string {
	if s.System && s.SubSession == "" {
		return ""
	}
	return s.Event
}

// Result answers one call. Content is plain text for the model, never empty, at most MaxResult
// characters. Failed says that the call did not do its work; then Content says what to do instead.
type Result struct {
	Content string
	Failed  bool
	// Integrity is that of the rows and files that the call read. The call's own words are trusted
	// like the call.
	Integrity trust.Integrity
}

// MaxResult is the largest Result, in characters.
const MaxResult = 16_000

// callLimit is the timeout of one call.
const callLimit = 30 * time.Second

// Config holds what the tools work on. All fields are required but Media, Files, MCP, Web, Advisors, Location (nil = UTC)
// and Log (nil = silent).
type Config struct {
	Memory   *memory.Store
	Tasks    *task.Store
	Goals    *goal.Store
	Skills   *skill.Library
	Dir      string           // the data folder
	Media    *media.Store     // nil = no files are sent
	Files    *workspace.Store // nil = there is no work folder
	MCP      *mcp.Servers     // nil = no programs are connected
	Web      *web.Client      // nil = no web; tools that it has no settings for are left out
	Advisors *advisor.Panel   // nil = no advisors
	Models   []string         // that a person can choose; fewer than two leave nothing to choose
	Commands Commands         // what may run on the machine
	Location *time.Location
	Log      *slog.Logger

	Ran func(name string, failed bool) // called after each call; may be nil
}

// Set is the set of tools. It is safe for concurrent use.
type Set struct {
	cfg   Config
	tools []entry
	limit time.Duration

	background background
}

// New returns the set of the tools in the catalog that are configured.
func New(cfg Config) *Set {
	return newSet(cfg, slices.DeleteFunc(slices.Clone(catalog), func(e entry) bool { return !cfg.has(e.name) }))
}

// has reports whether a tool has the settings that it needs.
func (c Config) has(name string) bool {
	switch name {
	case webSearch:
		return c.Web.Searches()
	case webFetch:
		return c.Web.Fetches()
	case FindTool, CallTool:
		return c.MCP != nil
	case SetModel:
		return len(c.Models) > 1
	case RunCode:
		return c.Commands.Code
	case askAdvisors:
		return c.Advisors != nil
	case Shell, ShellStatus:
		return len(c.Commands.Rooms) > 0
	}
	return true
}

func newSet(cfg Config, tools []entry) *Set {
	cfg.Location, cfg.Log = cmp.Or(cfg.Location, time.UTC), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Set{cfg: cfg, tools: tools, limit: callLimit, background: background{begin: make(chan func(context.Context))}}
}

// Specs describes the tools to the model, in the catalog's order. The bytes are stable.
func (s *Set) Specs() []llm.ToolSpec {
	return store.Map(s.tools, func(t entry) llm.ToolSpec { return t.spec })
}

// Brief describes the tools in fewer words and with fewer arguments, for the smallest windows.
// Calls may still use the others.
func (s *Set) Brief() []llm.ToolSpec {
	return store.Map(s.tools, func(t entry) llm.ToolSpec { return t.brief })
}

// Names lists the tools in the catalog's order.
func (s *Set) Names() []string {
	return store.Map(s.tools, func(t entry) string { return t.name })
}

// Summary returns the first sentence of a tool's description; "" = no such tool.
func (s *Set) Summary(name string) string {
	t, _ := entryNamed(s.tools, name)
	line, _, _ := strings.Cut(t.spec.Description, "\n")
	if i := strings.Index(line, ". "); i >= 0 {
		line = line[:i+1]
	}
	return line
}

// Run runs one call. It always returns a Result: bad arguments, failures and even panics become
// text for the model, with details in the log.
func (s *Set) Run(ctx context.Context, scope Scope, call llm.ToolCall) Result {
	began := time.Now()
	least := trust.Owner
	scope.shownIntegrity = &least
	t, _ := entryNamed(s.tools, call.Name) // without a name, if the model invented it
	ctx, span := trace.Start(ctx, trace.Tool, t.name)
	text, err := s.run(ctx, scope, call)
	span.End(trace.Failure(err))
	res := Result{Content: text}
	if err != nil {
		res = Result{Content: s.explainError(ctx, scope, call.Name, err), Failed: true}
	}
	res.Integrity = least
	res.Content = capText(res.Content, MaxResult)
	if s.cfg.Ran != nil {
		s.cfg.Ran(call.Name, res.Failed)
	}
	s.cfg.Log.Debug("tool", "tool", call.Name, "room", scope.Room, "failed", res.Failed, "took", time.Since(began).Round(time.Millisecond))
	return res
}

// prepare finds the tool of a call and normalizes the arguments. The tool must be one that may be
// offered here.
func (s *Set) prepare(scope Scope, call llm.ToolCall) (entry, llm.ToolCall, error) {
	t, known := entryNamed(s.tools, call.Name)
	offered := slices.DeleteFunc(s.Names(), func(name string) bool { return !scope.Policy.Allows(name) })
	switch {
	case !known:
		return t, call, refusal(fmt.Sprintf("There is no tool %s. The tools are: %s.", clip(call.Name), strings.Join(offered, ", ")))
	case !scope.Policy.Allows(call.Name):
		return t, call, scope.Policy.refuse(call.Name, offered)
	}
	call, err := s.Fit(call)
	if _, writes := t.rules[bound]; writes && err == nil {
		err = files{s, scope}.checkTarget(readRuleArgs(call).Path)
	}
	if err == nil && t.may != nil {
		err = t.may(s, scope)
	}
	return t, call, err
}

// Fit normalizes the arguments of a call, or returns what is wrong with them. The approval, the
// rules and the tool then see the same arguments. A call of an unknown tool is unchanged.
func (s *Set) Fit(call llm.ToolCall) (llm.ToolCall, error) {
	t, known := entryNamed(s.tools, call.Name)
	if !known {
		return call, nil
	}
	fit, err := t.fit(call.Arguments)
	if err == nil {
		call.Arguments = fit
	}
	return call, err
}

func (s *Set) run(ctx context.Context, scope Scope, call llm.ToolCall) (text string, err error) {
	t, call, err := s.prepare(scope, call)
	if err != nil {
		return "", err
	}
	if err := s.refuse(scope, call); err != nil {
		return "", err
	}
	if scope.Granted[scope.describeAct(call).Covers] { // a person approved this kind of act in advance
		scope.Label.Integrity = max(scope.Label.Integrity, trust.Guest)
	}
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("tool panicked", "tool", call.Name, "room", scope.Room, "panic", p, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	limit := s.limit
	if t.name == Shell {
		limit = s.cfg.Commands.Time + callLimit // it ends by itself before
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return t.run(s, ctx, scope, call.Arguments)
}

// MarkShown records that the call shows text of this integrity to the model.
func (s Scope) MarkShown(of trust.Integrity) {
	if s.shownIntegrity != nil {
		*s.shownIntegrity = min(*s.shownIntegrity, of)
	}
}

// refusal is an error whose text goes to the model verbatim.
type refusal string

func (r refusal) Error() string { return string(r) }

var errPanic = errors.New("a fault in the program")

// explainError tells the model about an error: what happened, and what to do next.
func (s *Set) explainError(ctx context.Context, scope Scope, name string, err error) string {
	var said refusal
	var unusable workspace.Refused
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &said):
		return string(said)
	case errors.As(err, &unusable):
		return string(unusable)
	case ctx.Err() != nil:
		return name + " was stopped before it was done. Do not count on its having happened."
	case errors.Is(err, context.DeadlineExceeded):
		s.cfg.Log.Warn("tool took too long", "tool", name, "room", scope.Room, "limit", s.limit, "err", err)
		return fmt.Sprintf("%s took longer than %v and was stopped. "+
			"Try it once more; if it fails again, say so to the person.", name, s.limit)
	case errors.Is(err, errPanic), errors.As(err, &path), errors.As(err, &link):
		// Paths and internals are for the operator only.
		s.cfg.Log.Error("tool failed", "tool", name, "room", scope.Room, "err", err)
		return name + " failed: something on the assistant's own machine does not work, and the operator's log says what. " +
			"Tell the person that it was not done; calling it again will hardly help."
	}
	s.cfg.Log.Warn("tool failed", "tool", name, "room", scope.Room, "err", err)
	return name + " failed: " + err.Error()
}

// capText makes text valid UTF-8, non-empty, and at most limit characters long. It cuts at a line
// end if one is near.
func capText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.TrimSpace(text) == "" {
		return "Done; there is nothing to show."
	}
	all := []rune(text)
	if len(all) <= limit {
		return text
	}
	note := fmt.Sprintf("\n[cut here: this is the beginning of %d characters]", len(all))
	keep := string(all[:limit-len(note)])
	if end := strings.LastIndexByte(keep, '\n'); end > len(keep)*3/4 {
		keep = keep[:end]
	}
	return keep + note
}
