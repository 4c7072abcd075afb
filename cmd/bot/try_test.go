package main

import (
	"bytes"
	"context"
	"io"
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
	try := &trial{you: p, room: room, exited: make(chan error, 1), screen: &screen{name: "Reverie"}}
	must(t, try.chat(wait, try.screen.open(console{in: in, out: &out, err: &out})))
	stopped, after, found := strings.Cut(out.String(), "I stopped working on this, as asked. `!retry` answers it after all.\n")
	if !found || stopped != "" || !strings.HasPrefix(after, "Stopped.\n") || !strings.Contains(after, "hello") {
		t.Errorf("%q", out.String())
	}
}
