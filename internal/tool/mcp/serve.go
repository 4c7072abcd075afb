// Package mcp speaks the Model Context Protocol. Serve offers one person's memory to another
// program, such as an editor.
package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/text"
	"reverie/internal/trust"
)

// Memory is what Serve offers. All fields are required.
type Memory struct {
	Store  *memory.Store
	Search func(context.Context, memory.Query) ([]memory.Hit, error)
	Person string // whose memory it is; their private scope is the only one that can be read or changed
	Zone   *time.Location
}

// Most hits of a search, and as many as are shown by default.
const (
	maxHits     = 50
	defaultHits = 10
)

type searchArgs struct {
	Query string `json:"query" jsonschema:"what to look for, in plain words"`
	Limit int    `json:"limit,omitempty" jsonschema:"how many at most, 1 to 50; 10 if left out"`
}

type rememberArgs struct {
	Text string `json:"text" jsonschema:"one fact, as a sentence that can be understood by itself"`
}

type forgetArgs struct {
	ID string `json:"id" jsonschema:"the id that search shows, such as mem_abc123"`
}

// Serve answers requests on in and out, one JSON message a line, until in ends or ctx is done. It
// negotiates the version of the protocol. version is the program's.
//
// What the other program stores is foreign text: a model wrote it, and it is not known what that model
// has read.
func Serve(ctx context.Context, m Memory, version string, in io.Reader, out io.Writer) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "reverie", Title: "Reverie's memory", Version: version}, nil)
	closed := new(false) // nothing outside the data folder is touched
	mcp.AddTool(s, &mcp.Tool{Name: "search", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: closed},
		Description: "Search what Reverie remembers about " + m.Person + ", by words and meaning."}, handle(m.search))
	mcp.AddTool(s, &mcp.Tool{Name: "remember",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: closed},
		Description: "Remember one fact, for " + m.Person + " alone."}, handle(m.remember))
	mcp.AddTool(s, &mcp.Tool{Name: "forget", Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true), OpenWorldHint: closed},
		Description: "Forget a memory for good, with its earlier wordings. It cannot be undone: ask the person first."}, handle(m.forget))
	err := s.Run(ctx, &mcp.IOTransport{Reader: io.NopCloser(in), Writer: nopCloser{out}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil
	}
	return err
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// handle adapts a function that answers in text. Errors go to the caller's model.
func handle[A any](run func(context.Context, A) (string, error)) mcp.ToolHandlerFor[A, any] {
	return func(ctx context.Context, _ *mcp.CallToolRequest, a A) (*mcp.CallToolResult, any, error) {
		said, err := run(ctx, a)
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil, nil
	}
}

func (m Memory) scope() memory.Scope { return memory.Private(m.Person) }

func (m Memory) access() memory.Access {
	return memory.Access{Actor: m.Person, Scopes: []memory.Scope{m.scope()}, Integrity: trust.Foreign}
}

func (m Memory) search(ctx context.Context, a searchArgs) (string, error) {
	if strings.TrimSpace(a.Query) == "" || a.Limit < 0 || a.Limit > maxHits {
		return "", fmt.Errorf("query must not be empty, and limit is 1 to %d", maxHits)
	}
	hits, err := m.Search(ctx, memory.Query{Text: a.Query, Scopes: []memory.Scope{m.scope()}, Now: time.Now().In(m.Zone),
		K: cmp.Or(a.Limit, defaultHits)})
	if err != nil {
		return "", err
	}
	if len(hits) == 0 {
		return "Nothing is remembered about that. Try other words.", nil
	}
	lines := store.Map(hits, func(h memory.Hit) string {
		return fmt.Sprintf("%s  %s  %s", h.Entry.ID, h.Entry.ObservedAt.In(m.Zone).Format(time.DateOnly), h.Text())
	})
	return strings.Join(lines, "\n"), nil
}

func (m Memory) remember(ctx context.Context, a rememberArgs) (string, error) {
	if text.HasSecret(a.Text) {
		return "", errors.New("not remembered: it holds a password, a key or another secret")
	}
	e, added, err := m.Store.Add(ctx, memory.Entry{Scope: m.scope(), Text: a.Text, Source: memory.Assistant,
		Integrity: trust.Foreign}, m.Person)
	switch {
	case errors.Is(err, memory.ErrForgotten):
		return "", errors.New("not remembered: the person had this forgotten; they can take it up again with !remember")
	case err != nil:
		return "", err
	case !added:
		return "Already known: " + e.ID + "  " + e.Text, nil
	}
	return "Remembered: " + e.ID + "  " + e.Text, nil
}

func (m Memory) forget(ctx context.Context, a forgetArgs) (string, error) {
	found, exact, err := m.Store.Find(ctx, m.access(), a.ID)
	if err != nil {
		return "", err
	}
	if !exact || len(found) != 1 {
		return "", errors.New("nothing was forgotten: give the id of one memory, as search shows it")
	}
	if _, err := m.Store.Forget(ctx, m.access(), found[0].ID); err != nil {
		return "", err
	}
	return "Forgotten for good.", nil
}
