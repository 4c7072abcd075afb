package main

import (
	"strings"
	"testing"

	"reverie/internal/matrix/matrixtest"
)

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
