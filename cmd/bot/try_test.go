package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/peer"
)

// TestTryStop: in the room of `bot try`, too, `!stop` does not wait for the answer that it ends.
func TestTryStop(t *testing.T) {
	r := withHomeserver(t)
	r.start()
	p := r.client()
	room, err := p.CreateRoom(t.Context(), peer.Room{Name: "Reverie", Direct: true, Encrypted: true, Invite: []string{itself}})
	must(t, err)
	wait, done := context.WithTimeout(t.Context(), 2*time.Minute)
	defer done()
	must(t, p.WaitJoined(wait, room, itself))
	var out bytes.Buffer
	in, keys := io.Pipe()
	// go: ends with the end of what is typed
	go func() {
		_, _ = io.WriteString(keys, "rehearse: slow 60s\nhello\n")
		for wait.Err() == nil && !r.wrote("msg=prompt ") { // the model is asked next
			time.Sleep(20 * time.Millisecond)
		}
		_, _ = io.WriteString(keys, "!stop\n")
		_ = keys.Close()
	}()
	try := &trial{you: p, room: room, exited: make(chan struct{}), screen: &screen{name: "Reverie"}}
	must(t, try.chat(wait, try.screen.open(console{in: in, out: &out, err: &out})))
	stopped, after, found := strings.Cut(out.String(), "I stopped working on this, as asked. `!retry` answers it after all.\n")
	if !found || stopped != "" || !strings.HasPrefix(after, "Stopped.\n") || !strings.Contains(after, "hello") {
		t.Errorf("%q", out.String())
	}
}

func TestDetectModel(t *testing.T) {
	list := func(body string, status int) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer key-1" {
				http.NotFound(w, r)
				return
			}
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s
	}
	good := list(`{"data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"},{"id":"llama"}]}`, 200)
	page := list(`<html>hello</html>`, 200)
	shut := list(``, 401)
	for _, c := range []struct {
		name, url, model, want string
		fails                  bool
	}{
		{"first that can chat", good.URL + "/v1/", "", "qwen3:8b", false},
		{"named model wins", good.URL + "/v1", "llama", "llama", false},
		{"a web page is no model server", page.URL + "/v1", "", "", true},
		{"refused", shut.URL + "/v1", "", "", true},
		{"a server without a list, and a named model", shut.URL + "/v1", "gpt", "gpt", false},
		{"the stand-in by name", rehearsalURL, "", "rehearsal", false},
	} {
		env := map[string]string{"REVERIE_LLM_URL": c.url, "REVERIE_LLM_KEY": "key-1", "REVERIE_LLM_MODEL": c.model}
		got, err := detectModel(t.Context(), func(k string) string { return env[k] })
		if (err != nil) != c.fails || got.Model != c.want {
			t.Errorf("%s: %q, %v; want %q, failure %v", c.name, got.Model, err, c.want, c.fails)
		}
		if err != nil && (!strings.Contains(err.Error(), "REVERIE_LLM_URL") || strings.Contains(err.Error(), "key-1")) {
			t.Errorf("%s: error %q must name the variable and never the key", c.name, err)
		}
	}
}
