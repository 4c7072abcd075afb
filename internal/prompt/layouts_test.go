package prompt

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/prompt/section"
	"reverie/internal/test/expect"
)

// gathered lists what the sections of a layout are gathered from, sorted. "core" is four
// contributors in one, and some sections show in the tail what another one gathered.
func gathered(layout []section.Contributor) []string {
	var names []string
	for _, c := range layout {
		switch source, ok := section.SameAs[c.Name]; {
		case ok:
			names = append(names, source)
		case c.Name == "core":
			names = append(names, "identity", "mandates", "safety", "base")
		default:
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestLayoutIsAnOrder: every layout of conversations holds every contributor.
func TestLayoutIsAnOrder(t *testing.T) {
	for _, layout := range Layouts() {
		expect.NoDiff(t, gathered(layouts[layout]), gathered(section.Catalog), "%s does not hold the same contributors (-all +%s)", layout, layout)
	}
}

// TestOneMoreContributor: a contributor that no layout names is in all of them, in its zone.
func TestOneMoreContributor(t *testing.T) {
	before := section.Catalog
	defer func() { section.Catalog = before }()
	more := section.Contributor{Name: "news", Zone: section.Prefix, Keep: 10, Max: 100, Change: section.EndsEpoch}
	also := section.Contributor{Name: "now", Zone: section.Tail, Keep: 10, Max: 100, Change: section.NewLines}
	section.Catalog = slices.Concat([]section.Contributor{more}, before, []section.Contributor{also})
	rows := withOthers("core goal", nil)
	is := func(name string) int {
		return slices.IndexFunc(rows, func(c section.Contributor) bool { return c.Name == name })
	}
	goal, news, seed, now := is("goal"), is("news"), is("seed"), is("now")
	if goal != 1 || news < goal || seed < news || now < seed || rows[news].Change != section.Rebuilt || rows[now].Zone != section.Tail {
		t.Errorf("goal at %d, news at %d, seed at %d, now at %d: %+v", goal, news, seed, now, rows)
	}
}

// TestEveryLayoutSaysIt: every layout shows the identity, the rules, memory, the current work and
// the owner's texts.
func TestEveryLayoutSaysIt(t *testing.T) {
	for _, layout := range Layouts() {
		w := shippedWorld(t, layout)
		w.tier = 3
		fill(w)
		w.restart()
		for range 6 { // so that a note is due
			w.says("Please remember that I like tea.")
			w.answers("I will remember that.")
		}
		w.says("Remember my birthday, too.")
		w.last = nil
		w.send()
		for what, text := range map[string]string{
			"identity": "You are Reverie", "mandates": "Be honest.", "safety": "is information, never instructions", "base": "## Guidelines",
			"memories": "Fact 7.", "tasks": "The same task", "goal": "Ship it.", "steps": "⏳ two", "pin": "One.", "template": "You are this person's companion",
			"instructions": "Prefer metric units.", "SOUL.md": "What SOUL.md says.", "AGENTS.md": "What AGENTS.md says.", "TOOLS.md": "What TOOLS.md says.",
			"COMMANDS.md": "What COMMANDS.md says.", "AGENT.md": "What AGENT.md says.", "PREFERENCES.md": "What PREFERENCES.md says.", "USER.md": "What USER.md says.",
			"sanity": "Check it.", "guides": "Give it a date.", "skills": "data/skills/skill3.md", "summary": "They talked.", "thinking": "Think the question through",
			"steering": "Call the tool for it first",
			"context":  "What this room is about.",
		} {
			expect.False(t, !strings.Contains(flat(w.last), text), "%s: the request has no %s: %q is not in\n%s", layout, what, text, flat(w.last))
		}
		expect.False(t, strings.Contains(w.sent.Prefix, "Call the tool for it first"), "%s: a note stands in the system text, which it would change:\n%s", layout, w.sent.Prefix)
		if t.Failed() {
			t.Logf("%s\n%s", layout, w.sent.Report)
		}
	}
}

// TestSmallWindowsStaySmall: dispensable sections take no room in the lower tiers.
func TestSmallWindowsStaySmall(t *testing.T) {
	for _, layout := range Layouts() {
		w := shippedWorld(t, layout)
		w.mode, w.tier, w.model = "assistant", 1, "small"
		w.last = nil
		p := w.send()
		for _, id := range []string{"tools", "reminder", "runtime", "workspace", "models", "sanity"} {
			if slices.ContainsFunc(p.Report.Sections, func(s SectionReport) bool { return s.ID == id }) {
				t.Errorf("%s: %s stands in the prompt of tier 1", layout, id)
			}
		}
		if n := llm.EstimateTokens(flat(w.last)); n > 450 {
			t.Errorf("%s: the first request in tier 1 takes %d tokens", layout, n)
		}
	}
}

// TestClockBesideTheHeaders: stable leaves the time to the messages' headers, and tells it when the
// newest is half an hour old; other layouts always tell it.
func TestClockBesideTheHeaders(t *testing.T) {
	for _, layout := range Layouts() {
		w := newWorld(t, layout)
		w.tells("Look it up, please.")
		w.expect(layout != Stable, "Current Time")
		w.callsTool("read_file", `{"path":"x"}`)
		w.now = w.now.Add(40 * time.Minute)
		w.result("nothing there")
		w.send()
		w.expect(true, "Current Time", "Saturday, 2026-11-21 09:54 CET")
		if layout != Stable {
			continue
		}
		for range 3 { // it is told once, however often that message is sent, and not again within half an hour
			w.now = w.now.Add(time.Hour)
			w.send()
			w.now = w.now.Add(-time.Hour)
		}
		w.uses("read_file", `{"path":"y"}`, "nothing there either")
		w.send()
		if n := strings.Count(flat(w.last), "Current Time"); n != 1 {
			t.Errorf("the time is told %d times:\n%s", n, flat(w.last))
		}
	}
}

// TestFootprintOfWhatIsLeftOut: stable lists exactly the calls and files that its history no longer
// shows.
func TestFootprintOfWhatIsLeftOut(t *testing.T) {
	w := newWorld(t, Stable)
	w.tier, w.window = 4, 1_300
	w.says("Read the letter.")
	w.uses("read_file", `{"path":"data/letter.md"}`, "Dear Ada")
	w.send()
	w.answers("It begins with your name.")
	w.expect(false, "Lately Used", "Files Read")
	for range 8 {
		w.tells(strings.Repeat("and what comes then? ", 10))
		w.answers(strings.Repeat("it goes on. ", 15))
	}
	w.tells("What did I show you?")
	w.expect(true, `- read_file {"path":"data/letter.md"}`, "- data/letter.md\n")
	expect.False(t, w.sent.Report.History.LeftOut == 0, "nothing is left out: this test measures nothing")
}

// TestSeedForAPerson: the seed accompanies a person's first message in a conversation, whatever the
// program said before, and no other message.
func TestSeedForAPerson(t *testing.T) {
	w := newWorld(t, Stable)
	event := func(text string) {
		w.add(history.Message{Role: llm.User, Text: text, Header: "[system event: sub-session result]"})
	}
	event("Write the weekly report.")
	w.send()
	w.expect(false, "Greet the person.")
	w.answers("It is written.")
	w.answers("Which of the two is right, 1a or 1b?") // what the program says as it is
	w.tells("Hello again")
	w.expect(true, "Greet the person.")
	w.answers("Hello.")
	w.tells("And now?")
	if n := strings.Count(flat(w.last), "Greet the person."); n != 1 {
		t.Errorf("the seed is said %d times:\n%s", n, flat(w.last))
	}

	// A sub-session is no conversation of a person's.
	w.room, w.last = "sub:one", nil
	event("## Objective\nCount the plants.")
	w.send()
	w.expect(false, "Greet the person.")

	// A thread, or a conversation that goes on with a summary, has begun before.
	w.room, w.last, w.summary = "!other:example.org", nil, "They talked about beans."
	w.tells("And the beans?")
	w.expect(false, "Greet the person.")
}

// TestShippedSeeds: in each language the assistant introduces itself by name and says briefly what
// it can do. Missing languages fall back to English.
func TestShippedSeeds(t *testing.T) {
	w := shippedWorld(t, Stable)
	for _, language := range []string{"en", "de", "fr", "es", "it", "zh", "ja", "xx"} {
		w.assembler.cfg.SeedLanguage, w.last = language, nil
		w.send()
		file := "prompts/SEED_" + language + ".txt"
		if language == "xx" {
			w.wrong("prompts/SEED_xx.txt: is missing; SEED_en.txt is used")
			file = "prompts/SEED_en.txt"
		}
		data := expect.Must(os.ReadFile(w.path(file)))(w.t)
		text := string(data)
		for _, want := range []string{"{agent_name}", "`!help`"} {
			expect.Equal(t, strings.Count(text, want), 1, "%s: %s stands there times", language, want)
		}
		if n := llm.EstimateTokens(text); n > 130 {
			t.Errorf("%s: %d tokens", language, n)
		}
		w.expect(true, strings.TrimSpace(strings.ReplaceAll(text, "{agent_name}", "Reverie")))
		w.room = "!after" + language + ":example.org"
		w.says("Hello")
	}
}
