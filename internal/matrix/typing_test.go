package matrix

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// An answer takes minutes: the notice, which runs out after half a minute, is
// renewed before that, and taken away once at the end.
// Holds F46.
func TestTypingIsRenewed(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Typing  bool  `json:"typing"`
			Timeout int64 `json:"timeout"`
		}
		must(t, json.NewDecoder(r.Body).Decode(&q))
		line := "off"
		if q.Typing {
			line = (time.Duration(q.Timeout) * time.Millisecond).String()
		}
		got = append(got, strings.Split(r.URL.Path, "/")[5]+" "+line)
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	now := time.Unix(1_000_000, 0)
	cfg := Config{Homeserver: server.URL, User: self, Owners: []string{"@a:b"}}
	must(t, cfg.check())
	cli, err := newMautrix(cfg)
	must(t, err)
	c := &Client{cfg: cfg, log: cfg.Log, cli: cli, now: func() time.Time { return now }, typing: map[string]*typing{}, typingWake: make(chan struct{}, 1)}
	show := func(after time.Duration, end bool, want ...string) {
		t.Helper()
		now, got = now.Add(after), nil
		next := c.showTyping(t.Context(), end)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("after %s (-want +got):\n%s", after, d)
		}
		if !end && len(c.typing) > 0 && next.Sub(now) > 25*time.Second {
			t.Errorf("looks again only after %s: the notice has run out by then", next.Sub(now))
		}
	}
	c.Typing(t.Context(), "!a", true)
	show(0, false, "!a 30s")
	show(10*time.Second, false)
	show(11*time.Second, false, "!a 30s")
	show(21*time.Second, false, "!a 30s")
	c.Typing(t.Context(), "!a", false)
	show(time.Second, false, "!a off")
	show(time.Hour, false)
	c.Typing(t.Context(), "!a", true)
	show(0, false, "!a 30s")
	show(0, true, "!a off") // the end of the program
}
