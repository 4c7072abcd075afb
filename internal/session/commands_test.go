package session

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/i18n"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// TestCommandsSayWhatTheyDoNotKnow: what follows a command and means nothing to it is said. A "/" is as good as a "!".
func TestCommandsSayWhatTheyDoNotKnow(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "the path is fine")
	say := func(text string, parts ...string) { t.Helper(); w.tells(t, text, parts...) }
	say("hi", "hello")
	say("!HELP", "`!retry`")
	say("!whoami", "an owner")
	say("!tasks", "No open tasks")
	say("!status", "Models for chat, in order: local")
	say("!prompt", "window")
	say("!help memory", "`!memory`: what I remember here")
	say("!help !hlep", "I do not know `!hlep`", "Did you mean `!help`")
	say("!stop now", "There is nothing to stop")
	say("!memory", "MEMORIES.txt** (0)", "I remember nothing here yet")
	say("!memory share", "`!memory share` and the id")
	say("!remember my tea is green", "Remembered")
	say("!memory share wrong", "I remember nothing like that here")
	say("!memory private wrong", "I remember nothing like that here")
	say("!memory coffee", "I remember nothing like that here")
	say("/memory tea", "my tea is green")
	say("/hlep", "the path is fine") // no command, so the model answers
	say("!!", "fine")
	say("/new", "A new conversation starts here")
	say("!retry", "nothing to try again")
}

// TestShareSkill: only an owner shares a skill, and only one that may be read where they ask.
func TestShareSkill(t *testing.T) {
	w := newWorld(t, t.TempDir())
	say := func(room, sender string, private bool, text string) string {
		return w.deliver(t, Inbound{Room: room, Sender: sender, Text: text, Private: private, At: time.Now()}).Text
	}
	wants(t, say("!dm", owner, true, "!skills"), "I have no skills yet")
	w.calls(t, w.directScope("!bob", "@bob:x"), "add_skill", "skill_name", "his", "summary", "Bob's way", "documentation", "x")
	w.calls(t, w.directScope("!dm", owner), "add_skill", "skill_name", "tea", "summary", "How to make tea", "documentation", "Boil.")
	group := w.directScope("!group", "@bob:x")
	group.Private = false
	w.calls(t, group, "add_skill", "skill_name", "minutes", "summary", "Who writes them", "documentation", "Bob.")
	wants(t, say("!group", owner, false, "!skills"), "- `minutes`: Who writes them (for this room)")
	wants(t, say("!bob", "@bob:x", true, "!skills"), "- `his`: Bob's way (yours alone)")
	for _, name := range []string{"his", "tea", "none", ""} {
		wants(t, say("!bob", "@bob:x", true, "!skills share "+name), "Only my owners")
	}
	wants(t, say("!group", "@bob:x", false, "!skills share minutes"), "Only my owners")
	for name, want := range map[string]string{"": "Say which one", "none": "I know no skill `none` here", "his": "I know no skill `his` here", "minutes": "I know no skill `minutes` here"} {
		wants(t, say("!dm", owner, true, "!skills share "+name), want)
	}
	w.sharedSkill(t, "minutes.md", "Everybody's minutes\n")
	wants(t, say("!group", owner, false, "!skills share minutes"), "I have not shared it", "`minutes`")
	lacks(t, say("!bob", "@bob:x", true, "!skills"), "tea")
	wants(t, say("!dm", owner, true, "!skills share `tea`"), "Everybody who may talk to me can use `tea` now", "`data/skills/tea.md`")
	wants(t, say("!dm", owner, true, "!skills share tea"), "`tea` is everybody's already")
	wants(t, say("!bob", "@bob:x", true, "!skills"), "- `his`: Bob's way (yours alone)", "- `tea`: How to make tea")
	if asked := w.asksWhile(func() { say("!bob", "@bob:x", true, "hello") }); !strings.Contains(asked, "How to make tea") {
		t.Error("Bob's prompt does not list the shared skill")
	}
	all, err := w.cfg.Skills.List(trust.Place{Room: "!other"})
	if err != nil || len(all) != 2 || all[1].Label != (trust.Label{Integrity: trust.Owner, Readers: trust.Everybody}) || all[1].Owner != owner {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestDreamCommand: owners have it dream, ask how it went and take it back; others do not.
func TestDreamCommand(t *testing.T) {
	w := newWorld(t, t.TempDir())
	wants(t, w.say(t, "$1", "!dream").Text, "`bot dream`")
	woken := 0
	w.cfg.Dreams = &Dreams{Wake: func() { woken++ },
		Status: func(context.Context, i18n.Say) (string, error) { return "slept well", nil }, Undo: func(context.Context, i18n.Say) (string, error) { return "taken back", nil }}
	for text, want := range map[string]string{"!dream": "as soon as nobody waits", "!dream Status": "slept well", "!dream undo": "Taken back.", "!dream on": "`!dream status`"} {
		notice(t, w.deliver(t, Inbound{ID: "$own" + text, Room: "!own", Sender: owner, Text: text, Private: true, At: time.Now()}), want)
		if got := w.deliver(t, Inbound{ID: "$other" + text, Room: "!own", Sender: "@other:example.org", Text: text, Private: true, At: time.Now()}); !strings.Contains(got.Text, "Only my owner") {
			t.Errorf("%s by another: %q", text, got.Text)
		}
	}
	if woken != 1 {
		t.Errorf("woken %d times", woken)
	}
}

// TestTidy: what has outgrown its cap is named to whoever dreams, and the model is told nothing.
func TestTidy(t *testing.T) {
	w := newWorld(t, t.TempDir(), "hello", "good morning")
	var parts []string
	w.cfg.Dreams = &Dreams{Tidy: func(part string) { parts = append(parts, part) }}
	w.say(t, "$1", "hi")
	if len(parts) > 0 {
		t.Errorf("with room for all: %q", parts)
	}
	for i := range 40 {
		task := task.Task{Room: "!dm", Label: inDM.Label(), User: owner, Content: fmt.Sprintf("%d: %s", i, strings.Repeat("do it ", 40)), Priority: 5}
		result(w.cfg.Tasks.Add(t.Context(), task))(t)
	}
	w.say(t, "$2", "hi again")
	if strings.Join(parts, " ") != "tasks" {
		t.Errorf("too many tasks: %q", parts)
	}
	equal(t, len(w.script.asked()), 2)
}
