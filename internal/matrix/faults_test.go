package matrix_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/homeserver/homeservertest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// network stands between the bot and its homeserver and makes trouble.
type network struct {
	proxy *httputil.ReverseProxy

	mu      sync.Mutex
	trouble func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool
	sends   []string // transaction ids of messages that went through, in order
}

// between returns the server as seen through a network.
func between(t *testing.T, server *homeserver.Server) (*network, *homeserver.Server) {
	t.Helper()
	target, err := url.Parse(server.URL)
	ok(t, err)
	n := &network{proxy: httputil.NewSingleHostReverseProxy(target)}
	n.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	front := httptest.NewServer(n)
	t.Cleanup(front.Close)
	return n, &homeserver.Server{URL: front.URL, Name: server.Name}
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	trouble := n.trouble
	if isSend(r) {
		n.sends = append(n.sends, r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	}
	n.mu.Unlock()
	forward := func(w http.ResponseWriter) { n.proxy.ServeHTTP(w, r) }
	if trouble == nil || !trouble(w, r, forward) {
		forward(w)
	}
}

// set installs a fault; it answers the request itself and returns true, or
// returns false to let it through.
func (n *network) set(f func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trouble = f
}

func (n *network) sent() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.sends)
}

func isSend(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/send/")
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// directChat lets you and a running bot meet in an encrypted direct chat, of which the bot knows then.
func directChat(t *testing.T, you *peer.Peer, b *bot) string {
	t.Helper()
	room := create(t, you, peer.Room{Direct: true, Encrypted: true, Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	b.knows(room)
	return room
}

// A message is changed while it is not known whether its first text went out.
// The server takes the second for a repetition of the first, so an edit must
// follow.
func TestChangedWhileOnItsWay(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	b := start(t, through, t.TempDir(), nil, you.UserID())
	room := directChat(t, you, b)
	change := func(text string) {
		if err := b.Say(context.Background(), room, session.Outgoing{ID: "answer", Text: text}); err != nil {
			t.Error(err)
		}
	}
	var once sync.Once
	net.set(func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		if isSend(r) {
			once.Do(func() {
				forward(httptest.NewRecorder())
				change("second thoughts")
				hangUp(w)
			})
		}
		return false
	})
	change("first thoughts")
	first := peertest.Next(t, you, messageIn(room))
	if first.Body != "first thoughts" {
		t.Errorf("got %+v", first)
	}
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Edit)); e.ID != first.ID || e.Body != "second thoughts" {
		t.Errorf("got %+v", e)
	}
}

// The first thing the bot does in a room is to speak: it has joined, but no
// sync has shown it the room, and the invitation said little about it. What it says must be encrypted, and readable.
// Holds F24.
func TestFirstWordsBeforeTheRoomIsSeen(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	var blind atomic.Bool
	net.set(func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		if strings.Contains(r.URL.Path, "/join/") {
			blind.Store(true)
		}
		if !strings.HasSuffix(r.URL.Path, "/sync") {
			return false
		}
		rec := httptest.NewRecorder()
		forward(rec)
		if blind.Load() {
			<-r.Context().Done()
			return true
		}
		var res map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &res); err != nil {
			copyResponse(w, rec)
			return true
		}
		rooms, _ := res["rooms"].(map[string]any)
		invites, _ := rooms["invite"].(map[string]any)
		for _, room := range invites {
			state := room.(map[string]any)["invite_state"].(map[string]any)
			state["events"] = slices.DeleteFunc(state["events"].([]any), func(e any) bool {
				return e.(map[string]any)["state_key"] != "@reverie:"+server.Name
			})
		}
		_ = json.NewEncoder(w).Encode(res)
		return true
	})
	b := start(t, through, t.TempDir(), nil, you.UserID())
	room := create(t, you, peer.Room{Direct: true, Encrypted: true, Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	b.says(room, session.Outgoing{ID: "hello", Text: "a first word"})
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "a first word" || !e.Encrypted {
		t.Errorf("got %+v", e)
	}
	onServer(t, you, room, "a first word")
}

func copyResponse(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// The server hides that a room is encrypted. It must not be believed.
// Holds F23.
func TestEncryptionIsNeverForgotten(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	dir := t.TempDir()
	b := start(t, through, dir, nil, you.UserID())
	room := directChat(t, you, b)
	b.says(room, session.Outgoing{ID: "before", Text: "a secret"})
	peertest.Next(t, you, messageIn(room))
	b.stop()
	db := openDB(t, dir)
	if _, err := db.ExecContext(t.Context(), `DELETE FROM mx_room_state`); err != nil {
		t.Fatal(err)
	}
	db.Close()
	net.set(func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		if !strings.HasSuffix(r.URL.Path, "/state") {
			return false
		}
		rec := httptest.NewRecorder()
		r.Header.Del("Accept-Encoding")
		forward(rec)
		var state, kept []map[string]any
		if err := json.Unmarshal(rec.Body.Bytes(), &state); err != nil {
			t.Errorf("state: %v", err)
		}
		for _, e := range state {
			if e["type"] != "m.room.encryption" {
				kept = append(kept, e)
			}
		}
		if len(kept) == len(state) {
			t.Error("there was nothing to hide")
		}
		_ = json.NewEncoder(w).Encode(kept)
		return true
	})
	b = start(t, through, dir, nil, you.UserID())
	b.says(room, session.Outgoing{ID: "after", Text: "a secret too"})
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "a secret too" || !e.Encrypted {
		t.Errorf("got %+v", e)
	}
	onServer(t, you, room, "secret")
}

// The program dies after the server took the message and before that is noted.
// Holds F11.
func TestStoppedBetweenSendingAndKnowing(t *testing.T) {
	t.Parallel()
	server := homeservertest.Start(t)
	register(t, server)
	you := peertest.Start(t, server, "you")
	net, through := between(t, server)
	dir := t.TempDir()
	// The message goes through, its answer does not, and no sync from then on:
	// the bot cannot know.
	var cut atomic.Bool
	hang := func(r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a closed connection only when it has read all
		<-r.Context().Done()
		return true
	}
	net.set(func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		switch {
		case isSend(r):
			cut.Store(true)
			forward(httptest.NewRecorder())
			return hang(r)
		case cut.Load():
			return hang(r)
		case !strings.HasSuffix(r.URL.Path, "/sync"):
			return false
		}
		rec := httptest.NewRecorder()
		forward(rec)
		if cut.Load() {
			return hang(r)
		}
		copyResponse(w, rec)
		return true
	})
	b := start(t, through, dir, nil, you.UserID())
	room := directChat(t, you, b)
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "once", Text: "only once"}); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "only once" {
		t.Errorf("got %+v", e)
	}
	b.stop()
	net.set(nil)
	b = start(t, through, dir, nil, you.UserID())
	if err := b.Say(t.Context(), room, session.Outgoing{ID: "then", Text: "then"}); err != nil {
		t.Fatal(err)
	}
	e := peertest.Next(t, you, func(e peer.Event) bool { return e.Room == room && (e.Kind == peer.Message || e.Kind == peer.Edit) })
	if e.Body != "then" {
		t.Errorf("after the restart came %+v: said twice", e)
	}
	if got := net.sent(); !slices.Equal(got, []string{"once", "then"}) {
		t.Errorf("sent %v: the server's memory of transactions was needed, and a restarted server has none", got)
	}
}
