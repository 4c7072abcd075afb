package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/session"
	"reverie/internal/store"
)

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
