package web

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"reverie/internal/approval"
	"reverie/internal/chat"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/prompt"
	"reverie/internal/questions"
	"reverie/internal/store"
	"reverie/internal/store/storetest"
	"reverie/internal/task"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
	"reverie/internal/usage"
)

const (
	ada  = "@ada:example.org"  // an owner
	bob  = "@bob:example.org"  // another owner
	carl = "@carl:example.org" // may talk to the assistant

	shared = "!shared:example.org" // ada and others
	secret = "!secret:example.org" // without ada
)

// fixture is a server on loopback with the stores of a bot.
type fixture struct {
	Config
	t      *testing.T
	server *Server
	log    *lockedBuffer
	clock  time.Time // of logins
	mu     sync.Mutex
	votes  []chat.Vote
}

func (f *fixture) now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clock
}

// advance moves the clock of the logins.
func (f *fixture) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clock = f.clock.Add(d)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newFixture starts a server. hosts are its further names.
func newFixture(t *testing.T, hosts ...string) *fixture {
	t.Helper()
	return newFixtureWith(t, func(*Config) {}, hosts...)
}

func newFixtureWith(t *testing.T, set func(*Config), hosts ...string) *fixture {
	t.Helper()
	dir := t.TempDir()
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	f := &fixture{t: t, log: &lockedBuffer{}, clock: time.Now()}
	memories := expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: ada, Log: slog.New(slog.DiscardHandler)}))(t)
	f.Config = Config{
		Name: "Reverie", Zone: time.UTC, DB: db, Log: slog.New(Remember(slog.NewTextHandler(f.log, nil))),
		Memory: memories, Questions: questions.Store{DB: db, Memory: memories}, Tasks: task.NewStore(db, task.Config{}),
		History: history.NewStore(db), Approvals: approval.Store{DB: db, Now: time.Now},
		Usage:  &usage.Store{DB: db, Location: time.UTC, Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		Models: llm.New(llm.Config{Models: []llm.ModelConfig{{Name: "small", BaseURL: "http://127.0.0.1:1/v1", Model: "m", Window: 8192}}, Roles: map[string][]string{"chat": {"small"}}}),
		Docs:   fstest.MapFS{"manual.md": {Data: []byte("# Manual\n\n[Faults](faults.md)\n\n| a | b |\n|---|---|\n| <script>alert(1)</script> | c |\n")}, "faults.md": {Data: []byte("# Faults\n")}},
		Level: func(person string) trust.Integrity {
			return trust.SenderIntegrity(person, true, []string{ada, bob}, func(string) bool { return true })
		},
		Rooms: func(_ context.Context, person string) ([]string, error) {
			return map[string][]string{ada: {shared}, bob: {shared, secret}}[person], nil
		},
		Preview: func(context.Context, string) (prompt.Prompt, []llm.ToolSpec, error) {
			return prompt.Prompt{Prefix: "You are " + hostile}, nil, nil
		},
		Vote:   f.vote,
		Status: func(context.Context) []string { return []string{"connected " + hostile} },
		Doctor: func(context.Context) []Finding { return []Finding{{"files", "ill", "broken " + hostile, "mend it"}} },
	}
	set(&f.Config)
	f.server = expect.Must(Listen(t.Context(), Address{Listen: "127.0.0.1:0", Hosts: hosts}, f.now))(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.server.Run(ctx, f.Config) }()
	t.Cleanup(func() {
		stop()
		expect.OK(t, <-ended)
	})
	return f
}

// vote does what a conversation does with a vote.
func (f *fixture) vote(ctx context.Context, in chat.Inbound) error {
	v := in.(chat.Vote)
	f.mu.Lock()
	f.votes = append(f.votes, v)
	f.mu.Unlock()
	_, _, err := f.Approvals.Answer(ctx, v.Head, f.Level(v.Sender), approval.CodeOf(v.Target), v.Option)
	return err
}

func (f *fixture) address() string { return "http://" + f.server.socket.Addr().String() }

// browser is a client that keeps cookies and follows no redirect.
type browser struct {
	f *fixture
	http.Client
}

func (f *fixture) browser() *browser {
	jar, _ := cookiejar.New(nil)
	b := &browser{f: f}
	b.Jar, b.Timeout = jar, 20*time.Second
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

// logIn returns a browser in which person is logged in.
func (f *fixture) logIn(person string) *browser {
	f.t.Helper()
	b := f.browser()
	r := b.post("/login", url.Values{"code": {codeOf(f.server.Link(person))}})
	expect.Equal(f.t, r.status, http.StatusSeeOther)
	expect.Equal(f.t, r.header.Get("Location"), "/")
	return b
}

func codeOf(link string) string { _, code, _ := strings.Cut(link, "#"); return code }

// response is an answer with its body read.
type response struct {
	status int
	header http.Header
	body   string
}

func (b *browser) get(path string) response { return b.send(http.MethodGet, path, nil, nil) }

func (b *browser) post(path string, form url.Values) response {
	return b.send(http.MethodPost, path, form, map[string]string{"Sec-Fetch-Site": "same-origin"})
}

func (b *browser) send(method, path string, form url.Values, header map[string]string) response {
	b.f.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := expect.Must(http.NewRequestWithContext(b.f.t.Context(), method, b.f.address()+path, body))(b.f.t)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range header {
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	got := expect.Must(b.Do(r))(b.f.t)
	defer got.Body.Close()
	text := expect.Must(io.ReadAll(got.Body))(b.f.t)
	return response{got.StatusCode, got.Header, string(text)}
}

// raw sends bytes and returns the beginning of the answer; "" = the server closed the connection.
func (f *fixture) raw(request string) string {
	f.t.Helper()
	c := expect.Must(net.Dial("tcp", f.server.socket.Addr().String()))(f.t)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(15 * time.Second))
	_, _ = io.WriteString(c, request)
	answer, _ := io.ReadAll(io.LimitReader(c, 1<<16))
	return string(answer)
}

// TestLogin: a link works once, for five minutes; the login lasts twelve hours, and nothing secret is stored or logged.
func TestLogin(t *testing.T) {
	f := newFixture(t)
	link := f.server.Link(ada)
	expect.Has(t, link, f.address()+"/login#")
	b := f.browser()
	expect.Equal(t, b.get("/").header.Get("Location"), "/login")
	expect.Has(t, b.get("/login").body, `name="code"`)
	expect.Equal(t, b.post("/login", url.Values{"code": {codeOf(link)}}).status, http.StatusSeeOther)
	expect.Has(t, b.get("/").body, "Waiting messages", "Logged in as "+ada)
	expect.Equal(t, f.browser().post("/login", url.Values{"code": {codeOf(link)}}).status, http.StatusForbidden, "the second time")

	late := f.server.Link(ada)
	f.advance(linkTime)
	expect.Equal(t, f.browser().post("/login", url.Values{"code": {codeOf(late)}}).status, http.StatusForbidden, "after five minutes")
	expect.Equal(t, b.get("/").status, http.StatusOK)
	f.advance(sessionTime)
	expect.Equal(t, b.get("/").header.Get("Location"), "/login", "after twelve hours")

	b = f.logIn(ada)
	site, _ := url.Parse(f.address())
	cookie := b.Jar.Cookies(site)[0].Value
	expect.Equal(t, b.post("/logout", url.Values{}).header.Get("Location"), "/login")
	expect.Equal(t, f.browser().send(http.MethodGet, "/", nil, map[string]string{"Cookie": cookieName + "=" + cookie}).status, http.StatusSeeOther, "after the logout")
	for _, code := range []string{codeOf(link), codeOf(late), cookie} {
		expect.Lacks(t, f.log.String(), code)
	}
	for _, g := range f.server.sessions {
		expect.False(t, bytes.Contains(g.hash[:], []byte(cookie)), "a cookie is stored")
	}
	expect.Equal(t, f.browser().post("/login", url.Values{"code": {codeOf(f.server.Link(carl))}}).status, http.StatusForbidden, "not an owner")
}

// TestCookie: the cookie is out of reach of scripts and of other sites, and bound to https where a proxy has a certificate.
func TestCookie(t *testing.T) {
	f := newFixture(t, "bot.example.org")
	expect.Has(t, f.server.Link(ada), "https://bot.example.org/login#")
	for host, secure := range map[string]bool{"bot.example.org": true, "BOT.example.org": true, "": false} {
		header := map[string]string{"Sec-Fetch-Site": "same-origin"}
		if host != "" {
			header["Host"] = host
		}
		r := f.browser().send(http.MethodPost, "/login", url.Values{"code": {codeOf(f.server.Link(ada))}}, header)
		cookie := r.header.Get("Set-Cookie")
		expect.Has(t, cookie, "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200")
		expect.Equal(t, strings.Contains(cookie, "Secure"), secure, host)
	}
}

// TestNames: a request names this machine or a configured host, else it is refused.
func TestNames(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8090": "http://127.0.0.1:8090", "localhost:8090": "http://localhost:8090", "0.0.0.0:8090": "http://localhost:8090", ":8090": "http://localhost:8090",
	} {
		hosts, base := names(Address{Listen: listen}, "8090")
		expect.Equal(t, base, want, listen)
		expect.EqualSlice(t, hosts[:3], []string{"localhost", "127.0.0.1", "::1"})
	}
	hosts, base := names(Address{Listen: "127.0.0.1:8090", Hosts: []string{"Bot.example.org:8443"}}, "8090")
	expect.Equal(t, base, "https://Bot.example.org:8443")
	expect.EqualSlice(t, hosts[4:], []string{"bot.example.org"})
}

// rows runs statements that a test needs.
func (f *fixture) rows(db *store.DB, statement string, args ...any) {
	f.t.Helper()
	_ = expect.Must(db.Exec(statement, args...))(f.t)
}
