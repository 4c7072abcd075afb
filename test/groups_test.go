package test

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"reverie/internal/matrix/peer"
)

// TestGroup: in an encrypted room with somebody who may not talk to the bot, a question
// brings what was said before, also after kill -9, and what it replies to.
// Holds M29, M32, M33, M34.
func TestGroup(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newModel(t)
	you, other := w.person(t, "you"), w.person(t, "other")
	bot := w.bot(t, "reverie", m, you.UserID())
	name := "@reverie:" + w.home.Name
	room := groupRoom(t, you, other, name)
	say := func(text string) {
		t.Helper()
		_, err := other.Say(t.Context(), room, text)
		must(t, err)
		for limit := time.After(time.Minute); ; {
			select {
			case e := <-you.Events():
				if e.Kind == peer.Message && e.Body == text {
					return
				}
			case <-limit:
				t.Fatalf("%q does not arrive", text)
			}
		}
	}
	// heard waits until the bot can read a line: the homeserver may hand out its key later.
	heard := func(text string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+bot.data("bot.db")+"?mode=ro")
		must(t, err)
		defer db.Close()
		until(t, "the bot does not hear: "+text, func() bool {
			var n int
			return db.QueryRow(`SELECT count(*) FROM heard WHERE text = ?`, text).Scan(&n) == nil && n == 1
		})
	}
	sent := func() string { last, _ := m.last.Load().(string); return last }
	say("the boat leaves at nine")
	heard("the boat leaves at nine")
	_, err := you.SayTo(t.Context(), room, "hello", name)
	must(t, err)
	first := hear(t, you, room)
	if last := sent(); !strings.Contains(last, `, said in the room:\n\u003e the boat leaves at nine`) && !strings.Contains(last, `, said in the room:\n> the boat leaves at nine`) || !strings.Contains(last, other.UserID()) {
		t.Errorf("the model was asked\n%s", last)
	}
	bot.kill()
	say("bring a hat")
	bot.start(t, "")
	heard("bring a hat")
	_, err = you.Reply(t.Context(), room, first.ID, "and now?")
	must(t, err)
	hear(t, you, room)
	if last := sent(); strings.Count(last, "bring a hat") != 1 || strings.Count(last, "leaves at nine") != 1 || strings.Contains(last, "replied to:") {
		t.Errorf("after kill -9 the model was asked\n%s", last)
	}
	_, err = you.Reply(t.Context(), room, first.ID, "no, about this one")
	must(t, err)
	hear(t, you, room)
	if last := sent(); !strings.Contains(last, "you, ") || !strings.Contains(last, "replied to:") {
		t.Errorf("with a reply the model was asked\n%s", last)
	}
	if n := m.calls.Load(); n != 3 {
		t.Errorf("the model was asked %d times", n)
	}
	if log := bot.log.String(); strings.Contains(log, "nine") || strings.Contains(log, "a hat") {
		t.Error("the log shows what was said")
	}
}
