package matrix_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/matrix/homeserver"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// moves notes what was brought along.
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

// upgrading is a bot in a room of yours and a friend's, and what it has moved.
type upgrading struct {
	s           *matrixtest.Server
	server      *homeserver.Server
	you, friend *peer.Peer
	dir         string
	b           *bot
	moves       *moves
	old         string
}

func newUpgrading(t *testing.T, answer func(*bot, session.Inbound)) *upgrading {
	s, server := pretend(t)
	u := &upgrading{s: s, server: server, you: person(t, s, "you"), friend: person(t, s, "friend"), dir: t.TempDir(), moves: &moves{}}
	u.start(t, answer)
	u.old = s.Room(u.you.UserID(), matrixtest.NewRoom{Name: "ours", Invite: []string{u.b.UserID()}, Join: []string{u.friend.UserID()}})
	joined(t, u.you, u.old, u.b.UserID())
	u.b.knows(u.old)
	return u
}

// knows waits until the bot is in a room and a sync has shown it something of that: one of which it
// has seen nothing has nothing to bring along when it is replaced.
func (b *bot) knows(room string) {
	b.t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.dir, "bot.db"))
	ok(b.t, err)
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

func (u *upgrading) start(t *testing.T, answer func(*bot, session.Inbound)) {
	u.b = startWith(t, u.server, u.dir, answer, hurry, u.you.UserID(), u.friend.UserID())
	u.b.OnUpgrade(u.moves.move)
}

// successor makes a room that says it replaces another one.
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

// told expects a notice with these words as the next message of a room.
func (u *upgrading) told(t *testing.T, room, words string) {
	t.Helper()
	if e := peertest.Next(t, u.you, messageIn(room)); !e.Notice || !strings.Contains(e.Body, words) {
		t.Errorf("in %s came %+v, want %q", room, e, words)
	}
}

// notices counts what the bot has said in a room that contains text.
func (u *upgrading) notices(room, text string) (n int) {
	for _, raw := range u.s.Events(room) {
		if strings.Contains(string(raw), text) && strings.Contains(string(raw), fmt.Sprintf("%q", u.b.UserID())) {
			n++
		}
	}
	return n
}

const brought = "takes the place of our old one"

// A room is replaced while the bot answers in it: the answer comes in the old
// room, and then the bot goes on in the new one, with what belonged to the old.
// Holds F31.
func TestUpgradedWhileAnswering(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(release)
	asked := make(chan struct{}, 1)
	u := newUpgrading(t, func(b *bot, in session.Inbound) {
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
	if got := u.moves.made(); len(got) != 0 {
		t.Errorf("brought along before the end: %q", got)
	}
	release()
	hears(t, u.you, u.old, "echo: **long**")
	u.told(t, to, brought)
	hears(t, u.you, to, "echo: **next**")

	// Told again, while running and after a restart, nothing happens.
	ok(t, u.s.Redeliver(u.old, stone))
	u.tombstone(u.you.UserID(), to)
	u.b.stop()
	ok(t, u.s.Redeliver(u.old, stone))
	u.start(t, echo)
	u.ask(t, to, "and now?")
	hears(t, u.you, to, "echo: **and now?**")
	if got, want := u.moves.made(), []string{u.old + " " + to}; !slices.Equal(got, want) {
		t.Errorf("brought along %q, want %q", got, want)
	}
	if n := u.notices(to, brought); n != 1 {
		t.Errorf("the new room was told %d times", n)
	}
}

// The other ways in which a room is replaced.
// Holds F31, M53.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	follows := func(t *testing.T, u *upgrading, to string) {
		t.Helper()
		u.told(t, to, brought)
		if got, want := u.moves.made(), []string{u.old + " " + to}; !slices.Equal(got, want) {
			t.Errorf("brought along %q, want %q", got, want)
		}
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
		u.old = u.s.Room(u.you.UserID(), matrixtest.NewRoom{Direct: true, Encrypted: true, Invite: []string{u.b.UserID()}})
		joined(t, u.you, u.old, u.b.UserID())
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
		if got := u.moves.made(); len(got) != 1 {
			t.Errorf("brought along %q", got)
		}
	})
	t.Run("closed until invited", func(t *testing.T) {
		u := newUpgrading(t, echo)
		to := u.successor(u.old, "invite", matrixtest.NewRoom{})
		u.tombstone(u.you.UserID(), to)
		u.told(t, u.old, "invite me")
		u.s.SetState(u.you.UserID(), to, "m.room.member", u.b.UserID(), map[string]any{"membership": "invite"})
		follows(t, u, to)
		if n := u.notices(u.old, "invite me"); n != 1 {
			t.Errorf("the old room was told %d times", n)
		}
	})
	t.Run("closed, with a direct chat", func(t *testing.T) {
		u := newUpgrading(t, echo)
		dm := chat(t, u.s, u.you, u.b, true)
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
		if n := u.s.Count("join"); n != joins {
			t.Errorf("%d rooms joined", n-joins)
		}
		u.s.SetState(u.you.UserID(), to, "m.room.member", u.b.UserID(), map[string]any{"membership": "invite"})
		follows(t, u, to)
		if n := u.notices(u.old, "invite me"); n != 1 {
			t.Errorf("the old room was told %d times", n)
		}
	})
	t.Run("into a room that a false tombstone named before", func(t *testing.T) {
		u := newUpgrading(t, echo)
		other := u.s.Room(u.friend.UserID(), matrixtest.NewRoom{Direct: true, Invite: []string{u.b.UserID()}})
		joined(t, u.friend, other, u.b.UserID())
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

// Who may not replace a room, and a room that does not say it replaces another
// one, get nothing.
// Holds F31, M53.
func TestUpgradesThatAreNone(t *testing.T) {
	t.Run("by somebody who may not", func(t *testing.T) {
		u := newUpgrading(t, echo)
		to := u.successor(u.old, "public", matrixtest.NewRoom{})
		u.tombstone(u.friend.UserID(), to)
		u.ask(t, u.old, "still there?")
		peertest.Next(t, u.you, messageIn(u.old)) // the tombstone was seen before that
		if n := u.s.Count("join"); n != 1 {
			t.Errorf("%d requests to join one room", n)
		}
		if m := u.s.Membership(to, u.b.UserID()); m != "" || len(u.moves.made()) != 0 {
			t.Errorf("membership %q, brought along %q", m, u.moves.made())
		}
	})
	t.Run("into a room that says nothing of it", func(t *testing.T) {
		u := newUpgrading(t, echo)
		chat := chat(t, u.s, u.you, u.b, true)
		fault := u.s.Fault(matrixtest.On("state").In(chat).By(u.b.UserID()).Times(1), matrixtest.Status(http.StatusBadGateway, ""))
		u.tombstone(u.you.UserID(), chat)
		await(t, u.s, "the tombstone was not seen", func() bool { return strings.Contains(u.b.log.String(), "does not say that it replaces") })
		say(t, u.you, chat, "still there?")
		hears(t, u.you, chat, "echo: **still there?**")
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
