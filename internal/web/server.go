package web

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/hosts"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/questions"
	"reverie/internal/store"
	"reverie/internal/task"
	"reverie/internal/trust"
	"reverie/internal/usage"
)

// Address says where the server is reached.
type Address struct {
	Listen string   // host:port
	Hosts  []string // further names that a request may use, such as that of a proxy with a certificate
}

// Config holds what the pages read and ask the rest of the program. All is required unless its comment says otherwise.
type Config struct {
	Name      string // of the assistant
	Zone      *time.Location
	Log       *slog.Logger // with a handler of Remember, pages show its lines
	DB        *store.DB
	Memory    *memory.Store
	Questions questions.Store
	Approvals approval.Store
	Tasks     *task.Store
	History   *history.Store
	Usage     *usage.Store
	Models    *llm.Models
	Docs      fs.FS // Markdown files
	OIDC      OIDC
	Level     func(person string) trust.Integrity
	Rooms     func(ctx context.Context, person string) ([]string, error) // those with several people where person is a member
	Preview   func(ctx context.Context, talk string) (prompt.Prompt, []llm.ToolSpec, error)
	Vote      func(ctx context.Context, v chat.Inbound) error // delivers a vote to its conversation; nil = approvals can be read only
	Status    func(ctx context.Context) []string              // lines about the connection and the last dream
	Doctor    func(ctx context.Context) []Finding             // runs the checks of `bot doctor`
}

// Finding is a result of a check.
type Finding struct{ Area, State, What, Remedy string }

// Limits of a request.
const (
	maxHeader  = 16 << 10 // bytes
	maxBody    = 16 << 10
	maxHandled = 16 // requests at a time
)

//go:embed static templates
var files embed.FS

// Server is the socket of the inspector, with the logins.
type Server struct {
	logins
	socket net.Listener
	hosts  []string
	base   string // of links, such as http://127.0.0.1:8090
}

// site is the server with its pages.
type site struct {
	*Server
	cfg     Config
	layout  *template.Template
	running chan struct{} // holds a token for each request that is handled
}

// Listen opens the server's socket. Requests wait until Run.
func Listen(ctx context.Context, at Address, now func() time.Time) (*Server, error) {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", at.Listen)
	if err != nil {
		return nil, fmt.Errorf("web.listen: %w; name a free port of this machine, such as 127.0.0.1:8090", err)
	}
	s := &Server{socket: socket, logins: logins{now: now}}
	_, port, _ := net.SplitHostPort(socket.Addr().String())
	s.hosts, s.base = names(at, port)
	return s, nil
}

// names returns the names that requests may use, without ports, and the beginning of links.
func names(c Address, port string) (known []string, base string) {
	host := hosts.Name(c.Listen)
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	base = "http://" + net.JoinHostPort(host, port)
	if len(c.Hosts) > 0 {
		base = "https://" + c.Hosts[0]
	}
	return append([]string{"localhost", "127.0.0.1", "::1", host}, store.Map(c.Hosts, hosts.Name)...), base
}

// isLocal reports whether a host of a request is this machine.
func isLocal(host string) bool {
	ip, err := netip.ParseAddr(hosts.Name(host))
	return hosts.Name(host) == "localhost" || err == nil && ip.IsLoopback()
}

// Run serves the pages of cfg until ctx ends.
func (s *Server) Run(ctx context.Context, cfg Config) error {
	layout, err := template.ParseFS(files, "templates/*.html")
	if err != nil {
		return fmt.Errorf("web: %w", err)
	}
	pages := &site{Server: s, cfg: cfg, layout: layout, running: make(chan struct{}, maxHandled)}
	server := &http.Server{
		Handler: pages.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 2 * time.Minute,
		IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	cfg.Log.Info("the inspector is up", "address", s.base)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return server.Serve(s.socket) })
	g.Go(func() error {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		return errors.Join(server.Shutdown(end), server.Close())
	})
	if err := g.Wait(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("web: %w", err)
	}
	return nil
}

// policy is the Content-Security-Policy: nothing inline, nothing from elsewhere, in no frame.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// handler returns the pages with all that is checked before them.
func (s *site) handler() http.Handler {
	mux := http.NewServeMux()
	for _, name := range []string{"static/style.css", "static/app.js"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
	}
	mux.HandleFunc("GET /login", s.showLogin)
	mux.HandleFunc("POST /login", s.logIn)
	if s.cfg.OIDC.Issuer != "" {
		mux.HandleFunc("GET /login/begin", s.beginOIDC)
		mux.HandleFunc("GET "+callbackPath, s.endOIDC)
	}
	mux.HandleFunc("POST /logout", s.logOut)
	mux.HandleFunc("GET /", s.serve(page{show: func(context.Context, *visit) (view, error) { return view{}, errNotFound }}))
	for _, p := range catalog() {
		method, exact := "GET ", strings.Replace(p.Path+"$", "/$", "/{$}", 1)
		if p.post {
			method = "POST "
		}
		mux.HandleFunc(method+strings.TrimSuffix(exact, "$"), s.serve(p))
	}
	inner := http.NewCrossOriginProtection().Handler(http.MaxBytesHandler(mux, maxBody))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for name, value := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
		} {
			h.Set(name, value)
		}
		if !slices.Contains(s.hosts, hosts.Name(r.Host)) {
			http.Error(w, "This name is not known here. If it is yours, add it to web.hosts in the configuration.",
				http.StatusMisdirectedRequest)
			return
		}
		select {
		case s.running <- struct{}{}:
			defer func() { <-s.running }()
			inner.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	})
}
