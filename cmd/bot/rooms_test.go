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
