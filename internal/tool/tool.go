// Package tool is what the model can do besides talking: a set of tools, each
// one Go file and one text that describes it to the model. The set checks the
// arguments a model wrote, runs the tool within what the asking room may see,
// and always answers in words the model can act on.
//
// catalog.go lists the tools; adding one is a file of its own and a line there.
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
	"reverie/internal/task"
	"reverie/internal/trust"
)

// Scope is on whose behalf a tool runs and what it may touch. It comes from
// the session, never from the model.
type Scope struct {
	Room    string
	User    string // who asked
	Private bool   // nobody else reads this room
	// Memory is what may be read here; new entries go to the first.
	Memory []memory.Scope
	Now    time.Time
	Label  trust.Label // of all that the model has read, and so of what a call stores
	Policy Policy      // what may be used; it holds for calls, whatever was offered

	Event  string    // the message it acts on, as the transport names it
	Quote  string    // what that says
	At     time.Time // when it was said; may be zero
	System bool      // a system event is worked on: no person waits for an answer

	// Granted are acts that a person allowed for this conversation, by Act.Covers.
	Granted map[string]bool
	// Key names what an approved call makes, so that running it again makes nothing twice;
	// empty = a name of its own each time.
	Key string
	saw *trust.Integrity // of the rows that a call has shown so far; nil = nobody asks

	// Files are those that came in this conversation, by path below the data folder:
	// how people call them. They may be read and sent.
	Files map[string]string
	Send  func(ctx context.Context, f Outgoing) error // into the room, once for each call; nil = nothing is sent here
	// SetMode puts the room into another mode; nil = no person asks here.
	SetMode func(ctx context.Context, name string) error

	Spawner Spawner // nil = there are no sub-sessions
	Helper  string  // the sub-session that it acts for; empty = the conversation itself
}

// Place is where the answer is read.
func (s Scope) Place() trust.Place {
	return trust.Place{Room: s.Room, Person: s.User, Private: s.Private}
}

// asked is the message, or the sub-session, that the work is done for. A system event is
// nobody's message.
func (s Scope) asked() string {
	if s.System && s.Helper == "" {
		return ""
	}
	return s.Event
}

// Result answers one call. Content is plain text for the model, never empty,
// at most MaxResult characters. Failed says that the call did not do its work;
// Content then says what to do instead.
type Result struct {
	Content string
	Failed  bool
	// Integrity is of what the call read to answer: rows, files. What the call itself said is
	// as far trusted as the call.
	Integrity trust.Integrity
}

// MaxResult is the most characters of a Result.
const MaxResult = 16_000

// callLimit is how long one call may take.
const callLimit = 30 * time.Second

// Config is what the tools work on. Everything but Media, Location (nil = UTC) and
// Log (nil = silent) is needed.
type Config struct {
	Memory   *memory.Store
	Tasks    *task.Store
	Goals    *goal.Store
	Skills   *skill.Library
	Dir      string       // the data folder
	Media    *media.Store // nil = no file is sent
	Location *time.Location
	Log      *slog.Logger
}

// Set is the tools, ready to run. It is safe for concurrent use.
type Set struct {
	cfg   Config
	tools []entry
	limit time.Duration
}

// New returns the set of all tools in the catalog.
func New(cfg Config) *Set { return newSet(cfg, catalog) }

func newSet(cfg Config, tools []entry) *Set {
	cfg.Location, cfg.Log = cmp.Or(cfg.Location, time.UTC), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Set{cfg: cfg, tools: tools, limit: callLimit}
}

// Specs describes the tools to the model, in the catalog's order, every time
// in the same bytes.
func (s *Set) Specs() []llm.ToolSpec {
	return each(s.tools, func(t entry) llm.ToolSpec { return t.spec })
}

// Brief describes the tools in fewer words and with fewer arguments, for the smallest windows.
// A call may have the others all the same.
func (s *Set) Brief() []llm.ToolSpec {
	return each(s.tools, func(t entry) llm.ToolSpec { return t.brief })
}

// Names lists the tools in the catalog's order.
func (s *Set) Names() []string {
	return each(s.tools, func(t entry) string { return t.name })
}

func each[T any](tools []entry, of func(entry) T) []T {
	out := make([]T, len(tools))
	for i, t := range tools {
		out[i] = of(t)
	}
	return out
}

// Summary is the first sentence of what a tool's description says; "" for one
// that there is not.
func (s *Set) Summary(name string) string {
	t, _ := named(s.tools, name)
	line, _, _ := strings.Cut(t.spec.Description, "\n")
	if i := strings.Index(line, ". "); i >= 0 {
		line = line[:i+1]
	}
	return line
}

// Run runs one call. It always returns a Result: bad arguments, failures and
// even panics become words for the model, and details go to the log.
func (s *Set) Run(ctx context.Context, scope Scope, call llm.ToolCall) Result {
	began := time.Now()
	least := trust.Owner
	scope.saw = &least
	text, err := s.run(ctx, scope, call)
	res := Result{Content: text}
	if err != nil {
		res = Result{Content: s.explain(ctx, scope, call.Name, err), Failed: true}
	}
	res.Integrity = least
	res.Content = capText(res.Content, MaxResult)
	s.cfg.Log.Debug("tool", "tool", call.Name, "room", scope.Room, "failed", res.Failed, "took", time.Since(began).Round(time.Millisecond))
	return res
}

// ready finds the tool of a call, if it may be offered here, and fits the arguments to it.
func (s *Set) ready(scope Scope, call llm.ToolCall) (entry, llm.ToolCall, error) {
	t, known := named(s.tools, call.Name)
	offered := slices.DeleteFunc(s.Names(), func(name string) bool { return !scope.Policy.Allows(name) })
	switch {
	case !known:
		return t, call, refusal(fmt.Sprintf("There is no tool %s. The tools are: %s.", clip(call.Name), strings.Join(offered, ", ")))
	case !scope.Policy.Allows(call.Name):
		return t, call, scope.Policy.refuse(call.Name, offered)
	}
	call, err := s.Fit(call)
	return t, call, err
}

// Fit writes the arguments of a call as its tool takes them, or says what is wrong with them. What a
// person is asked about, what the rules look at and what runs is then the same. A call of a tool that
// there is not stays as it is.
func (s *Set) Fit(call llm.ToolCall) (llm.ToolCall, error) {
	t, known := named(s.tools, call.Name)
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
	t, call, err := s.ready(scope, call)
	if err != nil {
		return "", err
	}
	if !scope.allowed(call) {
		return "", notAllowed
	}
	if scope.Granted[scope.act(call).Covers] { // nobody saw the act, but a person wants its kind
		scope.Label.Integrity = max(scope.Label.Integrity, trust.Guest)
	}
	defer func() {
		if p := recover(); p != nil {
			s.cfg.Log.Error("tool panicked", "tool", call.Name, "room", scope.Room, "panic", p, "stack", string(debug.Stack()))
			err = errPanic
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	return t.run(s, ctx, scope, call.Arguments)
}

// Shows notes that the call shows text of this integrity to the model.
func (s Scope) Shows(of trust.Integrity) {
	if s.saw != nil {
		*s.saw = min(*s.saw, of)
	}
}

// refusal is an error whose text is meant for the model as it stands.
type refusal string

func (r refusal) Error() string { return string(r) }

var errPanic = errors.New("a fault in the program")

// explain tells the model about an error: what happened, and what to do next.
func (s *Set) explain(ctx context.Context, scope Scope, name string, err error) string {
	var said refusal
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &said):
		return string(said)
	case ctx.Err() != nil:
		return name + " was stopped before it was done. Do not count on its having happened."
	case errors.Is(err, context.DeadlineExceeded):
		s.cfg.Log.Warn("tool took too long", "tool", name, "room", scope.Room, "limit", s.limit, "err", err)
		return fmt.Sprintf("%s took longer than %v and was stopped. "+
			"Try it once more; if it fails again, say so to the person.", name, s.limit)
	case errors.Is(err, errPanic), errors.As(err, &path), errors.As(err, &link):
		// Paths of this machine and the program's insides are the operator's business.
		s.cfg.Log.Error("tool failed", "tool", name, "room", scope.Room, "err", err)
		return name + " failed: something on the assistant's own machine does not work, and the operator's log says what. " +
			"Tell the person that it was not done; calling it again will hardly help."
	}
	s.cfg.Log.Warn("tool failed", "tool", name, "room", scope.Room, "err", err)
	return name + " failed: " + err.Error()
}

// capText makes text valid UTF-8, non-empty, and at most limit characters
// long, cut at a line if one ends nearby.
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
