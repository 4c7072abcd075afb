// Package mcptest runs real MCP servers of the official SDK, for tests.
package mcptest

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"reverie/internal/store"
	"reverie/internal/tool/mcp"
)

// Server is a server with one tool, create_issue, and one prompt, house_rules.
type Server struct {
	URL   string
	Token string // that requests must have; "" = none
	Adds  string // to each result

	sdk *sdk.Server

	mu     sync.Mutex
	issues []string
}

type issueArgs struct {
	Title string `json:"title" jsonschema:"in a few words"`
}

func newServer() *Server {
	s := &Server{sdk: sdk.NewServer(&sdk.Implementation{Name: "issues", Version: "1"}, nil)}
	s.Describe("Create an issue in the tracker.")
	s.sdk.AddPrompt(&sdk.Prompt{Name: "house_rules"}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Titles are short."}}}}, nil
	})
	return s
}

// Start starts a server, which ends with the test. A stateless one speaks the protocol of 2026-07-28,
// another that of 2025-11-25.
func Start(t testing.TB, stateless bool) *Server {
	s := newServer()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk }, &sdk.StreamableHTTPOptions{Stateless: stateless})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Token != "" && r.Header.Get("Authorization") != "Bearer "+s.Token {
			http.Error(w, "no token", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL = server.URL
	return s
}

// Program returns the command of a server that Main is, and the folder to allow it. protocol is its version.
func Program(t testing.TB, protocol string) mcp.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Server{Name: "github", Command: "exec " + self + " mcp-server " + protocol, Folders: []string{filepath.Dir(self)}}
}

// Main serves on the standard streams, if this process was started by the command of Program. Its tools
// are create_issue, and run, which runs a command of sh and returns what it prints.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != "mcp-server" {
		return
	}
	s := newServer()
	if text, err := os.ReadFile("description"); err == nil {
		s.Describe(string(text))
	}
	if os.Args[2] < "2026" { // an old server knows no server/discover
		s.sdk.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
				if method == "server/discover" {
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "unknown"}
				}
				return next(ctx, method, r)
			}
		})
	}
	sdk.AddTool(s.sdk, &sdk.Tool{Name: "run"}, func(_ context.Context, r *sdk.CallToolRequest, a issueArgs) (*sdk.CallToolResult, any, error) {
		out, _ := exec.Command("/bin/sh", "-c", a.Title).CombinedOutput()
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(out)}}}, nil, nil
	})
	if err := s.sdk.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(0)
}

// Describe changes the description of create_issue.
func (s *Server) Describe(text string) {
	sdk.AddTool(s.sdk, &sdk.Tool{Name: "create_issue", Description: text},
		func(_ context.Context, _ *sdk.CallToolRequest, a issueArgs) (*sdk.CallToolResult, any, error) {
			if a.Title == "" {
				return nil, nil, fmt.Errorf("an issue needs a title")
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.issues = append(s.issues, a.Title)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "Created: " + a.Title + s.Adds}}}, nil, nil
		})
}

// Issues returns the titles of all created issues.
func (s *Server) Issues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.issues...)
}

// Connect returns servers with s as github, connected and agreed to, until the test ends.
func (s *Server) Connect(t testing.TB, db *store.DB) *mcp.Servers {
	t.Helper()
	all := mcp.New(mcp.Config{DB: db, Version: "test", Every: 20 * time.Millisecond, Servers: []mcp.Server{{Name: "github", URL: s.URL, Token: s.Token, Everyone: true}}})
	offer, err := all.Inspect(t.Context(), "github")
	if err == nil {
		err = all.Agree(t.Context(), "github", offer)
	}
	if err != nil {
		t.Fatal(err)
	}
	Run(t, all)
	Await(t, func() bool { running, err := all.Running(t.Context()); return err == nil && len(running) == 1 })
	return all
}

// Run runs servers until the test ends.
func Run(t testing.TB, all *mcp.Servers) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- all.Run(ctx) }() // go: awaited by the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// Await waits up to 20 seconds for a condition.
func Await(t testing.TB, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it did not happen")
}
