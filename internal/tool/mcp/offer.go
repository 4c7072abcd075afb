package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reverie/internal/store"
	"reverie/internal/text"
)

// Offer is what a server has: its tools and prompts, each by name. The model reads these texts, so an
// owner has to agree to them, and a server that changes one is off until the owner agrees again.
type Offer struct {
	Tools   []Tool   `json:"tools"`
	Prompts []Prompt `json:"prompts,omitempty"`
}

// Tool is a tool of a server.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of its arguments
}

// Prompt is a text of a server for the model. Prompts with arguments are left out.
type Prompt struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// The limits of an offer. A server with more is refused.
const (
	maxTools       = 200
	maxDescription = 4_000  // characters of a description or a prompt
	maxSchema      = 20_000 // bytes
)

// readOffer asks a server for its tools and prompts.
func readOffer(ctx context.Context, s *mcp.ClientSession) (o Offer, err error) {
	caps := s.InitializeResult().Capabilities
	if caps == nil {
		return o, errors.New("the server says nothing of what it can do")
	}
	if caps.Tools != nil {
		for t, err := range s.Tools(ctx, nil) {
			if err != nil {
				return o, fmt.Errorf("list tools: %w", err)
			}
			schema, err := json.Marshal(t.InputSchema)
			if err != nil {
				return o, fmt.Errorf("list tools: %s: %w", t.Name, err)
			}
			o.Tools = append(o.Tools, Tool{t.Name, text.Clean(cmp.Or(t.Description, t.Title)), schema})
			if len(o.Tools) > maxTools {
				return o, fmt.Errorf("the server has more than %d tools", maxTools)
			}
		}
	}
	if caps.Prompts != nil {
		for p, err := range s.Prompts(ctx, nil) {
			if err != nil {
				return o, fmt.Errorf("list prompts: %w", err)
			}
			if len(p.Arguments) > 0 {
				continue
			}
			said, err := s.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name})
			if err != nil {
				return o, fmt.Errorf("read prompt %s: %w", p.Name, err)
			}
			o.Prompts = append(o.Prompts, Prompt{p.Name, text.Clean(textOfPrompt(said))})
			if len(o.Prompts) > maxTools {
				return o, fmt.Errorf("the server has more than %d prompts", maxTools)
			}
		}
	}
	slices.SortFunc(o.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(o.Prompts, func(a, b Prompt) int { return strings.Compare(a.Name, b.Name) })
	return o, o.check()
}

func textOfPrompt(p *mcp.GetPromptResult) string {
	var parts []string
	for _, m := range p.Messages {
		if t, ok := m.Content.(*mcp.TextContent); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// check refuses names that no model can send, and texts that are too long.
func (o Offer) check() error {
	for _, t := range o.Tools {
		switch {
		case t.Name == "" || len(t.Name) > 64 || strings.ContainsFunc(t.Name, func(r rune) bool { return !isNameRune(r) }):
			return fmt.Errorf("the tool name %q is not letters, digits, - _ . and /, at most 64", text.Clip(t.Name, 80))
		case len([]rune(t.Description)) > maxDescription, len(t.Schema) > maxSchema:
			return fmt.Errorf("the description of the tool %s is too long", t.Name)
		}
	}
	for _, p := range o.Prompts {
		if len([]rune(p.Text)) > maxDescription {
			return fmt.Errorf("the prompt %q is too long", text.Clip(p.Name, 80))
		}
	}
	return nil
}

func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./", r)
}

// json returns the offer as it is stored. Equal offers have equal bytes.
func (o Offer) json() string {
	all, err := json.Marshal(o)
	if err != nil {
		panic("mcp: encode an offer: " + err.Error()) // strings and valid JSON always encode
	}
	return string(all)
}

// Changes lists in words what is new, gone or different in o since the offer old.
func (o Offer) Changes(old Offer) (lines []string) {
	was, now := old.texts(), o.texts()
	for _, name := range slices.Sorted(maps.Keys(now)) {
		before, known := was[name]
		switch {
		case !known:
			lines = append(lines, "new "+name)
		case before != now[name]:
			lines = append(lines, name+" has changed")
		}
		delete(was, name)
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		lines = append(lines, name+" is gone")
	}
	return lines
}

// texts returns what the model may read of each tool and prompt.
func (o Offer) texts() map[string]string {
	all := map[string]string{}
	for _, t := range o.Tools {
		all["tool "+t.Name] = t.Description + "\n" + string(t.Schema)
	}
	for _, p := range o.Prompts {
		all["prompt "+p.Name] = p.Text
	}
	return all
}

// agreed returns what the owner agreed to, by server.
func agreed(ctx context.Context, db *store.DB) (map[string]string, error) {
	return store.Pairs[string, string](ctx, db, `SELECT name, offer FROM mcp_server`)
}

// Agreed returns the offer of a server that the owner agreed to. ok reports whether one is stored.
func (s *Servers) Agreed(ctx context.Context, name string) (o Offer, ok bool, err error) {
	all, err := agreed(ctx, s.cfg.DB)
	if err != nil || all[name] == "" {
		return o, false, err
	}
	return o, true, json.Unmarshal([]byte(all[name]), &o)
}

// Agree stores that the owner agrees to a server's offer. A running bot uses it from the next request on.
func (s *Servers) Agree(ctx context.Context, name string, o Offer) error {
	return store.Exec(ctx, s.cfg.DB, `INSERT OR REPLACE INTO mcp_server (name, offer, agreed_at) VALUES (?, ?, ?)`,
		name, o.json(), time.Now().UnixMilli())
}
