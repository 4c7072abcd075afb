package main

import (
	"fmt"
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
)

// moves puts a tombstone into room that names another one.
func (r *running) moves(by, room, to string) string {
	return r.s.SetState(by, room, "m.room.tombstone", "", map[string]any{"replacement_room": to, "body": "x"})
}

// TestTombstoneMakesNoRoomDirect: a tombstone in a guest's own direct chat that names your
// group does not make that group a direct chat.
// Holds M36.
func TestTombstoneMakesNoRoomDirect(t *testing.T) {
	r, _, _ := attacked(t)
	group := r.enters(you, matrixtest.NewRoom{Join: []string{friend}})
	own := r.enters(friend, matrixtest.NewRoom{Direct: true})
	r.told(friend, own, "#hi")
	r.moves(friend, own, group)
	r.told(friend, own, "#seen") // the tombstone came before that
	r.becomes(friend, group, friend, "leave")
	r.tells(group, "!whoami", "", "direct chat")
	if r.ask(group, "!memory"); r.shows(group, privateCanary) {
		t.Error("your private memory stands in the group")
	}
}

// TestTombstoneHoldsNoOtherRoomBack: a tombstone in a guest's busy room that names your
// direct chat does not keep you waiting.
// Holds F31.
func TestTombstoneHoldsNoOtherRoomBack(t *testing.T) {
	r, m, dm := attacked(t)
	own := r.enters(friend, matrixtest.NewRoom{Direct: true})
	asked := m.calls()
	r.s.Say(friend, own, "slow #work")
	r.await("the model is not asked", func() bool { return m.calls() > asked })
	r.moves(friend, own, dm)
	r.await("the tombstone is not seen", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return strings.Contains(r.out.String(), "replace")
	})
	r.tells(dm, "#there?", "#there", "")
	close(m.release)
	r.await("friend has no answer", func() bool { return r.said(own) > 0 })
	r.tells(dm, "#still?", "#still", "")
	r.tells(dm, "!memory", privateCanary, "")
}

// TestTombstonesOfStrangers: who may not talk to the bot cannot make it join rooms, also
// with the power to replace a room that it is in.
// Holds M53.
func TestTombstonesOfStrangers(t *testing.T) {
	r, _, _ := attacked(t)
	group := r.s.Room(eveOfTest, matrixtest.NewRoom{Join: []string{you}})
	r.becomes(you, group, itself, "invite")
	r.await("the bot does not join", func() bool { return r.s.Membership(group, itself) == "join" })
	r.ask(group, "#hello")
	joined := r.s.Count("join")
	for range 20 {
		to := r.s.Room(eveOfTest, matrixtest.NewRoom{Replaces: group})
		r.s.SetState(eveOfTest, to, "m.room.join_rules", "", map[string]any{"join_rule": "public"})
		r.moves(eveOfTest, group, to)
	}
	r.settle()
	if n := r.s.Count("join") - joined; n != 2 { // those of settle
		t.Errorf("%d rooms joined, want the two of yours", n)
	}
}

// TestOneTombstoneOfARoomIsFollowed: an allowed person's room is replaced once. The bot
// leaves a room again that does not name the old one as its predecessor.
// Holds F31.
func TestOneTombstoneOfARoomIsFollowed(t *testing.T) {
	r, _, _ := attacked(t)
	own := r.enters(friend, matrixtest.NewRoom{Direct: true})
	r.told(friend, own, "#hi")
	var to []string
	for i := range 5 {
		room := r.s.Room(friend, matrixtest.NewRoom{Name: fmt.Sprint("room ", i)})
		r.s.SetState(friend, room, "m.room.join_rules", "", map[string]any{"join_rule": "public"})
		r.moves(friend, own, room)
		to = append(to, room)
	}
	r.await("the first room is not left again", func() bool { return r.s.Membership(to[0], itself) == "leave" })
	r.settle()
	for i, room := range to[1:] {
		if m := r.s.Membership(room, itself); m != "" {
			t.Errorf("room %d: %s", i+1, m)
		}
	}
}

const eveOfTest = "@eve:matrix.test"

// settle returns when what the bot was told before is decided: it has joined two more rooms
// of yours, one after the other.
func (r *running) settle() {
	r.t.Helper()
	for range 2 {
		r.enters(you, matrixtest.NewRoom{})
	}
}
