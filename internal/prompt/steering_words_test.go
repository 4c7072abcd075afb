package prompt

import (
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	reverie "reverie"
	"reverie/internal/history"
	"reverie/internal/skill"
)

// Every language has words for every rule, for the same tools, in the table's order;
// three of them fit the section.
func TestSteeringWords(t *testing.T) {
	var names []string
	for _, r := range rules {
		names = append(names, r.name)
	}
	english, _ := steeringOf(&text{text: builtinSteering(t, "en"), exists: true}, "", nil)
	seen := map[string]string{}
	for _, language := range []string{"en", "de", "es", "fr", "it", "ja", "zh"} {
		sections, problems := steeringOf(&text{text: builtinSteering(t, language), exists: true}, "", []string{"append_memory", "task"})
		if len(problems) > 0 {
			t.Errorf("%s: %v", language, problems)
		}
		var got []string
		var sizes []int
		for i, s := range sections {
			got = append(got, s.name)
			n := utf8.RuneCountInString(s.text)
			sizes = append(sizes, n)
			if n == 0 || n > maxWords || strings.Contains(s.text, "\n") {
				t.Errorf("%s, %s: %d characters of one line: %q", language, s.name, n, s.text)
			}
			if i < len(english) && !slices.Equal(s.any, english[i].any) {
				t.Errorf("%s, %s requires %v, in English %v", language, s.name, s.any, english[i].any)
			}
			if other := seen[s.text]; other != "" {
				t.Errorf("%s, %s says what %s says", language, s.name, other)
			}
			seen[s.text] = language + ", " + s.name
		}
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("%s (-table +file):\n%s", language, diff)
		}
		slices.Sort(sizes)
		if longest := sizes[len(sizes)-mostNotes:]; longest[0]+longest[1]+longest[2]+9 > 1000 {
			t.Errorf("%s: the longest three have no room: %v", language, longest)
		}
	}
}

// What asks for something to be kept, what speaks of oneself and what claims to have
// kept something is told from what only looks like it.
func TestSteeringCues(t *testing.T) {
	says := func(what string, found func(string) bool, yes, no []string) {
		for _, s := range yes {
			if !found(s) {
				t.Errorf("%q: not %s", s, what)
			}
		}
		for _, s := range no {
			if found(s) {
				t.Errorf("%q: %s", s, what)
			}
		}
	}
	says("asks to keep", asksToKeep,
		[]string{"REMEMBER THAT I like tea", "please, don’t forget the milk", "Merk dir das!", "Recuérdame llamar a Ana", "N'oublie pas le lait", "Ricordati il latte", "覚えておいて", "请记住我喜欢茶"},
		[]string{"Do you remember that film?", "Remembering is hard", "I forgot it", "Hast du dir das gemerkt?", "覚えていますか", "Unforgettable"})
	said := func(cues []string) func(string) bool {
		return func(s string) bool { return skill.Said(s, cues) != "" }
	}
	says("personal", said(personal),
		[]string{"My cat is hungry", "Ich habe Hunger", "Vivo en Brno", "J'aime le thé", "Mi piace il tè", "私は茶が好き", "我喜欢茶"},
		[]string{"Mystery", "Why is it so?", "Mount it", "What about Ada?"})
	says("promises", said(promises),
		[]string{"OK, I'll remember that!", "Das merke ich mir.", "Lo recordaré.", "C'est noté !", "Me lo ricorderò.", "覚えておきます。", "好的，我会记住。"},
		[]string{"I remember your sister.", "It is noted in the book", "Ich erinnere mich nicht"})
}

// Notes are chosen once for a message: asked again, after a crash, with other facts,
// it has those that it was sent.
func TestSteeringIsFrozen(t *testing.T) {
	w := newWorld(t, Stable)
	w.says("Remember that my sister is Jana.")
	w.got("keep")
	sent := flat(w.last)
	w.goal, w.steps = []string{"Ship it."}, []string{"one"}
	w.restart()
	w.goal, w.steps = nil, nil
	if w.send(); flat(w.last) != sent {
		t.Errorf("sent again:\n%s\n--- first ---\n%s", flat(w.last), sent)
	}
	past := w.turn().History
	if m := past[len(past)-1]; m.Text != "Remember that my sister is Jana." || !strings.Contains(m.Tail, "asks you to keep") {
		t.Errorf("stored as %+v", m)
	}
	// An epoch that begins within the turn says again what is in force, of that turn only.
	w.uses("read_file", "{}", "fine")
	w.file("SOUL.md", "Warm.")
	w.got("keep")
	w.uses("read_file", "{}", "fine")
	w.got("repeat")
	w.file("SOUL.md", "Cold.")
	w.uses("task", "{}", "fine")
	w.got("repeat keep")
	w.uses("read_file", "{}", "fine")
	w.got("repeat")
	w.file("SOUL.md", "Mild.")
	w.uses("add_skill", "{}", "fine")
	w.got("repeat keep") // each once, the newest of it
	w.answers("Well.")
	w.says("And now?")
	w.file("SOUL.md", "Dry.")
	w.got("")
}

// A retry begins the rounds of tools anew, and keeps what the person's message got.
func TestSteeringRetry(t *testing.T) {
	w := newWorld(t, Stable)
	play := func() {
		w.uses("read_file", "{}", "fine")
		w.got("")
		w.uses("read_file", "{}", "fine")
		w.got("repeat")
	}
	w.says("Remember that my sister is Jana.")
	w.got("keep")
	play()
	w.event("Tidy up.")
	w.got("")
	w.answers("Done.")
	w.retries()
	w.got("")
	w.expect(true, "asks you to keep")
	w.expect(false, "You made this call before")
	play()
	if c := w.counted(); c.Turn != 1 || c.Rounds != 2 || c.Event {
		t.Errorf("counted %+v", c)
	}
}

// Without steering no message gets a note, and the counters go on.
func TestNoSteering(t *testing.T) {
	w := newWorld(t, Stable)
	w.assembler.cfg.NoSteering = true
	w.says("Remember that my sister is Jana.")
	w.got("")
	w.answers("I'll remember that.")
	w.restart()
	w.talks("Fine.", "promised")
	if c := w.counted(); c.Turns != 2 {
		t.Errorf("counted %+v", c)
	}
}

// The owner's words are used as they stand; a section without any is never said, and
// what is wrong with the file is told.
func TestSteeringFile(t *testing.T) {
	w := newWorld(t, Stable)
	const file = "prompts/steering/en.txt"
	w.file(file, "For the reader.\n<!-- section: keep -->\n{agent_name}, keep\nit!\n<!-- section: promised -->\n\n<!-- section: singing -->\nSing.\n<!-- section: act requires: drill -->\nAct.\n")
	p := w.tells("Remember that my sister is Jana.")
	w.expect(true, "Now:\n- Reverie, keep it!\n[/note")
	w.expect(false, "For the reader")
	var got []string
	for _, p := range p.Report.Problems {
		got = append(got, p.String())
	}
	want := []string{file + ":9: section act names an unknown tool \"drill\"", file + ":7: there is no steering rule \"singing\"; its text is never used"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := Check(w.dir, reverie.Data, "en", w.tools); len(got) != 2 || got[0].File != file {
		t.Errorf("Check: %v", got)
	}
	w.answers("I'll remember that.")
	w.file(file, "<!-- section: keep -->\nDifferent.\n")
	if p := w.tells("And now?"); p.Report.Epoch.New || p.Tail != "" {
		t.Errorf("epoch %+v, tail %q", p.Report.Epoch, p.Tail)
	}
	w.file(file, "<!-- section: promised tiers: 1-2 -->\nShort.\n<!-- section: promised tiers: 3-5 -->\nLonger.\n")
	w.answers("I'll remember that.")
	w.tier = 2
	w.tells("And now?")
	w.expect(true, "\n- Short.\n")
	w.expect(false, "Longer.")
	w.answers("Well.")
	w.tells("And now?")
	w.must(os.Remove(w.path(file)))
	w.assembler.cfg.SeedLanguage = "de"
	w.answers("I'll remember that.")
	w.tells("Well?")
	w.expect(true, "Deine letzte Antwort sagte")
	w.file("prompts/SEED_xx.txt", "Xx.")
	w.assembler.cfg.SeedLanguage = "xx" // has none: English, and nothing is wrong with that
	w.answers("Well.")
	w.says("Remember that it is so.")
	w.got("keep")
	if problems := w.sent.Report.Problems; len(problems) > 0 {
		t.Errorf("%v", problems)
	}
}

// What cannot be read of the counters is counted anew from the conversation.
func TestSteeringDamaged(t *testing.T) {
	w := newWorld(t, Stable)
	w.talks("My cat is hungry.", "")
	w.talks("My cat is thirsty.", "")
	before := w.counted()
	_, err := w.db.Exec(`UPDATE steering SET state = '{"conversation": 1, "through": 99999, "turn": "three"}'`)
	w.must(err)
	w.restart()
	w.talks("Well?", "")
	if c := w.counted(); c.Turns != 3 || c.Personal != 2 || before.Turns != 2 {
		t.Errorf("counted %+v", c)
	}
}

// An upgraded room goes on counting where the old one stopped, and its rules rest on.
func TestSteeringMoves(t *testing.T) {
	w := newWorld(t, Stable)
	w.talks("My cat is hungry.", "")
	w.talks("Remember that it is so.", "keep")
	const to = "!to:example.org"
	turn := w.turn()
	turn.Room, turn.Preview = to, true
	_, err := w.assembler.Assemble(t.Context(), turn) // it was looked at before
	w.must(err)
	w.must(w.history.Move(t.Context(), history.Talk(w.room), to))
	w.must(w.assembler.Move(t.Context(), history.Talk(w.room), to))
	w.must(w.assembler.Move(t.Context(), history.Talk(w.room), to))
	w.room, w.last = to, nil
	w.talks("Remember that it is so.", "")
	if c := w.counted(); c.Turn != 3 || c.Turns != 3 || c.Personal != 1 {
		t.Errorf("counted %+v", c)
	}
}

// When the tasks cannot be read, there are no notes; the counters are right, and the
// next message gets its own.
func TestSteeringFails(t *testing.T) {
	w := newWorld(t, Stable)
	var broken atomic.Pointer[error]
	w.breaks("steering", &broken)
	broken.Store(&errStore)
	w.says("Remember that it is so.")
	w.got("")
	broken.Store(nil)
	w.uses("read_file", "{}", "fine")
	w.got("") // what comes with a person's message comes with no other
	w.answers("Well.")
	w.talks("Remember that it is so.", "keep")
	if c := w.counted(); c.Turns != 2 || c.Rounds != 0 {
		t.Errorf("counted %+v", c)
	}
}

// Nothing of what was said is in the counters.
func TestSteeringKeepsNoWords(t *testing.T) {
	w := newWorld(t, Stable)
	w.tells("Remember that my canary is yellow.")
	w.callsTool("append_memory", `{"entry":"The canary is yellow."}`)
	w.add(history.Message{Role: "tool", CallID: "call_1", Text: "Remembered: the canary."})
	w.send()
	var state string
	w.must(w.db.QueryRow(`SELECT state FROM steering`).Scan(&state))
	if strings.Contains(state, "canary") || strings.Contains(state, "yellow") || !strings.Contains(state, `"turns":1`) {
		t.Errorf("stored: %s", state)
	}
}
