package metrics

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/llm"
	"reverie/internal/test/expect"
)

// scrape returns the figures of c as text.
func scrape(t *testing.T, c *Counters, read func(context.Context) ([]Gauge, error)) string {
	t.Helper()
	s := listen(t, Config{Counters: c, Read: read})
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
	expect.Equal(t, w.Code, http.StatusOK)
	return w.Body.String()
}

func listen(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Listen, cfg.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	s := expect.Must(Listen(t.Context(), cfg))(t)
	t.Cleanup(func() { s.listener.Close() })
	return s
}

func gaugesOf(context.Context) ([]Gauge, error) {
	return []Gauge{{Name: "reverie_inbox_messages", Help: "Messages.", Value: 3}}, nil
}

// terminal is a transport that fails if broken is set.
type terminal struct {
	chat.Transport
	broken error
}

func (t *terminal) Send(context.Context, string, chat.Outgoing) error { return t.broken }
func (t *terminal) SendFinal(context.Context, string, chat.Outgoing, []string, func(context.Context, *sql.Tx) error) error {
	return t.broken
}
func (t *terminal) Ack(context.Context, string) error { return nil }

// TestRepliesAreCounted: each message once, each reply once and as what it is.
func TestRepliesAreCounted(t *testing.T) {
	c, below, ctx := New("1.2.3"), &terminal{}, t.Context()
	w := c.Watch(below)
	reply := func(id string, m chat.Outgoing) {
		m.ReplyTo = id
		_ = w.Send(ctx, "!room:server", m)
	}
	for _, id := range []string{"$a", "$b", "$c", "$d"} {
		w.Received(id, id == "$c")
		w.Received(id, id == "$c") // delivered again
	}
	reply("$a", chat.Outgoing{Text: "I", Draft: true})
	below.broken = errors.New("the disk is full")
	reply("$a", chat.Outgoing{Text: "I am"})
	expect.Equal(t, len(w.waiting), 4, "messages without a reply")
	below.broken = nil
	expect.OK(t, w.SendFinal(ctx, "!room:server", chat.Outgoing{Text: "I am here.", ReplyTo: "$a"}, []string{"$a"}, nil))
	reply("$a", chat.Outgoing{Text: "I am there."}) // after an edit
	reply("$b", chat.Outgoing{Text: "The model does not answer.", Notice: true})
	reply("$c", chat.Outgoing{Text: "The mode is now …", Notice: true})
	reply("", chat.Outgoing{Text: "Water the plants"}) // a reminder
	expect.OK(t, w.Ack(ctx, "$d"))                     // answered together with $a
	expect.Equal(t, len(w.waiting), 0)
	text := scrape(t, c, gaugesOf)
	expect.Has(t, text, "reverie_messages_received_total 4\n", `reverie_replies_total{result="answered"} 1`+"\n",
		`reverie_replies_total{result="failed"} 1`+"\n", `reverie_replies_total{result="command"} 1`+"\n", "reverie_answer_seconds_count 1\n")

	w.Received("$e", false)
	w.Received("$f", false)
	expect.OK(t, w.SendFinal(ctx, "!room:server", chat.Outgoing{Text: "Both.", ReplyTo: "$e"}, []string{"$e", "$f"}, nil))
	expect.Equal(t, len(w.waiting), 0, "messages that were answered together with another")
}

// TestTokensAreCounted: by kind, apart from what is only estimated.
func TestTokensAreCounted(t *testing.T) {
	c, kept := New(""), &ledger{}
	m := c.Meter(kept)
	m.Count("local", "@ada:server", llm.Usage{Prompt: 100, Cached: 90, Output: 7}, false)
	m.Count("local", "", llm.Usage{Prompt: 30}, true)
	expect.Equal(t, kept.tokens, 137, "tokens of the limits")
	expect.Has(t, scrape(t, c, gaugesOf), "reverie_model_answers_total 2\n", `{kind="prompt"} 100`, `{kind="cached"} 90`, `{kind="output"} 7`,
		`{kind="estimated"} 30`)
}

type ledger struct {
	llm.Meter
	tokens int
}

func (l *ledger) Count(_, _ string, u llm.Usage, _ bool) { l.tokens += u.Prompt + u.Output }

// TestEveryToolHasAClass: a new tool is not counted as one that a model invented.
func TestEveryToolHasAClass(t *testing.T) {
	files := expect.Must(filepath.Glob("../tool/*.md"))(t)
	if len(files) < 20 {
		t.Fatalf("only %d tools found", len(files))
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".md"); classes[name] == "" {
			t.Errorf("tool %s has no class", name)
		}
	}
	for name := range classes {
		if _, err := os.Stat("../tool/" + name + ".md"); err != nil {
			t.Errorf("class of a tool that does not exist: %v", err)
		}
	}
}

// TestSeriesAreFew: whatever happens, there are at most 60 series with the eleven gauges of the program, and no labels but known ones.
func TestSeriesAreFew(t *testing.T) {
	c := New("1.2.3")
	w := c.Watch(&terminal{})
	for i := range 500 {
		id := strings.Repeat("x", i)
		w.Received("$"+id, false)
		c.ToolRan("invented_"+id, true)
		c.Meter(&ledger{}).Count("model"+id, "@person"+id+":server", llm.Usage{Prompt: i}, i%2 == 0)
		_ = w.Send(t.Context(), "!room"+id, chat.Outgoing{ReplyTo: "$" + id, Text: id, Notice: i%3 == 0})
	}
	series := regexp.MustCompile(`(?m)^[^#\n].*$`).FindAllString(scrape(t, c, gaugesOf), -1)
	if len(series) > 60-10 || len(series) < 40 {
		t.Errorf("%d series:\n%s", len(series), strings.Join(series, "\n"))
	}
	labels := regexp.MustCompile(`^[a-z_]+(\{(result="(answered|command|failed)"|class="[a-z]+"|kind="[a-z]+"|le="[0-9+Inf]+"|version="1\.2\.3")\})? `)
	for _, s := range series {
		if !labels.MatchString(s) {
			t.Errorf("unexpected labels: %s", s)
		}
	}
}

// TestStateMayBeUnreadable: what is counted is served although the database is busy.
func TestStateMayBeUnreadable(t *testing.T) {
	text := scrape(t, New(""), func(context.Context) ([]Gauge, error) { return nil, errors.New("database is locked") })
	expect.Has(t, text, "reverie_messages_received_total 0")
	expect.Lacks(t, text, "reverie_inbox_messages", "locked")
}

// TestOnlyKnownHosts: a web page that lets its own name point to this machine reads nothing.
func TestOnlyKnownHosts(t *testing.T) {
	s := listen(t, Config{Counters: New(""), Read: gaugesOf, Hosts: []string{"reverie.lan"}})
	for host, want := range map[string]int{
		"127.0.0.1:9464": 200, "localhost": 200, "LOCALHOST:1": 200, "[::1]:9464": 200, "reverie.lan:9464": 200, "reverie.lan": 200,
		"evil.example": 421, "127.0.0.1.evil.example:9464": 421, "reverie.lan.evil.example": 421, "": 421, "10.0.0.1": 421, "localhost.": 421,
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		r.Host = host
		s.handler.ServeHTTP(w, r)
		expect.Equal(t, w.Code, want, host)
		if want != 200 && strings.Contains(w.Body.String(), "reverie_") {
			t.Errorf("%q reads figures", host)
		}
	}
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodPost, "http://localhost/metrics", nil), httptest.NewRequest(http.MethodGet, "http://localhost/", nil),
		httptest.NewRequest(http.MethodGet, "http://localhost/debug/pprof/", nil), httptest.NewRequest(http.MethodGet, "http://localhost/metrics/x", nil),
	} {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		if w.Code < 400 {
			t.Errorf("%s %s: %d", r.Method, r.URL, w.Code)
		}
	}
}

// TestServerEnds: Run ends with its context and frees the port.
func TestServerEnds(t *testing.T) {
	s := listen(t, Config{Counters: New(""), Read: gaugesOf})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	resp := expect.Must(http.Get("http://" + s.listener.Addr().String() + "/metrics"))(t)
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	expect.Equal(t, resp.StatusCode, 200)
	cancel()
	select {
	case err := <-done:
		expect.OK(t, err)
	case <-time.After(30 * time.Second):
		t.Fatal("still running half a minute after its context ended")
	}
	if _, err := http.Get("http://" + s.listener.Addr().String() + "/metrics"); err == nil {
		t.Error("still served")
	}
}
