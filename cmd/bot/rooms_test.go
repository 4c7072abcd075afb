package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/matrix/matrixtest"
	"reverie/internal/session"
	"reverie/internal/store"
)

// ask has you say something to the bot in a room with others, and returns what it says.
func (r *running) ask(room, text string) string {
	r.t.Helper()
	before := r.said(room)
	r.s.Post(you, room, "m.room.message", map[string]any{"msgtype": "m.text", "body": text, "m.mentions": map[string]any{"user_ids": []string{itself}}})
	r.await("no answer to "+text, func() bool { return r.said(room) > before })
	var content struct {
		Body string `json:"body"`
	}
	for _, send := range r.s.Sends() {
		if send.User == itself && send.Room == room {
			must(r.t, json.Unmarshal(send.Content, &content))
		}
	}
	return content.Body
}

// tells asks in a room with others. The answer has want, and has not without; "" = that does not matter.
func (r *running) tells(room, text, want, without string) {
	r.t.Helper()
	if got := r.ask(room, text); !strings.Contains(got, want) || without != "" && strings.Contains(got, without) {
		r.t.Errorf("%s is answered %q; want %q, and not %q", text, got, want, without)
	}
}

// Ids of rooms have no server in them since version 12. Nothing looks into them.
// Holds M57.
func TestRoomWithoutAServerInItsID(t *testing.T) {
	const room = "!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM"
	r := withHomeserver(t)
	stop := r.start()
	r.s.Room(you, matrixtest.NewRoom{ID: room, Invite: []string{itself}, Join: []string{"@friend:matrix.test"}})
	r.await("the invitation is not accepted", func() bool { return r.s.Membership(room, itself) == "join" })
	for _, c := range []struct{ say, want string }{
		{"hello", ""},
		{"!remember Jana lives in Brno", "Brno"},
		{"remind me to water the plants", ""},
		{"!tasks", "ater the plants"},
		{"!memory", "memories/rooms/"},
		{"!config threads off", "`off`"},
		{"!config", "| threads | off | " + you},
		{"!whoami", "a room with others"},
	} {
		r.tells(room, c.say, c.want, "")
	}
	other := r.enters(you, matrixtest.NewRoom{Join: []string{"@friend:matrix.test"}})
	r.tells(other, "!memory", "", "Brno")
	stop()
	run := func(args ...string) string {
		t.Helper()
		code, text := runBot(t, "", append(args, "--config", r.args[2])...)
		if code != 0 {
			t.Errorf("%s: exit %d\n%s", args, code, text)
		}
		return text
	}
	if got := run("memory", "list", "--scope", "room:"+room); !strings.Contains(got, "Brno") {
		t.Errorf("the list reads %q", got)
	}
	if got := run("memory", "list", "--scope", "room:"+room+"x"); strings.Contains(got, "Brno") {
		t.Errorf("the list of another room reads %q", got)
	}
	if got := run("task", "list"); !strings.Contains(got, "ater the plants") {
		t.Errorf("the tasks read %q", got)
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "data", "memories", "rooms", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file of the room: %v", err)
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.Contains(readFile(t, f), "Brno") }) {
		t.Errorf("it stands in none of %q", files)
	}
}

// In a real room: settings and the language of it, and a mistyped command.
// Holds M60, M67.
func TestRoomSettings(t *testing.T) {
	r := withHomeserver(t)
	r.start()
	room := r.meetDirect()
	for _, c := range []struct{ say, want string }{
		{"!confg", "Did you mean `!config`?"},
		{"!config language de", "`de`"},
		{"!stop", "Es gibt nichts anzuhalten"},
		{"!model", "`r`"},
		{"!skills", "Fertigkeiten"},
		{"!mode planning", "Modus ist hier jetzt planning"},
		{"!status", "planning"},
	} {
		r.tells(room, c.say, c.want, "")
	}
}

// threadsOf is in which thread the bot's newest message about each word stands.
func (r *running) threadsOf(room string, words ...string) map[string]string {
	in := map[string]string{}
	for _, e := range r.own(room) {
		if e.Content.Relates.Type == "m.replace" {
			continue
		}
		for _, w := range words {
			if strings.Contains(e.Content.Body, w) {
				in[w] = e.Content.Relates.Event
			}
		}
	}
	return in
}

// alwaysThreads is a direct chat in which all answers stand in threads.
func alwaysThreads(t *testing.T) (*running, *echoing, string) {
	t.Helper()
	r, m := withEditing(t)
	room := r.direct()
	db, err := store.Open(t.Context(), filepath.Join(r.dir, "data", "bot.db"), reverie.Migrations)
	must(t, err)
	defer db.Close()
	must(t, (session.Settings{DB: db}).Set(t.Context(), room, session.SettingThreads, "always", you, time.Now()))
	return r, m, room
}

// Lines that somebody writes one after the other are one conversation in one thread,
// rooted at the first, and those that come while it is answered are answered together; what
// comes later begins another thread, and so do somebody else's words.
// Holds M25.
func TestLinesInOneThread(t *testing.T) {
	r, m, room := alwaysThreads(t)
	first := r.s.Say(you, room, "slow #one")
	r.until("the model is not asked", func() bool { return m.calls() == 1 })
	r.s.Say(you, room, "and #two")
	r.s.Say(you, room, "and #three")
	r.until("the lines are not there", func() bool { return r.count(`SELECT count(*) FROM inbox WHERE state = 'new'`) == 3 })
	close(m.release)
	shown := r.showing(room, "to #one", "to #three")
	in := r.threadsOf(room, "#one", "#three")
	if in["#one"] != first || in["#three"] != first || m.calls() != 2 {
		t.Errorf("%d answers in %v; want two in %s: %q", m.calls(), in, first, shown)
	}
	m.told(t, "#one", "#two")
	r.s.SetClock(11 * time.Second)
	later := r.s.Say(you, room, "#later")
	r.showing(room, "to #one", "to #three", "to #later")
	if in := r.threadsOf(room, "#later"); in["#later"] != later {
		t.Errorf("what came later stands in %v, not %s", in, later)
	}
	if n := r.count(`SELECT count(*) FROM room WHERE branch_of = ?`, room); n != 2 {
		t.Errorf("%d threads", n)
	}
}

// Who says !retry outside of threads, where all answers stand in them, gets the newest
// answer anew, in its thread.
// Holds M10.
func TestRetryFindsTheThread(t *testing.T) {
	r, m, room := alwaysThreads(t)
	r.s.Say(you, room, "#old")
	r.showing(room, "to #old")
	r.s.SetClock(11 * time.Second)
	asked := r.s.Say(you, room, "#new")
	r.showing(room, "to #old", "to #new")
	r.s.SetClock(22 * time.Second)
	r.s.Say(you, room, "!status")
	r.showing(room, "to #old", "to #new", "Awake")
	r.s.Say(you, room, "!retry")
	shown := r.showing(room, "to #old", "to #new", "Awake", "answer 3 to #new")
	if in := r.threadsOf(room, "#new"); in["#new"] != asked || m.calls() != 3 {
		t.Errorf("answered anew in %v, not %s: %q", in, asked, shown)
	}
	r.settled()
	if n := r.count(`SELECT count(*) FROM room WHERE branch_of = ?`, room); n != 2 {
		t.Errorf("%d threads", n)
	}
}
