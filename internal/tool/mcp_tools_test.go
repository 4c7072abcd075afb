package tool

import (
	"strings"
	"testing"

	"reverie/internal/llm"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/tool/mcp/mcptest"
	"reverie/internal/trust"
)

// TestConnectedPrograms: the model finds a tool of a program by its words and calls it, with arguments
// as an object or as text. What comes back is from outside.
func TestConnectedPrograms(t *testing.T) {
	w := newWorkshop(t)
	program := mcptest.Start(t, true)
	w.Set.cfg.MCP = program.Connect(t, expect.Must(storetest.Open(t, t.TempDir()+"/bot.db"))(t))
	found := w.call(t, direct(), FindTool, `{"query": "open an ISSUE about the build"}`)
	expect.Has(t, found.Content, "github.create_issue: Create an issue in the tracker.", `"title"`)
	expect.Equal(t, found.Integrity, trust.Owner, "the owner agreed to these texts")
	expect.Has(t, w.call(t, direct(), FindTool, `{}`).Content, "All tools: github.create_issue.")
	expect.Has(t, w.bad(t, direct(), FindTool, `{"query": "weather"}`), "No tool matches")
	expect.Has(t, w.bad(t, direct(), CallTool, `{"tool": "github.create_isue"}`), "Nearest: github.create_issue")
	expect.Has(t, w.bad(t, direct(), CallTool, `{"tool": "github.create_issue", "arguments": {"title": ""}}`), "could not do it", "an issue needs a title")

	for _, arguments := range []string{`{"title": "One"}`, `"{\"title\": \"Two\"}"`} {
		res := w.call(t, direct(), CallTool, `{"tool": "github.create_issue", "arguments": `+arguments+`}`)
		expect.Has(t, res.Content, "Created: ")
		expect.Equal(t, res.Integrity, trust.Foreign, "integrity")
	}
	expect.Equal(t, strings.Join(program.Issues(), "|"), "One|Two", "issues")
}

// TestConnectedProgramsAsk: after foreign text a call asks, and a grant covers that one tool.
func TestConnectedProgramsAsk(t *testing.T) {
	w := newWorkshop(t)
	scope := direct()
	scope.Label.Integrity = trust.Guest
	call := llm.ToolCall{Name: CallTool, Arguments: `{"tool": "github.create_issue", "arguments": {"title": "One"}}`}
	act, ask := w.Set.NeedsApproval(scope, call)
	expect.False(t, !ask || act.Covers != "call_tool github.create_issue program", "asks %v for %q", ask, act.Covers)
	scope.Granted = map[string]bool{act.Covers: true}
	_, ask = w.Set.NeedsApproval(scope, llm.ToolCall{Name: CallTool, Arguments: `{"tool": "github.delete_issue"}`})
	expect.False(t, !ask, "a grant for one tool covers another")
	scope.Granted, scope.Label.Integrity = nil, trust.User
	expect.Has(t, w.bad(t, scope, CallTool, `{"tool": "private.read"}`), "only an owner")
	_, ask = w.Set.NeedsApproval(scope, llm.ToolCall{Name: CallTool, Arguments: `{"tool": "private.read"}`})
	expect.False(t, ask, "a person who is no owner is asked")
}
