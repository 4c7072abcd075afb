package matrix_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
)

const personPassword = "a long enough password"

// come logs somebody in with the device in the file db and lets them receive
// until leave or the end of the test.
func come(t *testing.T, s *matrixtest.Server, name, db string, prepare func(*peer.Peer) error) (p *peer.Peer, leave func()) {
	t.Helper()
	p, err := peer.Login(t.Context(), peer.Config{Homeserver: s.URL, User: s.Account(name, personPassword), Password: personPassword, DB: db})
	ok(t, err)
	if prepare != nil {
		ok(t, prepare(p))
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	// go: leave ends it and waits for it.
	go func() { defer close(done); _ = p.Run(ctx) }()
	left := false
	leave = func() {
		if left {
			return
		}
		left = true
		cancel()
		<-done
		_ = p.Close()
	}
	t.Cleanup(leave)
	return p, leave
}

func reset(p *peer.Peer) error { return p.ResetIdentity(context.Background(), personPassword) }

// lastLine is the last line of a text that contains a word.
func lastLine(text, word string) (last string) {
	for l := range strings.Lines(text) {
		if strings.Contains(l, word) {
			last = l
		}
	}
	return last
}

// A friend loses their identity and makes another one, twice: talking goes on
// both ways, the trust is gone, and the owner hears of each change once.
// Holds F21.
func TestIdentityReset(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	db := filepath.Join(t.TempDir(), "friend.db")
	friend, leave := come(t, s, "friend", db, reset)
	with := func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Owners, cfg.Allow = []string{you.UserID()}, []string{friend.UserID()}
	}
	b := startWith(t, server, t.TempDir(), echo, with)
	dm, theirs := chat(t, s, you, b, true), chat(t, s, friend, b, true)
	trust := func(want string) {
		t.Helper()
		if line := lastLine(b.log.String(), `"matrix: message"`); !strings.Contains(line, "trust="+want) {
			t.Errorf("the last message came with %s, want trust=%s", line, want)
		}
	}
	converse(t, friend, b, theirs, "before you know me")
	converse(t, friend, b, theirs, "with my first identity")
	trust("cross-signed-tofu")
	converse(t, you, b, dm, "nothing to tell yet")
	for _, text := range []string{"with another one", "and with a third one"} {
		leave()
		friend, leave = come(t, s, "friend", db, reset)
		if e := peertest.Next(t, you, messageIn(dm)); !e.Notice || !e.Encrypted || !strings.Contains(e.Body, "identity of "+friend.UserID()+" has changed") {
			t.Errorf("the owner was told %+v", e)
		}
		converse(t, friend, b, theirs, text)
		trust("cross-signed-untrusted")
	}
	// Their devices are looked at again, by a bot that was restarted, too.
	b = b.again(echo)
	leave()
	friend, _ = come(t, s, "friend", filepath.Join(t.TempDir(), "new.db"), nil)
	say(t, friend, theirs, "from a new client") // which the third identity has not signed
	for _, in := range []struct {
		p    *peer.Peer
		room string
		text string
	}{{friend, theirs, ownNotice}, {you, dm, otherNotice}} {
		told(t, in.p, in.room, friend.DeviceID(), in.text)
	}
	hears(t, friend, theirs, "echo: **from a new client**")
	b.next()
	converse(t, friend, b, theirs, "and once more")
	converse(t, you, b, dm, "told once each?")
}

// The homeserver puts other keys in the place of those of a device: what is said
// goes on being encrypted for the old ones, and the owner is told, once.
// Holds F21.
func TestSwappedDeviceKeys(t *testing.T) {
	t.Parallel()
	s, you, b, room := chatting(t, true, echo)
	converse(t, you, b, room, "one")
	converse(t, you, b, room, "two")
	hook := s.Fault(matrixtest.On("keys_query").By(b.UserID()), swapKeys(t, you.UserID()))
	come(t, s, "you", filepath.Join(t.TempDir(), "second.db"), nil) // makes the bot look
	if e := peertest.Next(t, you, messageIn(room)); !e.Notice || !strings.Contains(e.Body, "other keys for the device") {
		t.Errorf("the owner was told %+v", e)
	}
	converse(t, you, b, room, "three")
	come(t, s, "you", filepath.Join(t.TempDir(), "third.db"), nil)
	await(t, s, "the bot did not look again", func() bool { return hook.Hits() > 1 })
	converse(t, you, b, room, "told once?")
}

// swapKeys changes the device keys of a user in the answer to a query.
func swapKeys(t *testing.T, user string) matrixtest.Fault {
	return rewritten(t, func(body map[string]any) {
		devices, _ := body["device_keys"].(map[string]any)[user].(map[string]any)
		for _, d := range devices {
			keys := d.(map[string]any)["keys"].(map[string]any)
			for name := range keys {
				keys[name] = strings.Repeat("E", 43)
			}
		}
	})
}

// rewritten changes the JSON of answers.
func rewritten(t *testing.T, change func(body map[string]any)) matrixtest.Fault {
	return matrixtest.Changed(func(a *httptest.ResponseRecorder, _ *http.Request) {
		var body map[string]any
		if json.Unmarshal(a.Body.Bytes(), &body) != nil {
			return // a poll that was cut off
		}
		change(body)
		a.Body.Reset()
		if err := json.NewEncoder(a.Body).Encode(body); err != nil {
			t.Error(err)
		}
	})
}
