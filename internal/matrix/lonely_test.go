package matrix_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"reverie/internal/matrix"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/matrix/peer"
	"reverie/internal/matrix/peer/peertest"
	"reverie/internal/session"
)

// When everybody else has left a room, so does the bot: also when it was not there then,
// or the homeserver stumbles. Where somebody is still invited it stays, and it comes back
// when it is invited again, not before.
func TestLeavesWhenAlone(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	dir := t.TempDir()
	b := startWith(t, server, dir, echo, hurry, you.UserID())
	meet := func(encrypted bool, others ...string) string {
		t.Helper()
		room := s.Room(you.UserID(), matrixtest.NewRoom{Encrypted: encrypted, Invite: []string{b.UserID()}, Join: others})
		joined(t, you, room, b.UserID())
		return room
	}
	gone := func(room, who string) { s.SetState(who, room, "m.room.member", who, content{"membership": "leave"}) }
	isGone := func(room string) func() bool {
		return func() bool { return s.Membership(room, b.UserID()) == "leave" }
	}
	group, waits, kept := meet(true, friend.UserID()), meet(false), meet(false, friend.UserID())
	s.SetState(you.UserID(), waits, "m.room.member", friend.UserID(), content{"membership": "invite"})
	gone(group, friend.UserID())
	gone(kept, friend.UserID())
	gone(waits, you.UserID())
	stumble := s.Fault(matrixtest.On("leave").By(b.UserID()).Times(2), matrixtest.Status(500, "M_UNKNOWN"))
	gone(group, you.UserID())
	await(t, s, "the bot is in an empty room", isGone(group))
	if n := stumble.Hits(); n != 2 {
		t.Errorf("%d tries failed", n)
	}
	await(t, s, "its own list has it", func() bool { left, _ := b.Left(t.Context(), group); return left })
	for _, room := range []string{waits, kept} {
		if m := s.Membership(room, b.UserID()); m != "join" {
			t.Errorf("where somebody is, or is invited, it is %q", m)
		}
	}
	s.SetState(you.UserID(), waits, "m.room.member", friend.UserID(), content{"membership": "leave"}) // and now nobody is
	await(t, s, "the bot is in an empty room", isGone(waits))
	b.stop()
	gone(kept, you.UserID())
	b = startWith(t, server, dir, echo, hurry, you.UserID())
	await(t, s, "the bot stays in a room that was left while it was away", isGone(kept))
	b.stop()
	b = startWith(t, server, dir, echo, hurry, you.UserID())
	room := chat(t, s, you, b, false)
	converse2(t, you, room)
	if !isGone(kept)() || !isGone(group)() {
		t.Error("it came back by itself")
	}
	s.SetState(you.UserID(), kept, "m.room.member", you.UserID(), content{"membership": "join"})
	s.SetState(you.UserID(), kept, "m.room.member", b.UserID(), content{"membership": "invite"})
	joined(t, you, kept, b.UserID())
}

func converse2(t *testing.T, you *peer.Peer, room string) {
	t.Helper()
	say(t, you, room, "hello")
	peertest.Next(t, you, messageIn(room))
}

// Our own list of members may lack somebody: the homeserver is believed.
func TestNotAloneAfterAll(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you, friend := person(t, s, "you"), person(t, s, "friend")
	b := startWith(t, server, t.TempDir(), echo, hurry, you.UserID())
	// Before the invitation: a poll that is under way already is not changed.
	hide := s.Fault(matrixtest.On("sync").By(b.UserID()), matrixtest.Timelines(func(_ string, events []json.RawMessage) []json.RawMessage {
		var left []json.RawMessage
		for _, e := range events {
			if !strings.Contains(string(e), `"state_key":"`+friend.UserID()) {
				left = append(left, e)
			}
		}
		return left
	}))
	room := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
	joined(t, you, room, b.UserID())
	b.knows(room)
	s.SetState(friend.UserID(), room, "m.room.member", friend.UserID(), content{"membership": "join"})
	asked := s.Count("members")
	s.SetState(you.UserID(), room, "m.room.member", you.UserID(), content{"membership": "leave"})
	await(t, s, "the homeserver is not asked", func() bool { return s.Count("members") > asked })
	hide.Remove()
	s.SetState(you.UserID(), room, "m.room.member", you.UserID(), content{"membership": "join"})
	if _, err := you.SayTo(t.Context(), room, "hello", b.UserID()); err != nil {
		t.Fatal(err)
	}
	if e := peertest.Next(t, you, messageIn(room)); e.Body != "echo: **hello**" {
		t.Errorf("got %+v", e)
	}
	if m := s.Membership(room, b.UserID()); m != "join" {
		t.Errorf("it is %q", m)
	}
}

// commandsIn are the commands that a room's clients are told of, with their descriptions.
func commandsIn(t *testing.T, s *matrixtest.Server, room string) (list map[string]string, events int) {
	t.Helper()
	list = map[string]string{}
	keys := map[string]string{}
	for _, raw := range s.Events(room) {
		var e struct {
			Type    string `json:"type"`
			Key     string `json:"state_key"`
			Content struct {
				Command     string `json:"command"`
				Description struct {
					Text []struct {
						Body string `json:"body"`
					} `json:"m.text"`
				} `json:"description"`
				Parameters []struct {
					Key string `json:"key"`
				} `json:"parameters"`
			} `json:"content"`
		}
		if err := json.Unmarshal(raw, &e); err != nil || e.Type != "org.matrix.msc4391.command_description" {
			continue
		}
		events++
		if e.Content.Command == "" {
			delete(list, keys[e.Key])
			continue
		}
		keys[e.Key] = e.Content.Command
		if len(e.Content.Description.Text) > 0 {
			list[e.Content.Command] = fmt.Sprint(e.Content.Description.Text[0].Body, len(e.Content.Parameters))
		}
	}
	return list, events
}

// Clients are told of the commands where our power allows it, once, and again of what
// changed, at once where a room speaks another language now; a restart tells nothing
// twice, and one in the middle goes on.
func TestPublishedCommands(t *testing.T) {
	t.Parallel()
	s, server := pretend(t)
	you := person(t, s, "you")
	dir := t.TempDir()
	list := []session.CommandInfo{{Name: "help", Help: "this list"}, {Name: "config", Help: "settings", Words: true}, {Name: "stop", Help: "end it"}}
	var language atomic.Value
	language.Store("this list")
	tell := func(cfg *matrix.Config) {
		cfg.Hurry()
		now := list
		cfg.Commands = func(_ context.Context, _ string) []session.CommandInfo {
			said := slices.Clone(now)
			said[0].Help, _ = language.Load().(string)
			return said
		}
	}
	b := startWith(t, server, dir, echo, tell, you.UserID())
	trip := s.Fault(matrixtest.On("set_state").By(b.UserID()).After(2).Times(2), matrixtest.Limit(0, 0))
	room := chat(t, s, you, b, true)
	told := func(n int) func() bool {
		return func() bool { l, _ := commandsIn(t, s, room); return len(l) == n }
	}
	await(t, s, "the commands are not told", told(3))
	if trip.Hits() != 2 {
		t.Errorf("%d tries failed", trip.Hits())
	}
	if l, _ := commandsIn(t, s, room); l["help"] != "this list0" || l["config"] != "settings1" {
		t.Errorf("told %v", l)
	}
	group := s.Room(you.UserID(), matrixtest.NewRoom{Invite: []string{b.UserID()}})
	joined(t, you, group, b.UserID())
	converse2(t, you, room)
	if _, n := commandsIn(t, s, group); n != 0 {
		t.Errorf("%d events where our power is too low", n)
	}
	s.SetState(you.UserID(), group, "m.room.power_levels", "", map[string]any{"users": map[string]int{you.UserID(): 100, b.UserID(): 50}})
	await(t, s, "with the power the commands are not told", func() bool { l, _ := commandsIn(t, s, group); return len(l) == 3 })
	language.Store("diese Liste")
	b.Publish()
	await(t, s, "another language is not told", func() bool { l, _ := commandsIn(t, s, room); return l["help"] == "diese Liste0" })
	await(t, s, "another language is not told", func() bool { l, _ := commandsIn(t, s, group); return l["help"] == "diese Liste0" })
	b.stop()
	_, before := commandsIn(t, s, room)
	list = []session.CommandInfo{list[0], {Name: "config", Help: "the settings of this room", Words: true}, {Name: "new", Help: "begin anew"}}
	b = startWith(t, server, dir, echo, tell, you.UserID())
	await(t, s, "what is new is not told", func() bool {
		l, _ := commandsIn(t, s, group)
		return len(l) == 3 && l["new"] != "" && l["stop"] == ""
	})
	if l, n := commandsIn(t, s, room); l["config"] != "the settings of this room1" || n != before+3 {
		t.Errorf("told %v with %d events more", l, n-before)
	}
	_, before = commandsIn(t, s, room)
	b.stop()
	startWith(t, server, dir, echo, tell, you.UserID())
	converse2(t, you, room)
	if _, n := commandsIn(t, s, room); n != before {
		t.Errorf("a restart told %d things again", n-before)
	}
}
