package matrix_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/matrix"
	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/session"
)

const (
	ann  = "@ann:matrix.test"  // an owner
	ben  = "@ben:matrix.test"  // who may talk to the bot
	carl = "@carl:matrix.test" // who may not
)

// roomHistory is what happened in a room, as far as it says with whom the room is private.
type roomHistory struct {
	room    string
	with    string          // whose direct chat it is
	setting string          // of the room: auto, on, off
	setBy   string          // who set that
	members map[string]bool // besides the bot
	seen    map[string]bool // who ever was a member, besides the bot
	open    bool            // it was world readable, now or ever
}

// privateWith is the person with whom the room must be private; "" = it must not be.
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

// historyWorld is a bot of ann, and what is done to its rooms.
type historyWorld struct {
	t      *testing.T
	s      *matrixtest.Server
	server *homeserver.Server
	b      *bot
	token  string
}

// TestPrivateHistories: whatever happens in a room, a message there is private if and only if
// the room is the direct chat of its sender, nobody else was ever in it, and it never was world
// readable.
// Holds M37.
func TestPrivateHistories(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	for _, name := range []string{"ann", "ben", "carl"} {
		s.Account(name, "a long enough password")
	}
	handle := func(b *bot, in session.Inbound) { ok(b.t, b.Handled(b.t.Context(), in.ID)) }
	b := startWith(t, server, t.TempDir(), handle, func(cfg *matrix.Config) {
		cfg.Hurry()
		cfg.Allow = []string{ben}
	}, ann)
	var l login
	call(t, server, http.MethodPost, "login", "", content{"type": "m.login.password", "password": botPassword,
		"identifier": content{"type": "m.id.user", "user": "reverie"}}, &l)
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

// begin has the bot join a new room.
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

// hear returns what the bot makes of a message of sender.
func (w *historyWorld) hear(rt *rapid.T, sender, room string) session.Inbound {
	id := w.s.Post(sender, room, "m.room.message", text("hello", content{"m.mentions": content{"user_ids": []string{w.b.UserID()}}}))
	in := w.b.next()
	if in.ID != id {
		rt.Fatalf("heard %+v", in)
	}
	return in
}

// step does something to a room.
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
		ok(w.t, session.Settings{DB: db}.Set(w.t.Context(), h.room, session.SettingDirect, h.setting, h.setBy, time.Now()))
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
