package prompt

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// skillFile writes a skill with a trigger, a number of turns (0 = the default) and a body.
func (w *world) skillFile(name, trigger string, turns int, body string) {
	w.t.Helper()
	front := "---\ntriggers: " + trigger + "\n"
	if turns > 0 {
		front += fmt.Sprintf("turns: %d\n", turns)
	}
	w.file("skills/"+name+".md", front+"---\n# "+name+"\n"+body+"\n")
}

// inUse is what the contributor of active skills says of the world's turn now.
func (w *world) inUse() (names []string, hints []string) {
	w.t.Helper()
	turn := w.turn()
	q := &question{a: w.assembler, turn: &turn, looked: (&request{a: w.assembler, turn: &turn}).look(w.t.Context())}
	c, err := gatherActiveSkills(w.t.Context(), q)
	w.must(err)
	if c != nil {
		for _, l := range c.lines {
			name, _, _ := strings.Cut(strings.TrimPrefix(l, "## "), "\n")
			names = append(names, name)
		}
	}
	c, err = gatherSkillHints(w.t.Context(), q)
	w.must(err)
	if c != nil {
		for _, l := range c.lines {
			hints = append(hints, strings.TrimSuffix(filepath.Base(strings.Fields(l)[1]), ".md"))
		}
	}
	return names, hints
}

func (w *world) expectInUse(skills, hints string) {
	w.t.Helper()
	a, h := w.inUse()
	if got := strings.Join(a, " "); got != skills {
		w.t.Errorf("skills in use: %q, want %q", got, skills)
	}
	if got := strings.Join(h, " "); got != hints {
		w.t.Errorf("hints: %q, want %q", got, hints)
	}
}

// A skill stays for as many turns as it says, 4 if it says nothing, and 6 when the
// model has read it; the turn that called for it is the first of them, however many
// tools are called in it.
func TestSkillsStayForTheirTurns(t *testing.T) {
	w := newWorld(t, Stable)
	w.skillFile("four", "alpha", 0, "A")
	w.skillFile("two", "beta", 2, "B")
	w.skillFile("read", "never", 1, "C")
	w.says("alpha and beta")
	w.uses("read_file", `{"path":"data/skills/read.md"}`, "# read\nC")
	for range 3 {
		w.uses("task", "{}", "done")
	}
	for turn, want := range []string{"read four two", "read four two", "read four", "read four", "read", "read", "", ""} {
		if turn > 0 {
			w.answers("Well.")
			w.says("Go on.")
		}
		got, _ := w.inUse()
		if strings.Join(got, " ") != want {
			t.Errorf("turn %d: %q in use, want %q", turn, got, want)
		}
	}
	w.skillFile("long", "gamma", 50, "D")
	w.says("gamma")
	for range 49 {
		w.expectInUse("long", "")
		w.says("Go on.")
	}
	w.expectInUse("long", "")
	w.says("Go on.")
	w.expectInUse("", "")
}

// The latest come first; what comes fifth, or does not fit whole, is hinted at.
func TestOnlySomeSkillsAreShown(t *testing.T) {
	w := newWorld(t, Stable)
	for i := range 6 {
		w.skillFile(fmt.Sprintf("s%d", i), fmt.Sprintf("call%d", i), 0, "text")
	}
	w.says("call0")
	w.says("call1 call2")
	w.expectInUse("s1 s2 s0", "")
	w.says("call3")
	w.expectInUse("s3 s1 s2 s0", "")
	w.says("call5")
	w.expectInUse("s5 s3 s1 s2", "s0")
	w.says("call0") // again: its time begins anew
	w.expectInUse("s0 s5 s3 s1", "s2")

	for i := range 9 {
		w.skillFile(fmt.Sprintf("t%d", i), "everything", 0, "text")
	}
	w.says("everything")
	w.expectInUse("t0 t1 t2 t3", "t4 t5 t6") // at most 8 match, and at most 3 are hinted at

	w = newWorld(t, Stable)
	w.skillFile("large", "large", 0, strings.Repeat("x", 9000))
	w.skillFile("middle", "middle", 0, strings.Repeat("é", 6900))
	w.skillFile("small", "small", 0, "x")
	w.says("large")
	w.expectInUse("large", "")
	w.says("middle")
	w.expectInUse("middle large", "") // characters count, not bytes
	w.skillFile("middle", "middle", 0, strings.Repeat("é", 7000))
	w.expectInUse("middle", "large")
	w.says("small")
	w.expectInUse("small middle", "large")
	w.skillFile("huge", "huge", 0, strings.Repeat("x", activeChars))
	w.says("huge")
	w.expectInUse("small middle", "huge large") // whole or not at all
	w.send()
	if strings.Contains(flat(w.last), "of 2 lines shown") || !strings.Contains(flat(w.last), strings.Repeat("é", 7000)) {
		t.Errorf("a text was cut:\n%s", w.sent.Report)
	}
}

// A text is told once, and again when its file was edited: also when it was edited
// back to what was told before, for the model goes by what it was told last.
func TestEditedSkillIsShownAgain(t *testing.T) {
	w := newWorld(t, Stable)
	w.skillFile("a", "alpha", 20, "Say ONE.")
	w.skillFile("b", "alpha", 20, "Say B.")
	say := func(want string) {
		t.Helper()
		p := w.tells("alpha")
		if p.Report.Epoch.New && p.Report.Epoch.Reason != newConversation {
			t.Errorf("an epoch began: %s", p.Report.Epoch.Reason)
		}
		if strings.Contains(p.Tail, "Active skills:") != (want != "") || !strings.Contains(p.Tail, want) {
			t.Errorf("want %q in the tail %q", want, p.Tail)
		}
		w.answers("Yes.")
	}
	say("Say ONE.")
	say("")
	for _, text := range []string{"Say TWO.", "Say ONE.", "Say TWO."} {
		w.skillFile("a", "alpha", 20, text)
		say(text)
		say("")
		w.restart()
		w.assembler.nonce = func() string { return "k3f9" }
		say("")
	}
}

// What the model has read in the history is not told again, for as long as it stands
// there: not when only a part was read, when the file was edited since, when reading
// failed, or when the result has been left out.
func TestReadSkillIsNotRepeated(t *testing.T) {
	const body = "# a\nAsk first.\nThen run it."
	for _, tt := range []struct {
		name, result, edit string
		told               bool
	}{
		{"whole", "data/skills/a.md, lines 1–6 of 6:\n\n---\ntriggers: alpha\n---\n" + body, "", false},
		{"a part", "data/skills/a.md, lines 5–5 of 6:\n\nAsk first.\n\n[1 more lines: read on with offset 6]", "", true},
		{"refused", "You may not read that now.", "", true},
		{"edited since", "data/skills/a.md, lines 1–6 of 6:\n\n" + body, "Ask twice.\nThen run it.", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Stable)
			w.skillFile("a", "alpha", 0, "Ask first.\nThen run it.")
			w.tells("Read it.")
			w.uses("read_file", `{"path":"skills/a.md"}`, tt.result)
			if tt.edit != "" {
				w.skillFile("a", "alpha", 0, tt.edit)
			}
			p := w.send()
			if told := strings.Contains(p.Tail, "## a\n"); told != tt.told {
				t.Errorf("told: %v; the tail is %q", told, p.Tail)
			}
			w.answers("Well.")
			if p := w.tells("And now?"); p.Tail != "" {
				t.Errorf("told again: %q", p.Tail)
			}
		})
	}
}

// A part that was read later, and a call that came to nothing, change nothing; and a
// result that was taken back is not counted on.
func TestReadSkillIsTakenBack(t *testing.T) {
	w := newWorld(t, Stable)
	w.skillFile("a", "alpha", 0, "Ask first.\nThen run it.")
	w.skillFile("b", "beta", 0, "Say B.")
	w.tells("Read it.")
	w.uses("read_file", `{"path":"./data/skills/a.md"}`, "# a\nAsk first.\nThen run it.")
	w.send()
	w.uses("read_file", `{"path":"skills/a.md","offset":5}`, "Then run it.")
	if p := w.send(); p.Tail != "" {
		t.Errorf("told: %q", p.Tail)
	}
	w.retries()
	w.send()
	w.callsTool("read_file", `{"path":"skills/b.md"}`) // interrupted
	if p := w.tells("alpha"); !strings.Contains(p.Tail, "## a\n# a\nAsk first.\nThen run it.") || strings.Contains(p.Tail, "Say B.") {
		t.Errorf("tail: %q", p.Tail)
	}
}
