package test

import (
	"strings"
	"testing"
)

// TestThread: in an encrypted room somebody asks in a thread that begins at words of a person
// whom the bot does not listen to. It answers there, knows what the thread is about, needs no
// mention for what comes next, also after kill -9, and the room's own conversation hears
// nothing of it.
// Holds M24, M26, M27, M33.
func TestThread(t *testing.T) {
	t.Parallel()
	w, m := newWorld(t), newModel(t)
	you, guest := w.person(t, "you"), w.person(t, "guest")
	bot := w.bot(t, "reverie", m, you.UserID())
	id := "@reverie:" + w.home.Name
	room := groupRoom(t, you, guest, id)
	root, err := guest.Say(t.Context(), room, "the fence should be azure")
	must(t, err)
	hears := func(what string, send func() (string, error), thread string, has, lacks string) {
		t.Helper()
		asked, err := send()
		must(t, err)
		for e := hear(t, you, room); ; e = hear(t, you, room) {
			if e.Sender != id {
				continue
			}
			if e.Thread != thread || !e.Encrypted || thread != "" && e.ReplyTo != asked {
				t.Errorf("%s: answered by %+v, want in thread %q, below %s", what, e, thread, asked)
			}
			break
		}
		last, _ := m.last.Load().(string)
		if !strings.Contains(last, has) || lacks != "" && strings.Contains(last, lacks) {
			t.Errorf("%s: the model reads %q: %v, %q: %v", what, has, strings.Contains(last, has), lacks, lacks != "" && strings.Contains(last, lacks))
		}
	}
	hears("asked in the thread", func() (string, error) { return you.SayIn(t.Context(), room, root, "which bristle is best?", id) }, root, "the fence should be azure", "")
	bot.kill()
	bot.start(t, "the password is not needed again")
	hears("asked there again, without a mention", func() (string, error) { return you.SayIn(t.Context(), room, root, "and how many?") }, root, "which bristle is best?", "")
	hears("asked in the room", func() (string, error) { return you.SayTo(t.Context(), room, "what is the weather?", id) }, "", "what is the weather?", "bristle")
	sealed(t, you, room, "azure", "bristle")
}
