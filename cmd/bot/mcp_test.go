package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reverie/internal/store"
	"reverie/internal/test/expect"
)

// mcpMemory is a client of `bot mcp serve`, in a data folder of its own.
type mcpMemory struct {
	dir string
	*mcp.ClientSession
}

// bot runs a subcommand on the same data folder.
func (m mcpMemory) bot(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("bot", args...)
	cmd.Dir = m.dir
	return string(expect.Must(cmd.CombinedOutput())(t))
}

// call calls a tool and returns its text.
func (m mcpMemory) call(t *testing.T, name string, args map[string]any) (text string, failed bool) {
	t.Helper()
	res := expect.Must(m.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args}))(t)
	for _, c := range res.Content {
		text += c.(*mcp.TextContent).Text
	}
	return text, res.IsError
}

// serveMemory starts the built program, and the official client at that version of the protocol.
func serveMemory(t *testing.T, protocol string, args ...string) mcpMemory {
	t.Helper()
	m := mcpMemory{dir: t.TempDir()}
	expect.OK(t, store.WriteFile(filepath.Join(m.dir, "config.yaml"), []byte(
		"data: ./data\ntimezone: UTC\nllm:\n  models:\n    - {name: stand-in, base_url: \"rehearsal:\", model: rehearsal}\n")))
	cmd := exec.Command("bot", append([]string{"mcp", "serve"}, args...)...)
	cmd.Dir = m.dir
	client := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: protocol})
	expect.OK(t, err)
	expect.Equal(t, session.InitializeResult().ProtocolVersion, protocol, "version")
	t.Cleanup(func() {
		if err := session.Close(); err != nil {
			t.Error("the program does not end with its input:", err)
		}
	})
	m.ClientSession = session
	return m
}

// TestMemoryServer: another program searches, adds and forgets memories of one person, in both
// versions of the protocol, beside the command line.
//
// What it adds is foreign, and other people's memories are out of its reach.
func TestMemoryServer(t *testing.T) {
	for _, protocol := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(protocol, func(t *testing.T) {
			m := serveMemory(t, protocol, "--for", "@ann:x")
			tools := expect.Must(m.ListTools(t.Context(), nil))(t)
			expect.Equal(t, len(tools.Tools), 3, "tools")
			m.bot(t, "memory", "add", "--scope", "private:@bob:x", "my locker code is canary-7431")
			m.bot(t, "memory", "add", "--scope", "shared", "the wifi is called canary-7432")
			others := regexp.MustCompile(`mem_\w+`).FindString(m.bot(t, "memory", "list", "locker"))

			said, _ := m.call(t, "remember", map[string]any{"text": "Jana lives in Brno"})
			id := regexp.MustCompile(`^Remembered: (mem_\w+)  Jana lives in Brno$`).FindStringSubmatch(said)
			if id == nil {
				t.Fatalf("remember: %q", said)
			}
			if said, _ = m.call(t, "search", map[string]any{"query": "Jana, or a locker code, or the wifi"}); !strings.Contains(said, id[1]) ||
				strings.Contains(said, "canary") {
				t.Errorf("search: %q", said)
			}
			if history := m.bot(t, "memory", "history", id[1]); !strings.Contains(history, "integrity foreign") ||
				!strings.Contains(history, "private:@ann:x") {
				t.Errorf("history: %s", history)
			}
			for name, refused := range map[string]map[string]any{
				"a secret":         {"text": "my password is hunter2-Xy77q"},
				"an empty text":    {"text": " "},
				"a wrong argument": {"texts": "Jana"},
			} {
				if said, failed := m.call(t, "remember", refused); !failed {
					t.Errorf("%s: %q", name, said)
				}
			}
			for name, what := range map[string]string{"words": "Jana", "another person's": others, "an unknown one": "mem_aaaaaaaaaaaa"} {
				if said, failed := m.call(t, "forget", map[string]any{"id": what}); !failed {
					t.Errorf("forget by %s: %q", name, said)
				}
			}
			if said, failed := m.call(t, "forget", map[string]any{"id": id[1]}); failed || said != "Forgotten for good." {
				t.Errorf("forget: %q", said)
			}
			if said, failed := m.call(t, "remember", map[string]any{"text": "Jana lives in Brno"}); !failed {
				t.Errorf("remembered again after it was forgotten: %q", said)
			}
			if list := m.bot(t, "memory", "list"); strings.Contains(list, "Jana") || strings.Count(list, "canary") != 2 {
				t.Errorf("list: %s", list)
			}
		})
	}
}
