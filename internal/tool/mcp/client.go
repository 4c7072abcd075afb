package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"reverie/internal/pace"
	"reverie/internal/sandbox"
	"reverie/internal/store"
)

// Server is an MCP server of the configuration: one that is reached by streamable HTTP, or a command
// that is started in the sandbox and speaks on its standard streams.
type Server struct {
	Name     string // letters, digits, - and _
	URL      string
	Token    string // sent to URL as "Authorization: Bearer"; "" = none
	Everyone bool   // everybody who may talk to the assistant may use it; otherwise its owners alone

	Command     string            // for /bin/sh -c; "" = URL is asked
	Environment map[string]string // of the command; its values are secrets
	Folders     []string          // that the command may read and run programs from, besides the system's
	Network     bool              // the command may use it
}

// Config configures Servers. All fields are required but Every and Log (nil = silent).
type Config struct {
	Servers []Server
	Dir     string        // the data folder; each command has a folder in mcp/ there
	Hidden  []string      // files and folders that no command may read
	DB      *store.DB     // migrated
	Version string        // of the program
	Every   time.Duration // how often the servers are asked for what they have; 0 = a minute
	Log     *slog.Logger
	// Transport makes the connections to the URL of a server; nil = http.DefaultTransport does.
	Transport func(address string) http.RoundTripper
}

// Servers keeps connections to MCP servers. It is safe for concurrent use.
type Servers struct {
	cfg Config

	mu    sync.Mutex
	peers map[string]*peer // by name; nil = not connected
}

type peer struct {
	session *mcp.ClientSession
	offer   Offer
	stored  string       // the offer as it is stored when the owner agrees to it
	end     func() error // ends a program, and returns why it has ended by itself
}

// close ends the connection. A program ends first: the session would wait for its answers.
func (p *peer) close() {
	_ = p.end()
	_ = p.session.Close()
}

// New returns the servers of cfg. Run connects to them.
func New(cfg Config) *Servers {
	cfg.Every, cfg.Log = cmp.Or(cfg.Every, time.Minute), cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Servers{cfg: cfg, peers: map[string]*peer{}}
}

// Configured lists the servers of the configuration, in its order. s may be nil.
func (s *Servers) Configured() []Server {
	if s == nil {
		return nil
	}
	return s.cfg.Servers
}

const (
	connectLimit = 30 * time.Second // to connect and to list what a server has
	firstRetry   = 2 * time.Second
	lastRetry    = 5 * time.Minute
)

// Run stays connected to all servers until ctx ends. Connections that break are made again.
func (s *Servers) Run(ctx context.Context) error {
	var g errgroup.Group
	for _, server := range s.cfg.Servers {
		g.Go(func() error {
			wait := firstRetry
			for ctx.Err() == nil {
				began := time.Now()
				err := s.serve(ctx, server)
				if ctx.Err() != nil {
					break
				}
				if errors.Is(err, sandbox.ErrUnsupported) {
					s.cfg.Log.Error("MCP server not started", "server", server.Name, "err", err)
					break
				}
				if time.Since(began) > lastRetry { // it worked for a while
					wait = firstRetry
				}
				s.cfg.Log.Warn("MCP server not connected", "server", server.Name, "err", err, "again_in", wait)
				_ = pace.Pause(ctx, nil, wait)
				wait = min(2*wait, lastRetry)
			}
			return nil
		})
	}
	return g.Wait()
}

// serve keeps one connection until it breaks. It reads the offer again at intervals: servers need not
// say that it has changed, or that they end.
func (s *Servers) serve(ctx context.Context, server Server) error {
	p, err := s.dial(ctx, server)
	if err != nil {
		return err
	}
	var waiting errgroup.Group
	defer func() {
		s.set(server.Name, nil)
		p.close()
		_ = waiting.Wait()
	}()
	gone := make(chan struct{})
	waiting.Go(func() error { defer close(gone); return p.session.Wait() })
	s.cfg.Log.Info("MCP server connected", "server", server.Name, "tools", len(p.offer.Tools), "prompts", len(p.offer.Prompts))
	for {
		s.set(server.Name, p)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-gone:
			return cmp.Or(p.end(), errors.New("the server has ended the connection"))
		case <-time.After(s.cfg.Every):
		}
		now := *p
		if now.offer, err = s.read(ctx, p.session); err != nil {
			return err
		}
		now.stored = now.offer.json()
		p = &now
	}
}

func (s *Servers) set(name string, p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.peers[name] = p
}

func (s *Servers) dial(ctx context.Context, server Server) (p *peer, err error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "reverie", Version: s.cfg.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{}}) // no roots, no sampling, no questions to people
	p = &peer{end: func() error { return nil }}
	transport := s.overHTTP(server)
	if server.Command != "" {
		if transport, p.end, err = s.start(ctx, server); err != nil {
			return nil, fmt.Errorf("start: %w", err)
		}
	}
	timed, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	if p.session, err = client.Connect(timed, transport, nil); err != nil {
		return nil, cmp.Or(p.end(), fmt.Errorf("connect: %w", err))
	}
	if p.offer, err = s.read(ctx, p.session); err != nil {
		err = cmp.Or(p.end(), err)
		p.close()
		return nil, err
	}
	p.stored = p.offer.json()
	return p, nil
}

func (s *Servers) overHTTP(server Server) mcp.Transport {
	by := http.DefaultTransport
	if s.cfg.Transport != nil {
		by = s.cfg.Transport(server.URL)
	}
	return &mcp.StreamableClientTransport{Endpoint: server.URL, DisableStandaloneSSE: true, HTTPClient: &http.Client{
		Transport: bearer{server.Token, by}, CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("the server redirects elsewhere; write its final address into the configuration")
		}}}
}

func (s *Servers) read(ctx context.Context, session *mcp.ClientSession) (Offer, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	return readOffer(ctx, session)
}

type bearer struct {
	token string
	by    http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.by.RoundTrip(r)
}

// Inspect connects to a server, reads its offer, and disconnects.
func (s *Servers) Inspect(ctx context.Context, name string) (Offer, error) {
	i := slices.IndexFunc(s.cfg.Servers, func(o Server) bool { return o.Name == name })
	if i < 0 {
		return Offer{}, fmt.Errorf("there is no server %s under mcp.servers in the configuration", name)
	}
	p, err := s.dial(ctx, s.cfg.Servers[i])
	if err != nil {
		return Offer{}, err
	}
	p.close()
	return p.offer, nil
}

// Running is a connected server whose offer the owner agreed to.
type Running struct {
	Server
	Offer
	session *mcp.ClientSession
}

// Running lists the servers that the model may use now, in the order of the configuration.
func (s *Servers) Running(ctx context.Context) ([]Running, error) {
	if len(s.Configured()) == 0 {
		return nil, nil
	}
	ok, err := agreed(ctx, s.cfg.DB)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []Running
	for _, server := range s.cfg.Servers {
		if p := s.peers[server.Name]; p != nil && ok[server.Name] == p.stored {
			all = append(all, Running{server, p.offer, p.session})
		}
	}
	return all, nil
}

// IsForEveryone reports whether the tool SERVER.TOOL is of a server that the configuration opens to everyone.
func (s *Servers) IsForEveryone(tool string) bool {
	name, _, _ := strings.Cut(tool, ".")
	return slices.ContainsFunc(s.Configured(), func(o Server) bool { return o.Name == name && o.Everyone })
}

// ErrNoTool is the error of Call for a tool that no running server has.
var ErrNoTool = errors.New("mcp: there is no such tool")

// Call calls a tool by its full name SERVER.TOOL with a JSON object. It returns the text of the result,
// which is from outside; failed says that the server reports a failure in it.
func (s *Servers) Call(ctx context.Context, tool string, arguments json.RawMessage) (said string, failed bool, err error) {
	all, err := s.Running(ctx)
	if err != nil {
		return "", false, err
	}
	name, of, _ := strings.Cut(tool, ".")
	i := slices.IndexFunc(all, func(r Running) bool {
		return r.Name == name && slices.ContainsFunc(r.Tools, func(t Tool) bool { return t.Name == of })
	})
	if i < 0 {
		return "", false, ErrNoTool
	}
	res, err := all[i].session.CallTool(ctx, &mcp.CallToolParams{Name: of, Arguments: arguments})
	if err != nil {
		return "", false, fmt.Errorf("mcp: call %s: %w", tool, err)
	}
	return textOfResult(res), res.IsError, nil
}

// textOfResult returns what a model can read of a result.
func textOfResult(res *mcp.CallToolResult) string {
	var parts []string
	for _, c := range res.Content {
		switch c := c.(type) {
		case *mcp.TextContent:
			parts = append(parts, c.Text)
		case *mcp.ImageContent:
			parts = append(parts, fmt.Sprintf("[a picture, %s, not shown]", c.MIMEType))
		case *mcp.AudioContent:
			parts = append(parts, fmt.Sprintf("[a recording, %s, not shown]", c.MIMEType))
		case *mcp.ResourceLink:
			parts = append(parts, c.URI)
		case *mcp.EmbeddedResource:
			if c.Resource != nil {
				parts = append(parts, cmp.Or(c.Resource.Text, c.Resource.URI))
			}
		}
	}
	if len(parts) == 0 && res.StructuredContent != nil {
		if data, err := json.Marshal(res.StructuredContent); err == nil {
			parts = append(parts, string(data))
		}
	}
	return strings.Join(parts, "\n")
}
