package session

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/trust"
)

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
