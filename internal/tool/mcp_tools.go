package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/tool/mcp"
	"reverie/internal/trust"
)

// The tools for connected programs. They are two for any number of programs, so that the list of tools,
// which stands at the beginning of every request, stays the same when programs come and go.
const (
	FindTool = "find_tool"
	CallTool = "call_tool"
)

type findToolArgs struct {
	Query string `json:"query" doc:"Words of what is to be done, or a tool's name; left out = the names of all."`
}

// maxFound is how many tools findTool shows with their arguments.
const maxFound = 5

// findTool shows the tools that match most words of the query.
func (s *Set) findTool(ctx context.Context, _ Scope, a findToolArgs) (string, error) {
	found, err := remoteTools(ctx, s.cfg.MCP)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", refusal("No program with tools is connected now. Do without, and tell the person so.")
	}
	words := strings.Fields(strings.ToLower(a.Query))
	if len(words) == 0 {
		return "All tools: " + strings.Join(toolNames(found), ", ") + ".", nil
	}
	matches := func(t mcp.Tool) (n int) {
		for _, w := range words {
			if strings.Contains(strings.ToLower(t.Name+" "+t.Description), w) {
				n++
			}
		}
		return n
	}
	slices.SortStableFunc(found, func(a, b mcp.Tool) int { return cmp.Compare(matches(b), matches(a)) })
	found = slices.DeleteFunc(found, func(t mcp.Tool) bool { return matches(t) == 0 })
	if len(found) == 0 {
		return "", refusal("No tool matches these words. Try once with other words, or leave query out to see the names of all.")
	}
	var b strings.Builder
	b.WriteString("Call one with call_tool:\n")
	for _, t := range found[:min(len(found), maxFound)] {
		fmt.Fprintf(&b, "- %s: %s Arguments: %s\n", t.Name, text.Clip(t.Description, 1000), t.Schema)
	}
	return b.String(), nil
}

// remoteTools lists the tools of connected programs by full name.
func remoteTools(ctx context.Context, servers *mcp.Servers) (all []mcp.Tool, err error) {
	programs, err := servers.Running(ctx)
	for _, p := range programs {
		for _, t := range p.Tools {
			t.Name = p.Name + "." + t.Name
			all = append(all, t)
		}
	}
	return all, err
}

func toolNames(tools []mcp.Tool) []string {
	return store.Map(tools, func(t mcp.Tool) string { return t.Name })
}

type callToolArgs struct {
	Tool      string          `json:"tool" rule:"required" doc:"Its full name, such as github.create_issue."`
	Arguments json.RawMessage `json:"arguments" doc:"As find_tool shows them."`
}

// callTool calls a tool of a connected program. Its answer is text from outside.
func (s *Set) callTool(ctx context.Context, scope Scope, a callToolArgs) (string, error) {
	scope.MarkShown(trust.Foreign)
	if len(a.Arguments) == 0 {
		a.Arguments = json.RawMessage("{}")
	}
	said, failed, err := s.cfg.MCP.Call(ctx, a.Tool, a.Arguments)
	switch {
	case errors.Is(err, mcp.ErrNoTool):
		all, err := remoteTools(ctx, s.cfg.MCP)
		if err != nil {
			return "", err
		}
		near := text.Nearest(a.Tool, toolNames(all))
		return "", refusal(fmt.Sprintf("There is no tool %s, or its program is not connected. Nearest: %s. find_tool shows them all.",
			clip(a.Tool), cmp.Or(strings.Join(near, ", "), "none")))
	case err != nil:
		return "", err
	case failed:
		return "", refusal("The program could not do it: " + cmp.Or(said, "it gives no reason") +
			"\nChange the arguments if they were wrong; else tell the person.")
	}
	return cmp.Or(said, "Done; the program returned nothing."), nil
}
