package matrix_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/chat"
	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/settings"
	"reverie/internal/test/expect"
)

// moves records the moves of room data.
type moves struct {
	mu    sync.Mutex
	list  []string
	fails int
}

func (m *moves) move(_ context.Context, from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails > 0 {
		m.fails--
		return errors.New("a fault for a test")
	}
	m.list = append(m.list, from+" "+to)
	return nil
}

func (m *moves) made() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.list)
}

// upgrading is a bot in a room of you and a friend, and its moves.
type upgrading struct {
	s           *matrixtest.Server
	server      *homeserver.Server
	you, friend *peer.Peer
	dir         string
	b           *bot
	moves       *moves
	old         string
}

func newUpgrading(t *testing.T, answer func(*bot, chat.Message)) *upgrading {
	s, server := fakeHomeserver(t)
	u := &upgrading{s: s, server: server, you: person(t, s, "you"), friend: person(t, s, "friend"), dir: t.TempDir(), moves: &moves{}}
	u.start(t, answer)
	u.old = roomWith(t, s, u.you, u.b, matrixtest.NewRoom{Name: "ours", Join: []string{u.friend.UserID()}})
	u.b.knows(u.old)
	return u
}

// knows waits until the bot has joined a room and a sync has shown an event of it: a room without events has
// nothing to move.
func (b *bot) knows(room string) {
	b.t.Helper()
	db := expect.Must(sql.Open("sqlite", filepath.Join(b.dir, "bot.db")))(b.t)
	defer db.Close()
	for deadline := time.Now().Add(peertest.Patience); ; time.Sleep(5 * time.Millisecond) {
		var seen bool
		err := db.QueryRowContext(b.t.Context(), `SELECT last_event <> '' AND membership = 'joined' FROM matrix_room WHERE id = ?`, room).Scan(&seen)
		if seen {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("the bot has seen nothing of %s: %v", room, err)
		}
	}
}

func (u *upgrading) start(t *testing.T, answer func(*bot, chat.Message)) {
	u.b = startWith(t, u.server, u.dir, answer, hurry, u.you.UserID(), u.friend.UserID())
	u.b.onUpgrade(u.moves.move)
}

// successor creates a room that names another one as predecessor.
func (u *upgrading) successor(of, rule string, q matrixtest.NewRoom) string {
	q.Replaces = of
	room := u.s.Room(u.you.UserID(), q)
	u.s.SetState(u.you.UserID(), room, "m.room.join_rules", "", map[string]any{"join_rule": rule})
	return room
}

func (u *upgrading) tombstone(sender, to string) string {
	return u.s.SetState(sender, u.old, "m.room.tombstone", "", map[string]any{"body": "moved", "replacement_room": to})
}

func (u *upgrading) ask(t *testing.T, room, text string) {
	t.Helper()
	sayTo(t, u.you, room, text, u.b.UserID())
}

// told expects a notice with these words next in a room.
func (u *upgrading) told(t *testing.T, room, words string) {
	t.Helper()
	if e := peertest.Next(t, u.you, messageIn(room)); !e.Notice || !strings.Contains(e.Body, words) {
		t.Errorf("in %s came %+v, want %q", room, e, words)
	}
}

// notices counts the bot's messages in a room that contain text.
func (u *upgrading) notices(room, text string) (n int) {
	for _, raw := range u.s.Events(room) {
		if strings.Contains(string(raw), text) && strings.Contains(string(raw), fmt.Sprintf("%q", u.b.UserID())) {
			n++
		}
	}
	return n
}

const brought = "replaces our old one"

// A room is upgraded while the bot answers in it: the answer is sent to the old room, and then the bot
// continues in the new one with the old room's data.
// Holds F31.
func TestUpgradedWhileAnswering(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	asked := make(chan struct{}, 1)
	u := newUpgrading(t, func(b *bot, in chat.Message) {
		if in.Text == "long" {
			asked <- struct{}{}
			go func() { <-hold; echo(b, in) }() // go: release ends it
			return
		}
		echo(b, in)
	})
	u.ask(t, u.old, "long")
	<-asked
	to := u.successor(u.old, "public", matrixtest.NewRoom{Name: "ours"})
	stone := u.tombstone(u.you.UserID(), to)
	joined(t, u.you, to, u.b.UserID())
	u.ask(t, to, "next")
	await(t, u.s, "the question in the new room is not there", func() bool { return u.b.Status(t.Context()).Inbox == 2 })
	expect.Equal(t, len(u.moves.made()), 0, "brought along before the end")
	release()
	hears(t, u.you, u.old, "echo: **long**")
	u.told(t, to, brought)
	hears(t, u.you, to, "echo: **next**")
	// Repeated tombstones, while running and after a restart, have no effect.
	expect.OK(t, u.s.Redeliver(u.old, stone))
	u.tombstone(u.you.UserID(), to)
	u.b.stop()
	expect.OK(t, u.s.Redeliver(u.old, stone))
	u.start(t, echo)
	u.ask(t, to, "and now?")
	hears(t, u.you, to, "echo: **and now?**")
	expect.Equal(t, strings.Join(u.moves.made(), ", "), u.old+" "+to, "brought along")
	expect.Equal(t, u.notices(to, brought), 1, "times that the new room was told")
}

// The other cases of upgrades.
// Holds F31, M53.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	follows := func(t *testing.T, u *upgrading, to string) {
		t.Helper()
		u.told(t, to, brought)
		expect.Equal(t, strings.Join(u.moves.made(), ", "), u.old+" "+to, "brought along")
	}
	t.Run("while the bot was down", func(t *testing.T) {
		u := newUpgrading(t, echo)
		u.b.stop()
		to := u.successor(u.old, "public", matrixtest.NewRoom{})
		u.tombstone(u.you.UserID(), to)
		for range 150 { // more than a sync shows
			u.s.Say(u.friend.UserID(), u.old, "is anybody there?")
		}
		u.start(t, echo)
		follows(t, u, to)
	})
	t.Run("a direct chat stays one", func(t *testing.T) {
		u := newUpgrading(t, echo)
		u.old = metIn(t, u.s, u.you, u.b, true)
		u.b.knows(u.old)
		to := u.successor(u.old, "public", matrixtest.NewRoom{Encrypted: true})
		u.tombstone(u.you.UserID(), to)
		follows(t, u, to)
		say(t, u.you, to, "without a mention")
		if in := u.b.next(); in.Room != to || !in.Private {
			t.Errorf("heard %+v", in)
		}
	})
	t.Run("before this store began", func(t *testing.T) {
		u := newUpgrading(t, echo)
		to := u.successor(u.old, "public", matrixtest.NewRoom{})
		u.tombstone(u.you.UserID(), to)
		follows(t, u, to)
		u.b.stop()
		u.dir = t.TempDir()
		u.start(t, echo)
		await(t, u.s, "no sync", func() bool { return !u.b.Status(t.Context()).LastSync.IsZero() })
		u.ask(t, to, "still there?")
		hears(t, u.you, to, "echo: **still there?**")
		expect.Equal(t, len(u.moves.made()), 1, "brought along")
	})
	t.Run("closed until invited", func(t *testing.T) {
		u := newUpgrading(t, echo)
		to := u.successor(u.old, "invite", matrixtest.NewRoom{})
		u.tombstone(u.you.UserID(), to)
		u.told(t, u.old, "invite me")
		u.s.SetState(u.you.UserID(), to, "m.room.member", u.b.UserID(), map[string]any{"membership": "invite"})
		follows(t, u, to)
		expect.Equal(t, u.notices(u.old, "invite me"), 1, "times that the old room was told")
	})
	t.Run("closed, with a direct chat", func(t *testing.T) {
		u := newUpgrading(t, echo)
		dm := metIn(t, u.s, u.you, u.b, true)
		u.tombstone(u.you.UserID(), u.successor(u.old, "invite", matrixtest.NewRoom{}))
		u.told(t, dm, "invite me")
	})
	t.Run("by somebody who may not talk to the bot, and an invitation", func(t *testing.T) {
		u := newUpgrading(t, echo)
		eve := u.s.Account("eve", "a long enough password")
		u.s.SetState(u.you.UserID(), u.old, "m.room.power_levels", "", map[string]any{"users": map[string]int{eve: 100}})
		joins := u.s.Count("join")
		to := u.successor(u.old, "public", matrixtest.NewRoom{})
		u.tombstone(eve, u.s.Room(eve, matrixtest.NewRoom{}))
		u.tombstone(eve, to)
		u.told(t, u.old, "invite me")
		expect.Equal(t, u.s.Count("join"), joins, "rooms joined")
		u.s.SetState(u.you.UserID(), to, "m.room.member", u.b.UserID(), map[string]any{"membership": "invite"})
		follows(t, u, to)
		expect.Equal(t, u.notices(u.old, "invite me"), 1, "times that the old room was told")
	})
	t.Run("into a room that a false tombstone named before", func(t *testing.T) {
		u := newUpgrading(t, echo)
		other := metIn(t, u.s, u.friend, u.b, false)
		u.b.knows(other)
		to := u.successor(u.old, "public", matrixtest.NewRoom{})
		u.s.SetState(u.friend.UserID(), other, "m.room.tombstone", "", map[string]any{"body": "moved", "replacement_room": to})
		u.tombstone(u.you.UserID(), to)
		follows(t, u, to)
		u.ask(t, to, "are you there?")
		hears(t, u.you, to, "echo: **are you there?**")
	})
	t.Run("bringing along fails at first", func(t *testing.T) {
		u := newUpgrading(t, echo)
		u.moves.fails = 1
		to := u.successor(u.old, "public", matrixtest.NewRoom{})
		u.tombstone(u.you.UserID(), to)
		follows(t, u, to)
	})
}

// Users without permission, and rooms that do not name the old one as predecessor, get nothing.
// Holds F31, M53.
func TestInvalidUpgrades(t *testing.T) {
	t.Run("by a person who may not", func(t *testing.T) {
		u := newUpgrading(t, echo)
		to := u.successor(u.old, "public", matrixtest.NewRoom{})
		u.tombstone(u.friend.UserID(), to)
		u.ask(t, u.old, "still there?")
		peertest.Next(t, u.you, messageIn(u.old)) // the tombstone was seen before that
		expect.Equal(t, u.s.Count("join"), 1, "requests to join one room")
		if m := u.s.Membership(to, u.b.UserID()); m != "" || len(u.moves.made()) != 0 {
			t.Errorf("membership %q, brought along %q", m, u.moves.made())
		}
	})
	t.Run("into a room that says nothing of it", func(t *testing.T) {
		u := newUpgrading(t, echo)
		chat := metIn(t, u.s, u.you, u.b, true)
		fault := u.s.Fault(matrixtest.On("state").In(chat).By(u.b.UserID()).Times(1), matrixtest.Status(http.StatusBadGateway, ""))
		u.tombstone(u.you.UserID(), chat)
		await(t, u.s, "the tombstone was not seen", func() bool { return strings.Contains(u.b.log.String(), "does not name the old one as predecessor") })
		echoes(t, u.you, chat, "still there?")
		u.ask(t, u.old, "and here?")
		hears(t, u.you, u.old, "echo: **and here?**")
		if got := u.moves.made(); len(got) != 0 || fault.Hits() == 0 {
			t.Errorf("brought along %q; the fault was met %d times", got, fault.Hits())
		}
	})
	t.Run("broken", func(t *testing.T) {
		u := newUpgrading(t, echo)
		for _, content := range []string{`{}`, `{"replacement_room":""}`, `{"replacement_room":7}`, `{"replacement_room":` + fmt.Sprintf("%q", u.old) + `}`, `{"replacement_room":"!gone"}`} {
			u.s.SetState(u.you.UserID(), u.old, "m.room.tombstone", "", json.RawMessage(content))
		}
		u.told(t, u.old, "invite me")
		u.ask(t, u.old, "still there?")
		hears(t, u.you, u.old, "echo: **still there?**")
	})
}

const (
	ann  = "@ann:matrix.test"  // an owner
	ben  = "@ben:matrix.test"  // who may talk to the bot
	carl = "@carl:matrix.test" // who may not
)

// roomHistory is the history of a room, as far as its privacy depends on it.
type roomHistory struct {
	room    string
	with    string          // whose direct chat it is
	setting string          // of the room: auto, on, off
	setBy   string          // who set that
	members map[string]bool // besides the bot
	seen    map[string]bool // who ever was a member, besides the bot
	open    bool            // it was world readable, now or ever
}

// privateWith returns the person with whom the room must be private, or "".
func (h *roomHistory) privateWith() string {
	with := h.with
	switch {
	case h.setting == "off":
		return ""
	case h.setting == "on" && with == "":
		with = h.setBy
	}
	if h.open || len(h.seen) != 1 || !h.seen[with] {
		return ""
	}
	return with
}

// TestExposedForAWhile: a state that a later event of the same sync replaces makes a room exposed for good, too.
func TestExposedForAWhile(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"m.room.history_visibility", "m.room.member"} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			s, you, b, room := chatting(t, false, echo)
			expect.Equal(t, expect.Must(b.DirectWith(t.Context(), room))(t), you.UserID())
			b.stop()
			if key == "m.room.member" {
				stranger := s.Account("carl", "a long enough password")
				for _, membership := range []string{"invite", "join", "leave", "knock"} {
					s.SetState(stranger, room, key, stranger, content{"membership": membership})
				}
			} else {
				for _, readers := range []string{"world_readable", "shared"} {
					s.SetState(you.UserID(), room, key, "", content{"history_visibility": readers})
				}
			}
			b = b.again(echo)
			say(t, you, room, "hello")
			hears(t, you, room, "echo: **hello**")
			expect.Equal(t, expect.Must(b.DirectWith(t.Context(), room))(t), "")
		})
	}
}

// historyWorld is a bot of ann and its rooms.
type historyWorld struct {
	t      *testing.T
	s      *matrixtest.Server
	server *homeserver.Server
	b      *bot
	token  string
}

// TestPrivateHistories: with any history, a message is private if and only if the room is the direct chat of
// its sender, no one else was ever a member, and it was never world-readable.
// Holds M37.
func TestPrivateHistories(t *testing.T) {
	t.Parallel()
	s, server := fakeHomeserver(t)
	for _, name := range []string{"ann", "ben", "carl"} {
		s.Account(name, "a long enough password")
	}
	handle := func(b *bot, in chat.Message) { expect.OK(b.t, b.Ack(b.t.Context(), in.ID)) }
	b := startWith(t, server, t.TempDir(), handle, func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Allow = []string{ben}
	}, ann)
	l := logIn(t, server, "")
	w := &historyWorld{t: t, s: s, server: server, b: b, token: l.AccessToken}
	private, public := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		h := w.begin(rt)
		for range rapid.IntRange(0, 6).Draw(rt, "steps") {
			w.step(rt, h)
			want := h.privateWith()
			for _, sender := range []string{ann, ben} {
				if !h.members[sender] {
					continue
				}
				in := w.hear(rt, sender, h.room)
				if in.Private != (sender == want) {
					rt.Fatalf("a message of %s is private: %v; the room is private with %q: %+v", sender, in.Private, want, h)
				}
			}
			if got, err := b.DirectWith(t.Context(), h.room); err != nil || got != want {
				rt.Fatalf("the room is private with %q, want %q, %v: %+v", got, want, err, h)
			}
			if want == "" {
				public++
			} else {
				private++
			}
		}
	})
	if private == 0 || public == 0 {
		t.Errorf("%d times private, %d times not: the test shows nothing", private, public)
	}
}

// begin creates a room and waits until the bot has joined.
func (w *historyWorld) begin(rt *rapid.T) *roomHistory {
	by, direct := rapid.SampledFrom([]string{ann, ben}).Draw(rt, "creator"), rapid.Bool().Draw(rt, "direct")
	h := &roomHistory{room: w.s.Room(by, matrixtest.NewRoom{Direct: direct, Invite: []string{w.b.UserID()}}), setting: "auto",
		members: map[string]bool{by: true}, seen: map[string]bool{by: true}}
	if direct {
		h.with = by
	}
	w.hear(rt, by, h.room)
	return h
}

// hear returns a message of sender as the bot receives it.
func (w *historyWorld) hear(rt *rapid.T, sender, room string) chat.Message {
	id := w.s.Post(sender, room, "m.room.message", text("hello", content{"m.mentions": content{"user_ids": []string{w.b.UserID()}}}))
	in := w.b.next()
	if in.ID != id {
		rt.Fatalf("heard %+v", in)
	}
	return in
}

// step changes a room.
func (w *historyWorld) step(rt *rapid.T, h *roomHistory) {
	owner := slices.Sorted(maps.Keys(h.members))[0]
	user := rapid.SampledFrom([]string{ann, ben, carl}).Draw(rt, "user")
	switch rapid.SampledFrom([]string{"enter", "leave", "history", "list", "setting", "tombstone", "nothing", "rename", "broken"}).Draw(rt, "step") {
	case "enter":
		for _, m := range []string{"invite", "join"}[:rapid.IntRange(1, 2).Draw(rt, "how far")] {
			if m == "join" || !h.members[user] {
				w.s.SetState(user, h.room, "m.room.member", user, content{"membership": m})
				h.seen[user], h.members[user] = true, h.members[user] || m == "join"
			}
		}
	case "leave":
		if len(h.members) > 1 && h.members[user] { // the last one takes the bot along
			w.s.SetState(user, h.room, "m.room.member", user, content{"membership": "leave"})
			delete(h.members, user)
		}
	case "history":
		to := rapid.SampledFrom([]any{"shared", "joined", "invited", "world_readable", "World_Readable", 7}).Draw(rt, "visibility")
		w.s.SetState(owner, h.room, "m.room.history_visibility", "", content{"history_visibility": to})
		h.open = h.open || to == "world_readable"
	case "list":
		list := content{user: []string{h.room}}
		call(w.t, w.server, http.MethodPut, "user/"+w.b.UserID()+"/account_data/m.direct", w.token, list, nil)
		if h.with == "" {
			h.with = user
		}
	case "setting":
		h.setting, h.setBy = rapid.SampledFrom([]string{"auto", "on", "off"}).Draw(rt, "value"), owner
		db := openDB(w.t, w.b.dir)
		defer db.Close()
		expect.OK(w.t, settings.Store{DB: db}.Put(w.t.Context(), h.room, settings.Direct, h.setting, h.setBy, time.Now()))
	case "tombstone":
		own := w.s.Room(ben, matrixtest.NewRoom{Direct: true, Invite: []string{w.b.UserID()}})
		w.hear(rt, ben, own)
		w.s.SetState(ben, own, "m.room.tombstone", "", content{"replacement_room": h.room})
		w.hear(rt, ben, own)
	case "broken": // clients that can read this member show one
		w.s.SetState(carl, h.room, "m.room.member", carl, content{"membership": "join", "displayname": 7})
		h.seen[carl] = true
	case "rename":
		w.s.SetState(owner, h.room, "m.room.member", owner, content{"membership": "join", "displayname": "Somebody"})
	}
}
