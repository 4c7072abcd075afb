package session

import (
	"context"
	"strings"
	"testing"
	"time"
)

// slowly is a world whose model holds back each of its answers until it is let go.
func slowly(t *testing.T, answers ...string) (w *world, r *typist, release func()) {
	t.Helper()
	hold := make(chan struct{})
	s := &script{answers: answers, forever: "fine", hold: func(string) <-chan struct{} { return hold }}
	w, r = modelled(t, s.ServeHTTP, 0)
	w.cfg.Patience = 20 * time.Millisecond
	return w, r, func() { hold <- struct{}{} }
}

// Who waits alone with us is told what is done, and again when that is something else:
// under the id of the answer, as a notice, and no more once there are words.
// Holds F46, M68.
func TestToldWhatIsDone(t *testing.T) {
	w, r, release := slowly(t, "the answer")
	must(t, w.Deliver(t.Context(), Inbound{ID: "$1", Room: "!dm", Sender: owner, Text: "slow", Private: true, At: time.Now()}))
	until(t, "the person is told", func() bool { return len(r.drafts()) > 0 })
	if got := r.drafts()[0]; got.ID != "re:$1" || !got.Notice || got.ReplyTo != "$1" || got.Text != "I am still working on this: thinking… `!stop` ends it." {
		t.Errorf("shown %+v", got)
	}
	if got := r.shown(); !strings.HasPrefix(got, "!dm typing true") || strings.Contains(got, "false") {
		t.Errorf("shown: %s", got)
	}
	s := w.rooms["!dm"]
	s.meanwhile.does(s.doing(t.Context(), "web_search"))
	until(t, "the person is told of the tool", func() bool { return len(r.drafts()) > 1 })
	wants(t, r.drafts()[1].Text, "searching the web…")
	s.meanwhile.does(s.doing(t.Context(), "mcp_thing"))
	until(t, "the person is told of the tool", func() bool { return len(r.drafts()) > 2 })
	wants(t, r.drafts()[2].Text, "using the tool `mcp_thing`…")
	time.Sleep(5 * w.cfg.Patience) // nothing else happens: nothing more is said
	if got := r.drafts(); len(got) != 3 {
		t.Errorf("shown %+v", got)
	}
	release()
	if id := <-w.room.handled; id != "$1" || w.room.said("$1").Text != "the answer" || w.room.said("$1").Notice {
		t.Errorf("%s: %+v", id, w.room.said("$1"))
	}
	n := len(r.drafts())
	time.Sleep(5 * w.cfg.Patience)
	if got := r.drafts(); len(got) != n || got[n-1].Notice || !strings.HasSuffix(r.shown(), "typing false") {
		t.Errorf("shown %s", r.shown())
	}
}

// Where others read along it is said once.
func TestToldOnceInAGroup(t *testing.T) {
	w, r, release := slowly(t, "the answer")
	must(t, w.Deliver(t.Context(), Inbound{ID: "$1", Room: "!group", Sender: owner, Text: "slow", At: time.Now()}))
	until(t, "somebody is told", func() bool { return len(r.drafts()) > 0 })
	s := w.rooms["!group"]
	s.meanwhile.does("reading a file")
	time.Sleep(5 * w.cfg.Patience)
	if got := r.drafts(); len(got) != 1 || !got[0].Notice {
		t.Errorf("shown %+v", got)
	}
	release()
	if id := <-w.room.handled; id != "$1" || w.room.said("$1").Text != "the answer" {
		t.Errorf("%s: %+v", id, w.room.said("$1"))
	}
	if got := r.drafts(); len(got) != 1 {
		t.Errorf("shown %+v", got)
	}
}

// Whether an answer is shown while it is written is for the room to say; where nobody has,
// it is where we are two.
// Holds M22, M63.
func TestStreamingSetting(t *testing.T) {
	for _, c := range []struct {
		set     string
		private bool
		people  int // 0 = not known
		want    bool
	}{
		{"", true, 0, true}, {"", true, 2, true}, {"", false, 0, false}, {"", false, 2, true}, {"", false, 3, false},
		{"on", false, 5, true}, {"off", true, 2, false}, {"auto", false, 3, false}, {"auto", true, 2, true},
	} {
		w := newWorld(t, t.TempDir(), "a long enough answer")
		if c.people > 0 {
			w.cfg.People = func(context.Context, string) (int, error) { return c.people, nil }
		}
		if c.set != "" {
			must(t, (Settings{w.cfg.DB}).Set(t.Context(), "!r", SettingStreaming, c.set, owner, time.Now()))
		}
		w.deliver(t, Inbound{ID: "$1", Room: "!r", Sender: owner, Text: "hello", Private: c.private, At: time.Now()})
		w.room.mu.Lock()
		if got := w.room.drafts["!r"] > 0; got != c.want || w.room.final["re:$1"].Text != "a long enough answer" {
			t.Errorf("%+v: streams %v", c, got)
		}
		w.room.mu.Unlock()
		w.stop()
	}
}
