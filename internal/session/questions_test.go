package session

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestKeepCommand: a person answers what only they can decide, by its number, and nobody else does.
func TestKeepCommand(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.cfg.Dreams = &Dreams{Status: func(context.Context, i18n.Say) (string, error) { return "slept well", nil }}
	const guest = "@guest:example.org"
	as := func(person, room string, private bool, text string, want ...string) string {
		t.Helper()
		got := w.deliver(t, Inbound{Room: room, Sender: person, Text: text, Private: private, At: time.Now()})
		wants(t, got.Text, want...)
		if !got.Notice {
			t.Errorf("%s: the model was asked: %+v", text, got)
		}
		return got.Text
	}
	say := func(text string, want ...string) string { t.Helper(); return as(owner, "!dm", true, text, want...) }
	ask := func(scope memory.Scope, what string) memory.Question {
		t.Helper()
		q := memory.Question{Run: "dream_1", Scope: scope, Why: "both are of the same time"}
		for i, e := range []*memory.Entry{&q.First, &q.Second} {
			*e = w.known(t, scope, what+[]string{" in Rome.", " in Oslo."}[i])
		}
		must(t, w.cfg.Memory.Wonder(t.Context(), []memory.Question{q}))
		return q
	}
	say("!memory keep", "no questions")
	ask(memory.Private(owner), "I live")
	ask(memory.Private(guest), "I hide")
	ask(memory.Shared, "All meet")
	ask(memory.Room("!group"), "We eat")
	other := ask(memory.Private(owner), "I work")

	list := say("!memory keep", "**Question 1**: which of the two holds? (both are of the same time)", "a) ", "I live in Rome.", "b) ", "I live in Oslo.", "`!memory keep 1a`", "Question 3", "Question 5")
	lacks(t, list, "hide", "We eat", "mem_")
	say("!dream status", "slept well", "Question 1")
	say("!memory keep calm", "nothing like that") // words to be looked for
	say("!memory keep 2a", "no such question here")
	say("!memory keep 4 both", "no such question here")
	say("!memory keep 123456789012345678b", "no such question here")
	as(guest, "!guest", true, "!memory keep 1a", "no such question here")
	as(guest, "!guest", true, "!memory keep 3a", "Only the person it belongs to, or an owner")
	as(guest, "!group", false, "!memory keep 1b", "no such question here")
	as(guest, "!group", false, "!memory keep 4b", "now: We eat in Oslo.", "no longer: We eat in Rome.", "`!undo`")

	say("!memory keep 1 A", "now: I live in Rome.", "no longer: I live in Oslo.")
	say("!memory keep 1b", "nothing left to decide")
	say("!undo", "known again: I live in Oslo.")
	say("!memory keep 1b", "now: I live in Oslo.", "no longer: I live in Rome.")
	say("!memory keep 5 both", "Both hold")
	say("!forget "+other.First.ID, "Forgotten for good")
	say("!memory keep 5a", "nothing left to decide")
	lacks(t, say("!memory keep 3b", "now: All meet in Oslo."), "sentence")
	say("!memory keep", "no questions")
	say("!memory", "I live in Oslo.")
}

// TestQuestionIsToldQuietly: what is asked is a notice, is asked once, and the model knows of
// it when the person answers.
func TestQuestionIsToldQuietly(t *testing.T) {
	w := newWorld(t, t.TempDir(), "Noted.")
	s := &source{told: make(chan string, 100)}
	w.cfg.Events = map[EventKind]Source{MemoryQuestion: s}
	for range 2 { // delivered again after a restart
		must(t, w.Deliver(t.Context(), Inbound{ID: "question:1", Room: "!dm", Sender: owner, Text: "Rome or Oslo?", Event: MemoryQuestion, Verbatim: true, Label: programs(trust.Person(owner))}))
		select {
		case <-s.told:
		case <-time.After(patience):
			t.Fatal("not done")
		}
	}
	if m := w.room.newest(); m.Text != "Rome or Oslo?" || !m.Notice || w.room.count() != 1 || len(w.script.asked()) != 0 || m.Mention != nil {
		t.Errorf("%d messages, the room read %+v", w.room.count(), m)
	}
	w.say(t, "$1", "Oslo is right.")
	if asked := w.script.asked(); len(asked) != 1 || strings.Count(asked[0], "Rome or Oslo?") != 1 {
		t.Errorf("the model does not know what was asked: %q", asked)
	}
	if want := []string{"question:1: Rome or Oslo?", "question:1: Rome or Oslo?"}; !slices.Equal(s.done, want) {
		t.Errorf("%q", s.done)
	}
}
