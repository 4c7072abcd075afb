package matrix_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/doctor"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/test/expect"
)

// network is a proxy between the bot and its homeserver that injects faults.
type network struct {
	proxy *httputil.ReverseProxy

	mu      sync.Mutex
	trouble func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool
}

// between returns the server as seen through a network.
func between(t *testing.T, server *homeserver.Server) (*network, *homeserver.Server) {
	t.Helper()
	target := expect.Must(url.Parse(server.URL))(t)
	n := &network{proxy: httputil.NewSingleHostReverseProxy(target)}
	n.proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	front := httptest.NewServer(n)
	t.Cleanup(front.Close)
	return n, &homeserver.Server{URL: front.URL, Name: server.Name}
}

func (n *network) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	trouble := n.trouble
	n.mu.Unlock()
	forward := func(w http.ResponseWriter) { n.proxy.ServeHTTP(w, r) }
	if trouble == nil || !trouble(w, r, forward) {
		forward(w)
	}
}

// set installs a fault. It returns true if it has answered the request, and false to forward it.
func (n *network) set(f func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.trouble = f
}

func isSend(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/send/")
}

// times runs f for the first n requests that match, and lets the rest through.
func times(n int, match func(*http.Request) bool, f func(w http.ResponseWriter, forward func(http.ResponseWriter))) func(http.ResponseWriter, *http.Request, func(http.ResponseWriter)) bool {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) bool {
		mu.Lock()
		hit := n > 0 && match(r)
		if hit {
			n--
		}
		mu.Unlock()
		if hit {
			f(w, forward)
		}
		return hit
	}
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// directChat creates an encrypted direct chat of you and a running bot, and waits until the bot has seen it.
func directChat(t *testing.T, you *peer.Peer, b *bot) string {
	t.Helper()
	room := create(t, you, peer.Room{Direct: true, Encrypted: true, Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	b.knows(room)
	return room
}

// A message changes while the result of its first send is unknown. The server takes the second send for
// a repetition, so an edit must follow.
func TestChangedDuringUnknownSend(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	net, through := between(t, server)
	b := start(t, through, t.TempDir(), nil, you.UserID())
	room := directChat(t, you, b)
	change := func(text string) {
		if err := b.Send(context.Background(), room, chat.Outgoing{ID: "answer", Text: text}); err != nil {
			t.Error(err)
		}
	}
	net.set(times(1, isSend, func(w http.ResponseWriter, forward func(http.ResponseWriter)) {
		forward(httptest.NewRecorder())
		change("second thoughts")
		hangUp(w)
	}))
	change("first thoughts")
	first := peertest.Next(t, you, messageIn(room))
	expect.Equal(t, first.Body, "first thoughts", "what came")
	if e := peertest.Next(t, you, peertest.Kind(room, peer.Edit)); e.ID != first.ID || e.Body != "second thoughts" {
		t.Errorf("got %+v", e)
	}
}

// The bot speaks first in a room: it has joined, but no sync has shown the room, and the invitation had
// little state. Its message must be encrypted and readable.
// Holds F24.
func TestFirstWordsBeforeTheRoomIsSeen(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
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
	b.says(room, chat.Outgoing{ID: "hello", Text: "a first word"})
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "a first word" || !e.Encrypted {
		t.Errorf("got %+v", e)
	}
	onServer(t, you, room, "a first word")
}

// The homeserver refuses the join after its own invitation, as Dendrite does while the state of a new
// room is changing. The bot tries again.
func TestJoinIsRefusedAtFirst(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	net, through := between(t, server)
	isJoin := func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/join/") }
	net.set(times(1, isJoin, func(w http.ResponseWriter, _ func(http.ResponseWriter)) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"errcode":"M_FORBIDDEN","error":"InputWasRejected"}`))
	}))
	b := start(t, through, t.TempDir(), nil, you.UserID())
	joined(t, you, create(t, you, peer.Room{Encrypted: true, Invite: []string{b.UserID()}}), b.UserID())
}

func copyResponse(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	maps.Copy(w.Header(), rec.Header())
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}

// The server claims that an encrypted room is not encrypted. The bot must still encrypt.
// Holds F23.
func TestEncryptionIsNeverForgotten(t *testing.T) {
	t.Parallel()
	server, you := atHome(t)
	net, through := between(t, server)
	dir := t.TempDir()
	b := start(t, through, dir, nil, you.UserID())
	room := directChat(t, you, b)
	b.says(room, chat.Outgoing{ID: "before", Text: "a secret"})
	peertest.Next(t, you, messageIn(room))
	b.stop()
	db := openDB(t, dir)
	execute(t, db, `DELETE FROM mx_room_state`)
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
	b.says(room, chat.Outgoing{ID: "after", Text: "a secret too"})
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "a secret too" || !e.Encrypted {
		t.Errorf("got %+v", e)
	}
	onServer(t, you, room, "secret")
}

// fakeHomeserver starts a fake homeserver with the bot's account.
func fakeHomeserver(t *testing.T) (*matrixtest.Server, *homeserver.Server) {
	t.Helper()
	s := matrixtest.Start(t)
	s.Account("reverie", botPassword)
	return s, &homeserver.Server{URL: s.URL, Name: s.Name}
}

func person(t *testing.T, s *matrixtest.Server, name string) *peer.Peer {
	t.Helper()
	const password = "a long enough password"
	p := expect.Must(peer.Login(t.Context(), peer.Config{
		Homeserver: s.URL, User: s.Account(name, password), Password: password, DB: filepath.Join(t.TempDir(), name+".db"),
	}))(t)
	peertest.Run(t, p)
	return p
}

// roomWith creates a room of you and the bot without a request of yours: the bot joins faster than your
// client can process the invitation.
func roomWith(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot, q matrixtest.NewRoom) string {
	t.Helper()
	q.Invite = []string{b.UserID()}
	room := s.Room(you.UserID(), q)
	joined(t, you, room, b.UserID())
	return room
}

// metIn creates a direct chat of you and the bot.
func metIn(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot, encrypted bool) string {
	t.Helper()
	return roomWith(t, s, you, b, matrixtest.NewRoom{Direct: true, Encrypted: encrypted})
}

// chatting starts a fake homeserver and your bot, with a direct chat.
func chatting(t *testing.T, encrypted bool, answer func(*bot, chat.Message)) (s *matrixtest.Server, you *peer.Peer, b *bot, room string) {
	t.Helper()
	return chattingWith(t, encrypted, answer, hurry)
}

func chattingWith(t *testing.T, encrypted bool, answer func(*bot, chat.Message), change func(*matrix.Config)) (s *matrixtest.Server, you *peer.Peer, b *bot, room string) {
	t.Helper()
	s, you, b = meetingWith(t, answer, change)
	return s, you, b, metIn(t, s, you, b, encrypted)
}

// meeting starts a fake homeserver and your bot.
func meeting(t *testing.T, answer func(*bot, chat.Message)) (s *matrixtest.Server, you *peer.Peer, b *bot) {
	t.Helper()
	return meetingWith(t, answer, hurry)
}

func meetingWith(t *testing.T, answer func(*bot, chat.Message), change func(*matrix.Config)) (s *matrixtest.Server, you *peer.Peer, b *bot) {
	t.Helper()
	s, server := fakeHomeserver(t)
	you = person(t, s, "you")
	return s, you, startWith(t, server, t.TempDir(), answer, change, you.UserID())
}

// group creates a group of you and the bot.
func group(t *testing.T, s *matrixtest.Server, you *peer.Peer, b *bot) string {
	t.Helper()
	return roomWith(t, s, you, b, matrixtest.NewRoom{})
}

// groupWithStranger starts a fake homeserver and your bot, with a group of you and another user, who may not talk to
// the bot.
func groupWithStranger(t *testing.T, encrypted bool, answer func(*bot, chat.Message)) (s *matrixtest.Server, you, other *peer.Peer, b *bot, room string) {
	t.Helper()
	s, you, b = meeting(t, answer)
	other = person(t, s, "other")
	room = roomWith(t, s, you, b, matrixtest.NewRoom{Encrypted: encrypted, Join: []string{other.UserID()}})
	joined(t, other, room, b.UserID())
	b.knows(room)
	return s, you, other, b, room
}

// await waits until holds is true.
func await(t *testing.T, s *matrixtest.Server, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peertest.Patience)
	defer cancel()
	if err := s.Await(ctx, holds); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// inPlace activates a fault, and waits until no earlier request is open.
func inPlace(t *testing.T, s *matrixtest.Server, match matrixtest.Match, fault matrixtest.Fault) *matrixtest.Hook {
	t.Helper()
	h := s.Fault(match, fault)
	await(t, s, "the fault is not met", func() bool { return h.Hits() > 0 })
	return h
}

// roomEvent is the current version of an event.
type roomEvent struct {
	ID      string `json:"event_id"`
	Type    string `json:"type"`
	Sender  string `json:"sender"`
	Content struct {
		eventText
		Live    any       `json:"org.matrix.msc4357.live"`
		Session string    `json:"session_id"`
		Key     string    `json:"sender_key"`
		Relates relation  `json:"m.relates_to"`
		New     eventText `json:"m.new_content"`
	} `json:"content"`
	Unsigned struct {
		Because json.RawMessage `json:"redacted_because"`
	} `json:"unsigned"`
}

// eventText is the text of an event and its mentions.
type eventText struct {
	MsgType   string    `json:"msgtype"`
	Body      string    `json:"body"`
	Formatted string    `json:"formatted_body"`
	Mentions  *mentions `json:"m.mentions"`
}

type mentions struct {
	Users []string `json:"user_ids"`
	Room  bool     `json:"room"`
}

// users returns the mentioned users.
func (t eventText) users() []string {
	if t.Mentions == nil {
		return nil
	}
	return t.Mentions.Users
}

// relation is an event's m.relates_to.
type relation struct {
	Type     string `json:"rel_type"`
	Event    string `json:"event_id"`
	Fallback bool   `json:"is_falling_back"`
	Reply    struct {
		Event string `json:"event_id"`
	} `json:"m.in_reply_to"`
}

// eventsIn lists the events of user in a room of these types, oldest first, without malformed ones.
func eventsIn(s *matrixtest.Server, room, user string, types ...string) (all []roomEvent) {
	for _, raw := range s.Events(room) {
		var e roomEvent
		if json.Unmarshal(raw, &e) == nil && e.Sender == user && slices.Contains(types, e.Type) {
			all = append(all, e)
		}
	}
	return all
}

func hurry(cfg *matrix.Config) { cfg.Hurry() }

// thief removes the to-device events from the bot's syncs, and returns them later.
type thief struct {
	s    *matrixtest.Server
	bot  string
	hook *matrixtest.Hook
	mu   sync.Mutex
	loot []any
}

func steal(t *testing.T, s *matrixtest.Server, bot string) *thief {
	th := &thief{s: s, bot: bot}
	th.hook = inPlace(t, s, matrixtest.On("sync").By(bot), rewritten(t, func(body map[string]any) {
		toDevice, _ := body["to_device"].(map[string]any)
		events, _ := toDevice["events"].([]any)
		th.mu.Lock()
		defer th.mu.Unlock()
		th.loot = append(th.loot, events...)
		delete(body, "to_device")
	}))
	return th
}

// giveBack delivers the events. If the bot runs, it waits until no sync is open that would lose them.
func (th *thief) giveBack(t *testing.T, running bool) {
	t.Helper()
	th.hook.Remove()
	if running {
		inPlace(t, th.s, matrixtest.On("sync").By(th.bot), matrixtest.Delay(0))
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	for _, e := range th.loot {
		if e, _ := e.(map[string]any); e["type"] == "m.room.encrypted" {
			th.s.SendToDevice(e["sender"].(string), th.bot, "m.room.encrypted", e["content"])
		}
	}
}

// becomes waits until the bot's status is as wanted, and returns it.
func (b *bot) becomes(not string, wanted func(doctor.Status) bool) doctor.Status {
	b.t.Helper()
	end := time.Now().Add(peertest.Patience)
	for {
		s := b.Status(b.t.Context())
		if wanted(s) {
			return s
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s: %+v", not, s)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// utd waits until n messages wait for their key.
func (b *bot) utd(n int) {
	b.t.Helper()
	b.becomes("messages that wait for their key", func(s doctor.Status) bool { return s.Undecryptable == n })
}

// One event panics: the others of its sync are answered in their order; it is retried, and in the end given
// up with a notice to its sender.
// Holds F40.
func TestPanicOverOneEvent(t *testing.T) {
	t.Parallel()
	_, you, b, room := chatting(t, true, echo)
	b.stop()
	var ids []string
	for _, text := range []string{"one", "twice", "always", "two"} {
		ids = append(ids, say(t, you, room, text))
	}
	var mu sync.Mutex
	times := map[string]int{ids[1]: 2, ids[2]: 100}
	b = startWith(t, b.server, b.dir, echo, atMessage("matrix: message", func(r slog.Record) {
		mu.Lock()
		defer mu.Unlock()
		if e := attribute(r, "event"); times[e] > 0 {
			times[e]--
			panic("a fault for a test")
		}
	}), you.UserID())
	var got []string
	for range 4 {
		got = append(got, peertest.Next(t, you, messageIn(room)).Body)
	}
	if slices.Index(got, "echo: **one**") > slices.Index(got, "echo: **two**") {
		t.Errorf("two is answered before one: %q", got)
	}
	slices.Sort(got)
	want := []string{"Something went wrong", "echo: **one**", "echo: **twice**", "echo: **two**"}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			t.Errorf("message %d reads %q, want %q", i, got[i], w)
		}
	}
	b.becomes("not one message given up", func(s doctor.Status) bool { return s.Lost == 1 && s.Inbox == 0 && s.Undecryptable == 0 })
	mu.Lock()
	defer mu.Unlock()
	expect.Equal(t, 100-times[ids[2]], 3, "tries")
}

// Malformed events do not stop the others.
// Holds F39.
func TestBrokenEvents(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	var broken atomic.Bool // your own client stumbles over such events
	s.Fault(matrixtest.On("sync").By(you.UserID()), matrixtest.Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		if broken.Load() {
			return nil
		}
		return events
	}))
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	room := metIn(t, s, you, b, false)
	b.stop()
	broken.Store(true)
	sender := fmt.Sprintf(`"sender":%q,`, you.UserID())
	for _, raw := range []string{
		`null`, `5`, `[]`, `{}`, `{` + sender + `"content":5}`, `{` + sender + `"content":null}`, `{` + sender + `"content":[]}`,
		`{` + sender + `"origin_server_ts":"yesterday","content":{"msgtype":"m.text","body":"x"}}`,
		`{` + sender + `"type":7,"content":{}}`, `{` + sender + `"content":{"msgtype":5,"body":{}}}`,
		`{` + sender + `"content":{"msgtype":"m.text","body":"x","m.relates_to":"y"}}`,
		`{` + sender + `"type":"m.room.encrypted","content":{"algorithm":7}}`,
		`{` + sender + `"type":"m.room.redaction","content":{"redacts":[1]}}`,
		`{` + sender + `"type":"m.room.member","state_key":"` + b.UserID() + `","content":{"membership":[]}}`,
		`{` + sender + `"content":{"body":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}}`,
	} {
		expect.Must(s.Inject(room, raw))(t)
	}
	s.Say(you.UserID(), room, "still there?")
	b = b.again(echo)
	b.hears("still there?")
}
