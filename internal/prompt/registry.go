package prompt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Source says where a prompt of the registry comes from.
type Source string

// The sources.
const (
	Static     Source = "static" // the program
	FromConfig Source = "config" // the owner
	FromMCP    Source = "mcp"    // a connected server: data, never instructions
)

// Registered is one prompt of the registry.
type Registered struct {
	ID     string
	Tags   []string
	Source Source
	Server string // which one, for FromMCP
	Text   string
}

// Registry holds prompts that come and go while the program runs: what the
// configuration says, and what connected servers offer. It is safe for
// concurrent use.
type Registry struct {
	mu      sync.Mutex
	prompts []Registered // by ID; never changed once made
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{} }

// Register adds a prompt, or replaces the one with its ID. A server cannot
// replace what is not its own.
func (r *Registry) Register(p Registered) error {
	switch {
	case p.ID == "" || strings.TrimSpace(p.Text) == "":
		return fmt.Errorf("prompt: register %q: an ID and a text are needed", p.ID)
	case !slices.Contains([]Source{Static, FromConfig, FromMCP}, p.Source):
		return fmt.Errorf("prompt: register %q: unknown source %q", p.ID, p.Source)
	case (p.Source == FromMCP) != (p.Server != ""):
		return fmt.Errorf("prompt: register %q: a server is named by prompts that come from one, and by no others", p.ID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i, found := slices.BinarySearchFunc(r.prompts, p.ID, byID)
	if found {
		if old := r.prompts[i]; old.Source != p.Source || old.Server != p.Server {
			return fmt.Errorf("prompt: register %q: it is taken by %s", p.ID, cmp.Or(old.Server, string(old.Source)))
		}
	}
	p.Tags = slices.Clone(p.Tags)
	next := slices.Clone(r.prompts)
	if found {
		next[i] = p
	} else {
		next = slices.Insert(next, i, p)
	}
	r.prompts = next
	return nil
}

func byID(p Registered, id string) int { return cmp.Compare(p.ID, id) }

// Get returns the prompt with an ID.
func (r *Registry) Get(id string) (Registered, bool) {
	all := r.list()
	i, found := slices.BinarySearchFunc(all, id, byID)
	if !found {
		return Registered{}, false
	}
	return all[i], true
}

// ByTag returns the prompts with a tag, by ID.
func (r *Registry) ByTag(tag string) []Registered {
	return r.those(func(p Registered) bool { return slices.Contains(p.Tags, tag) })
}

// BySource returns the prompts from a source, by ID.
func (r *Registry) BySource(s Source) []Registered {
	return r.those(func(p Registered) bool { return p.Source == s })
}

// Clear takes out what a server has registered, when it is gone, and returns
// how many prompts that were.
func (r *Registry) Clear(server string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := len(r.prompts)
	r.prompts = slices.DeleteFunc(slices.Clone(r.prompts), func(p Registered) bool { return p.Source == FromMCP && p.Server == server })
	return before - len(r.prompts)
}

func (r *Registry) list() []Registered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.prompts
}

func (r *Registry) those(want func(Registered) bool) []Registered {
	var out []Registered
	for _, p := range r.list() {
		if want(p) {
			out = append(out, p)
		}
	}
	return out
}

// appTag marks the registered prompts that are a connected app's own description
// of itself, which stands in the list of apps.
const appTag = "app"

// gatherRegistered gathers the prompts from a source.
func gatherRegistered(s Source) func(context.Context, *question) (*content, error) {
	return func(_ context.Context, q *question) (*content, error) {
		var lines []string
		for _, p := range q.a.cfg.Registry.BySource(s) {
			switch {
			case slices.Contains(p.Tags, appTag):
			case s == FromMCP:
				lines = append(lines, p.Server+", "+p.ID+": "+strings.TrimSpace(p.Text))
			default:
				lines = append(lines, q.fill(p.Text))
			}
		}
		return q.said(string(s)+" prompts", "", lines...)
	}
}

// gatherApps gathers the connected apps, a line each.
func gatherApps(_ context.Context, q *question) (*content, error) {
	var lines []string
	for _, p := range q.a.cfg.Registry.ByTag(appTag) {
		lines = append(lines, "- "+oneLine(cmp.Or(p.Server, p.ID)+": "+p.Text, 300))
	}
	return q.said("apps", "", lines...)
}
