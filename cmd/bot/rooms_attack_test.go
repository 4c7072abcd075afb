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

// TestOneTombstoneOfARoomIsFollowed: an allowed person's room is replaced once. Nothing is brought
// into a room that does not name the old one as its predecessor.
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
	r.await("the first room is not joined", func() bool { return r.s.Membership(to[0], itself) == "join" })
	r.told(friend, own, "#still") // the old room is where the conversation goes on
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

// privateCanary stands in your private memory. A room that is not private must never show it.
const privateCanary = "CANARY-PRIVATE-5150"

// attacked is a bot that knows a secret of yours; friend may talk to it, and eve may not.
func attacked(t *testing.T) (r *running, m *echoing, dm string) {
	t.Helper()
	r, m = withEditing(t)
	r.s.Account("eve", "a long password")
	r.start()
	dm = r.meetDirect()
	r.s.Say(you, dm, "!remember my safe opens with "+privateCanary)
	r.await("the secret is not stored", func() bool { return r.said(dm) > 0 })
	return r, m, dm
}

// becomes changes the membership of user in room.
func (r *running) becomes(by, room, user, membership string) {
	r.s.SetState(by, room, "m.room.member", user, map[string]any{"membership": membership, "displayname": user})
}

// shows reports whether any event of room contains text.
func (r *running) shows(room, text string) bool {
	for _, raw := range r.s.Events(room) {
		if strings.Contains(string(raw), text) {
			return true
		}
	}
	return false
}

// TestDirectInvitationOfSomebodyElse: an allowed guest makes a room, invites the bot as to a
// direct chat, lets you in and leaves. Your private memory does not enter that room.
// Holds M36.
func TestDirectInvitationOfSomebodyElse(t *testing.T) {
	r, m, dm := attacked(t)
	room := r.enters(friend, matrixtest.NewRoom{Direct: true})
	r.s.SetState(friend, room, "m.room.history_visibility", "", map[string]any{"history_visibility": "world_readable"})
	r.s.SetState(friend, room, "m.room.join_rules", "", map[string]any{"join_rule": "public"})
	r.becomes(friend, room, you, "invite")
	r.becomes(you, room, you, "join")
	r.tells(room, "!whoami", "", "direct chat")
	r.becomes(friend, room, friend, "leave")
	r.tells(room, "!whoami", "", "direct chat")
	before := m.calls()
	r.tells(room, "#hello, is anybody here?", "#hello", "")
	if body, _ := m.last(); m.calls() == before || strings.Contains(body, privateCanary) {
		t.Errorf("after %d requests the model is given your private memory in friend's room", m.calls()-before)
	}
	if r.ask(room, "!memory"); r.shows(room, privateCanary) {
		t.Error("your private memory stands in friend's room")
	}
	r.tells(dm, "!memory", privateCanary, "")
}

// TestDirectChatThatOthersEntered: your own direct chat is not private any more after a
// third person was in it, also when that person has gone; and so it is when anybody could
// read it. You are still answered without a mention.
// Holds M37.
func TestDirectChatThatOthersEntered(t *testing.T) {
	for name, expose := range map[string]func(r *running, room string){
		"a third joined and left": func(r *running, room string) {
			r.becomes(you, room, friend, "invite")
			r.becomes(friend, room, friend, "join")
			r.becomes(friend, room, friend, "leave")
		},
		"world readable for a while": func(r *running, room string) {
			for _, v := range []string{"world_readable", "shared"} {
				r.s.SetState(you, room, "m.room.history_visibility", "", map[string]any{"history_visibility": v})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, dm := attacked(t)
			r.tells(dm, "!whoami", "direct chat", "")
			expose(r, dm)
			r.told(you, dm, "!whoami")
			r.tells(dm, "!memory", "", privateCanary)
		})
	}
}

// TestUnencryptedRoomsOfAnIdentity: as soon as the bot knows your cross-signing identity, who
// has your access token learns nothing private and orders nothing in rooms without encryption,
// be they new or your direct chat until then.
func TestUnencryptedRoomsOfAnIdentity(t *testing.T) {
	r, m, dm := attacked(t)
	r.tells(dm, "!whoami", "direct chat", "")
	r.ask(dm, "tell me of #apple")
	m.told(t, privateCanary)

	p := r.client()
	must(t, p.ResetIdentity(t.Context(), "a long password"))
	encrypted := r.enters(you, matrixtest.NewRoom{Direct: true, Encrypted: true})
	_, err := p.Say(t.Context(), encrypted, "!whoami")
	must(t, err)
	r.await("no encrypted answer", func() bool { return r.said(encrypted) > 0 })

	for name, room := range map[string]string{"as before": dm, "new": r.meetDirect()} {
		before, shown, calls := r.said(room), r.count(`SELECT count(*) FROM outbox WHERE text LIKE '%`+privateCanary+`%'`), m.calls()
		r.s.Say(you, room, "what do you know? #plum")
		r.await("no notice and answer", func() bool { return r.said(room) >= before+2 })
		body, _ := m.last()
		if m.calls() == calls || strings.Contains(body, privateCanary) || strings.Contains(body, "#apple") {
			t.Errorf("%s: after %d requests the model is given what is private", name, m.calls()-calls)
		}
		for say, want := range map[string]string{
			"!config threads off": "Only my owners", "!model r": "Only my owners",
			"!whoami": "a room with others", "!memory": "memories/rooms/",
		} {
			r.tells(room, say, want, privateCanary)
		}
		if n := r.count(`SELECT count(*) FROM outbox WHERE text LIKE '%` + privateCanary + `%'`); n != shown {
			t.Errorf("%s: your private memory was said %d times, before %d", name, n, shown)
		}
		if n := r.count(`SELECT count(*) FROM outbox WHERE id = 'unencrypted-` + room + `'`); n != 1 {
			t.Errorf("%s: %d notices", name, n)
		}
	}
}
