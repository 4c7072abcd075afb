package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
)

// edits is a world where an edit need not wait.
func edits(t *testing.T, dir string, answers ...string) *world {
	t.Helper()
	w := newWorld(t, dir, answers...)
	w.cfg.Settle = time.Millisecond
	return w
}

func (w *world) change(t *testing.T, what Change, id, target, text string, asked time.Time) {
	t.Helper()
	w.deliver(t, Inbound{ID: id, Room: "!dm", Sender: owner, Text: text, Private: true, At: asked, Change: what, Target: target})
}

// words is the conversation of !dm in one line.
func (w *world) words(t *testing.T) string {
	t.Helper()
	past := w.past(t)
	var all []string
	for _, m := range past {
		all = append(all, string(m.Role)+" "+m.Text)
	}
	return strings.Join(all, " | ")
}

// The program dies at some point of giving an answer anew, and the edit is delivered
// again: in the end the answer is there once, and it is the new one.
// Holds F34.
func TestEditIsTakenUpAgain(t *testing.T) {
	for point, prepare := range map[string]func(t *testing.T, w *world){
		"nothing is done": func(*testing.T, *world) {},
		"reopened and reworded": func(t *testing.T, w *world) {
			result(w.cfg.History.Reopen(t.Context(), "!dm", "$2", "re:$2"))(t)
			if _, _, err := w.cfg.History.Reword(t.Context(), "$2", "SECOND", ""); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(point, func(t *testing.T) {
			dir := t.TempDir()
			w := edits(t, dir, "one", "two")
			w.say(t, "$1", "first")
			w.say(t, "$2", "second")
			w.stop()
			prepare(t, w)
			_ = w.cfg.DB.Close()
			w = edits(t, dir, "three", "four")
			for range 2 { // and once more, when it is done but nobody knows
				w.change(t, Edited, "$e", "$2", "SECOND", time.Now())
			}
			if got, want := w.words(t), "user first | assistant one | user SECOND | assistant three"; got != want {
				t.Errorf("%s", got)
			}
			if n := len(w.script.asked()); n != 1 || w.room.said("$2").Text != "three" {
				t.Errorf("%d requests, said %+v", n, w.room.said("$2"))
			}
		})
	}
}

func (w *world) sessionOf(room string) *Session {
	w.Manager.mu.Lock()
	defer w.Manager.mu.Unlock()
	return w.rooms[history.Talk(room)]
}

// A message is taken back: its answers go, those of !retry too; what others asked stays.
func TestAnswersRemoved(t *testing.T) {
	w := edits(t, t.TempDir(), "one", "two", "three")
	w.say(t, "$1", "first")
	w.say(t, "$2", "!retry")
	w.say(t, "$3", "second")
	w.change(t, TakenBack, "$r", "$1", "", time.Now())
	equal(t, fmt.Sprint(w.room.removed), "[re:$1 re:$2]")
	if got, want := w.words(t), "user [taken back] | assistant [taken back] | user second | assistant three"; got != want {
		t.Errorf("%s", got)
	}
	w.change(t, TakenBack, "$r2", "re:$3", "", time.Now())
	if got, want := w.words(t), "user [taken back] | assistant [taken back] | user second | assistant [taken back]"; got != want || len(w.room.removed) != 2 {
		t.Errorf("%s; removed %v", got, w.room.removed)
	}
}

// What is asked again but can no longer be reached is said to be so.
func TestAskAgain(t *testing.T) {
	w := edits(t, t.TempDir(), "one", "two")
	w.say(t, "$1", "first")
	w.say(t, "$2", "!new")
	w.change(t, AskAgain, "$again", "$1", "", time.Now())
	if got := w.room.said("$again"); !got.Notice || !strings.Contains(got.Text, "only what was asked last") || got.ReplyTo != "$1" {
		t.Errorf("said %+v", got)
	}
	w.change(t, AskAgain, "$other", "re:$2", "", time.Now()) // a command
	w.change(t, Edited, "$e", "$unknown", "!whoami", time.Now().Add(-time.Hour))
	if w.room.said("$other").Text+w.room.said("$unknown").Text != "" || len(w.script.asked()) != 1 {
		t.Error("a command is asked again, or an old one that was edited is run")
	}
}

// A burst is answered; one of it is edited: the answer, that of the newest, changes.
// Holds M2.
func TestEditedInABurst(t *testing.T) {
	w := edits(t, t.TempDir())
	w.script.block = make(chan struct{})
	for _, in := range []Inbound{{ID: "$0", Text: "zero"}, {ID: "$1", Text: "one"}, {ID: "$2", Text: "two"}, {ID: "$e", Text: "ONE", Change: Edited, Target: "$1"}} {
		in.Room, in.Sender, in.Private, in.At = "!dm", owner, true, time.Now()
		must(t, w.Deliver(t.Context(), in))
		for in.ID == "$0" && len(w.script.asked()) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(w.script.block)
	got := map[string]bool{}
	for range 4 {
		got[<-w.room.handled] = true
	}
	if len(got) != 4 || len(w.script.asked()) != 2 {
		t.Errorf("handled %v with %d requests", got, len(w.script.asked()))
	}
	w.change(t, Edited, "$e2", "$1", "EINS", time.Now())
	if got, want := w.words(t), "user zero | assistant fine | user EINS | user two | assistant fine"; got != want || len(w.script.asked()) != 3 {
		t.Errorf("%s", got)
	}
	if last := w.script.asked()[2]; !strings.Contains(last, "EINS") || strings.Contains(last, "ONE") || w.room.said("$1").Text != "" {
		t.Errorf("asked %s", last)
	}
}

// acted names what had an effect, without a comma: a header with one is of a shared room.
func TestActed(t *testing.T) {
	equal(t, acted(nil), "")
	if got := acted([]string{"task", "append_memory"}); !strings.Contains(got, "task; append_memory.") || strings.Contains(got, ",") {
		t.Errorf("%q", got)
	}
}

// TestEditedBesideAVoiceMessage: what is written beside a voice message is edited: it is
// answered anew, and what was said in it is still what the person said, also when the edit
// is delivered again.
// Holds M3.
func TestEditedBesideAVoiceMessage(t *testing.T) {
	w, files := newFiles(t, 16_000, false, true, "one", "two", "three")
	w.cfg.Settle = time.Millisecond
	w.bring(t, "$1", "for the zebra", files, VoiceFile, "voice.ogg", []byte("OggS\x00\x02 and so on"))
	for range 2 {
		w.change(t, Edited, "$edit", "$1", "for the lion", time.Now())
	}
	if got := w.words(t); got != "user for the lion\n"+voiceMark+" buy milk, please | assistant two" {
		t.Errorf("the conversation is %q", got)
	}
	if asked := w.script.asked(); len(asked) != 2 || !strings.Contains(asked[1], "for the lion\\n"+voiceMark+" buy milk, please") || strings.Contains(asked[1], "zebra") {
		t.Errorf("asked %d times, and in the end %s", len(asked), asked[len(asked)-1])
	}
}
