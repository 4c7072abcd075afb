package prompt

import (
	stdcmp "cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	reverie "reverie"
	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/manner"
	"reverie/internal/prompt/section"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
	"reverie/internal/voice"
)

// fails gives the newest call a failed result.
func (w *world) fails(text string) {
	w.add(history.Message{Role: llm.Tool, CallID: fmt.Sprintf("call_%d", w.calls), Text: text, Failed: true})
}

// event adds a message of the program to the model.
func (w *world) event(text string) {
	w.add(history.Message{Role: llm.User, Text: text, Header: "[now]"})
}

// compacts removes all but the newest messages from the conversation, as a summary would.
func (w *world) compacts(keep int) {
	w.t.Helper()
	past := w.turn().History
	w.compacted++
	if w.summary == "" {
		w.summary = "They talked."
	}
	for keep < len(past) && past[len(past)-keep].Sender != "" && past[len(past)-keep-1].Sender != "" { // between messages of one turn
		keep++
	}
	if len(past) > keep {
		expect.Must(w.db.Exec(`UPDATE message SET retired = 1 WHERE room = ? AND id < ?`, w.room, past[len(past)-keep].ID))(w.t)
	}
	w.last = nil // shorter than the one before
}

// retries removes all messages after the last one of a person.
func (w *world) retries() {
	w.t.Helper()
	for _, m := range slices.Backward(w.turn().History) {
		if m.Role == llm.User && m.Sender != "" {
			w.must(w.history.Retire(context.Background(), history.Timeline(w.room), m.ID))
			break
		}
	}
	w.last = nil
}

// notes returns the rules whose notes the newest message got in the newest request.
func (w *world) notes() []string {
	w.t.Helper()
	_, lines, found := strings.Cut(w.sent.Tail, "\nNow:\n")
	if !found {
		lines, found = strings.CutPrefix(w.sent.Tail, openNote("k3f9")+"\nNow:\n")
	}
	if !found {
		return nil
	}
	lines, _, _ = strings.Cut(lines, "\n"+closeNote("k3f9"))
	var out []string
	builtin := section.Sources{Dir: w.t.TempDir(), Defaults: reverie.Data}
	rules, _ := builtin.Read("prompts/steering/en.txt", 0)
	for line := range strings.SplitSeq(lines, "\n") {
		i := slices.IndexFunc(rules, func(r section.Marked) bool { return "- "+strings.ReplaceAll(r.Text, "{agent_name}", "Reverie") == line })
		if i < 0 {
			w.t.Fatalf("%q is nobody's words in\n%s", line, w.sent.Tail)
		}
		out = append(out, rules[i].Name)
	}
	return out
}

// got sends, and compares the notes with want.
func (w *world) got(want string) {
	w.t.Helper()
	w.send()
	expect.Equal(w.t, strings.Join(w.notes(), " "), want, "notes")
}

// talks plays a turn without tools.
func (w *world) talks(text, want string) {
	w.t.Helper()
	w.says(text)
	w.got(want)
	w.answers("Well.")
}

// plays are scripts of events in a room, and after "=" the notes that the model gets then;
// otherwise none. See world.happens for the words.
var plays = map[string]string{
	"repeat": "ask Look.; tool a; tool a = repeat; 3*tool a; reply Well.; ask Look again.; tool a; tool a; reply Well.; 3*talk Well?; " +
		"ask Look again.; tool a; tool a = repeat",
	"repeat, by turns": "ask Look.; tool 0; tool 1; tool 0; tool 1; tool 0 = repeat; tool 1",
	"errors":           "ask Look.; fail 0; fail 1 = errors; fail 2; fail 3; fail 4; retry; fail 5; fail 6 = errors; reply Well.; 4*talk Well?; ask Look.; fail 0; tool x; fail y; fail z = errors",
	"rounds":           "ask Look.; 9*tool; tool = rounds; 9*tool; reply Well.; 4*talk Well?; ask Look.; 9*tool; tool = rounds",
	"recovered": "talk Hello.; compacted 1; talk And? = recovered; talk And now?; ask Look.; call read_file a; compacted 2; " +
		"work; tool b; reply Well.; compacted 1; 2*talk And?; compacted 1; talk And? = recovered; talk Thanks.",
	"recovered, in a turn": "talk Hello.; ask Look.; call read_file a; compacted 2; work = recovered; tool b; reply Well.",
	"keep": "talk Remember that my sister is Jana. = keep; talk Merk dir, dass sie in Brno wohnt.; 3*talk Well?; talk 请记住她喜欢茶。 = keep; " +
		"talk Do you remember that film?; tools read_file; talk Please remember: tea.",
	"promised": "ask My sister is Jana.; reply I'll remember that.; talk Fine. = promised; ask And her son is Tom.; memory; " +
		"reply I'll remember that.; talk Fine.; event; reply I have saved it.; talk Fine.", // nobody heard that
	"act": "steps one; 4*talk Go on.; talk Go on. = act; 3*talk Go on.; talk Go on. = identity; talk Go on. = act; talk Go on.; steps; " +
		"5*talk Go on.; talk Go on. = identity",
	"remember": "4*talk My cat is hungry.; talk My cat is hungry. = remember; 3*talk My cat is hungry.; talk My cat is hungry. = identity; " +
		"3*talk My cat is hungry.; talk My cat is hungry. = remember; talk My cat is hungry.; ask My cat is thirsty.; memory; reply Well.; " +
		"talk My cat is hungry.; talk My cat is hungry. = identity; 2*talk My cat is hungry.; talk My cat is hungry. = remember; " +
		"4*talk Why?; talk Why? = identity; talk Why?; talk Remember my cat. = keep; 5*talk Why?; talk Why? = identity; 4*talk Why?",
	"tasks": "task 5 Call Jana; 8*talk Hello.; talk Hello. = identity; 2*talk Hello.; talk Hello. = tasks; " +
		"4*talk Hello.; talk Hello. = identity; 6*talk Hello.; talk Hello. = tasks; talk Hello. = identity; talk Hello.",
	"tasks, none open": "8*talk Hello.; talk Hello. = identity; 5*talk Hello.",
	"the most important": "steps one; 3*talk My cat is hungry.; ask My cat is hungry.; reply I'll remember that.; " +
		"ask Remember that my cat is hungry. = keep; reply Well.; talk My cat.",
	"identity":                     "8*talk Hello.; talk Hello. = identity; 7*talk Hello.; talk Hello. = identity",
	"identity, after another note": "8*talk Hello.; talk Remember that my sister is Jana. = keep; talk Hello. = identity; 7*talk Hello.; talk Hello. = identity",
	"identity, after much text":    "talk " + longText + "; talk Hello. = identity; 2*talk Hello.; 2*talk " + longText + "; talk Hello. = identity; talk Hello.",
	"identity, after a summary":    "2*talk Hello.; talk " + longText + " = identity; compacted 1; talk Well? = recovered; 7*talk Hello.; talk Hello. = identity",
	"recovered, after a restart":   "talk Hello.; compacted 1; talk Hello. = recovered; 2*talk Hello.; event; restart; compacted 1; fail b; event; fail b",
	"no steps":                     "bare goal; talk Go on.; talk Go on. = no_steps; 4*talk Go on.; talk Go on. = no_steps",
	"pending":                      "pin the roof; 2*talk Go on.; talk Go on. = pending; talk Go on.; talk Go on. = act; 2*talk Go on.; talk Go on. = pending; talk Go on. = identity; talk Go on. = act",
	// A retry begins the rounds of tools anew, and keeps what the person's message got.
	"retry": "ask Remember that my sister is Jana. = keep; tool a; tool a = repeat; event; reply Done.; retry; tool a; tool a = repeat",
}

var longText = strings.TrimSpace(strings.Repeat("It rains on the hills. ", 200))

// Each rule applies at its time, not before, and then pauses.
func TestRules(t *testing.T) {
	for name, script := range plays {
		t.Run(name, func(t *testing.T) { newWorld(t, Stable).play(script) })
	}
}

// play executes the steps of a script, N*STEP N times.
func (w *world) play(script string) {
	w.t.Helper()
	for line := range strings.SplitSeq(script, "; ") {
		what, notes, _ := strings.Cut(line, " = ")
		times := 1
		if n, rest, ok := strings.Cut(what, "*"); ok {
			fmt.Sscan(n, &times)
			what = rest
		}
		for range times {
			if w.happens(what) {
				w.got(notes)
			}
			if strings.HasPrefix(what, "talk ") {
				w.answers("Well.")
			}
		}
	}
}

// happens executes one step, and reports whether it causes a request.
func (w *world) happens(what string) (asked bool) {
	switch verb, text, _ := strings.Cut(what, " "); verb {
	case "ask", "talk":
		w.says(text)
	case "tool": // with the argument, or another one each time
		w.uses("read_file", stdcmp.Or(text, fmt.Sprint(w.calls)), "fine")
	case "fail":
		w.callsTool("read_file", text)
		w.fails("no such file")
	case "memory":
		w.uses("append_memory", "{}", "Remembered.")
	case "work":
		w.result("fine")
	case "event":
		w.event("Tidy up.")
	case "bare":
		w.goal = []string{"CURRENT GOAL: Ship it.", "Status: Active"}
		return false
	default:
		step(w, nil, verb, text, nil)
		return verb == "retry"
	}
	return true
}

// The note on identity says the rules of style that hold, of the owner and of the person, in few tokens. Where
// there are too many, each comes in its turn. In a group it says nothing of the person's.
func TestStyleIsRepeated(t *testing.T) {
	w := shippedWorld(t, Stable)
	w.private, w.tier, w.last = true, 3, nil
	w.speaks(voice.Voice{Persona: "professional"})
	noticed := manner.Store{DB: w.db}
	w.assembler.cfg.Manner = noticed
	wish := func(text string) {
		t.Helper()
		expect.OK(t, noticed.Observe(t.Context(), w.db, manner.Said{Event: text, Person: testUser, Readers: trust.PersonReaders(testUser), Allowed: true, Text: text, At: w.turn().Now}))
	}
	identity := func() string { // the rules of the next note
		t.Helper()
		w.answers("Well.")
		for range 4 {
			w.tells("Hello.")
			w.answers("Well.")
		}
		_, note, _ := strings.Cut(w.tells(longText).Tail, "\nNow:\n- You are Reverie. Keep to how you are described above.")
		note, _, _ = strings.Cut(note, "\n")
		expect.False(t, llm.EstimateTokens("- You are Reverie. Keep to how you are described above."+note) > 60, "too long: %q", note)
		return note
	}
	w.tells("Hello.")
	owners := func() {
		t.Helper()
		note := identity()
		expect.Has(t, note, "polite address", "no emoji", "short paragraphs")
		expect.False(t, strings.Count(note, ".") != 3, "it says more: %q", note)
	}
	owners()
	wish("Don't say 'well'")
	expect.Has(t, identity(), "Use words only, no emoji.", "Do without the phrase “well”.", "short paragraphs.", "polite address")
	for _, phrase := range []string{"sure", "of course", "no problem", "great question", "indeed"} {
		wish("Don't say '" + phrase + "'")
	}
	var all string
	for range 9 {
		all += identity()
	}
	expect.Has(t, all, "“well”", "“sure”", "“of course”", "“no problem”", "“great question”", "“indeed”", "no emoji", "short paragraphs", "polite address")
	w.private = false
	owners()
}

// In any conversation a message gets at most one note, and the same ones when it is sent again,
// after a preview and without cached state.
func TestNotesOfAMessageStay(t *testing.T) {
	w := newWorld(t, Stable)
	runs, noted := 0, map[string]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		w.last, w.summary, w.compacted, w.goal, w.steps = nil, "", 0, nil, nil
		w.room, w.window = fmt.Sprintf("!room%d:example.org", runs), rapid.SampledFrom([]int{0, 1400, 3000}).Draw(rt, "window")
		if rapid.Bool().Draw(rt, "goal") {
			w.goal, w.steps = []string{"Ship it."}, []string{"one"}
		}
		happenings := rapid.SampledFrom([]string{"ask Hello.", "ask My cat is hungry.", "ask Remember that it is so.", "tool a", "tool b", "fail a", "memory",
			"event", "reply Well.", "reply I'll remember that.", "compacted 3", "retry"})
		w.says("Hello.")
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			what := happenings.Draw(rt, "step")
			if past := w.turn().History; past[len(past)-1].Role == llm.Assistant && (strings.HasPrefix(what, "reply") || what == "retry") {
				continue
			}
			if !w.happens(what) {
				continue
			}
			w.send()
			notes := w.notes()
			if len(notes) > 2 {
				rt.Fatalf("%d notes: %v", len(notes), notes)
			}
			for _, n := range notes {
				noted[n] = true
			}
			w.previews()
			w.assembler.Leave(history.Timeline(w.room))
			if p := w.send(); p.Tail != "" {
				rt.Fatalf("sent again, it gets %q", p.Tail)
			}
		}
	})
	expect.False(t, len(noted) < 4, "only %v ever came: this test says little", noted)
}

// In any conversation no note comes twice within five turns. Only where a retry or a new epoch takes a note away, its
// turn may get it again.
func TestNotesRest(t *testing.T) {
	w := newWorld(t, Stable)
	w.addTask(5, "Call Jana")
	runs, noted := 0, map[string]bool{}
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		w.last, w.summary, w.compacted, w.goal, w.steps, w.pin = nil, "", 0, nil, nil, rapid.SampledFrom([]string{"", "The roof"}).Draw(rt, "pin")
		w.room, w.assembler.cfg.Terminal = fmt.Sprintf("!rest%d:example.org", runs), fmt.Sprintf("!rest%d:example.org", runs%2)
		if rapid.Bool().Draw(rt, "goal") {
			w.happens("bare goal")
		}
		happenings := rapid.SampledFrom([]string{"talk Hello.", "talk Hello.", "talk My cat is hungry.", "talk Remember that it is so.", "talk " + longText, "ask My cat is hungry.",
			"tool a", "tool a", "fail a", "fail b", "fail c", "event", "reply I'll remember that.", "compacted 1", "compacted 9", "retry", "epoch"})
		turn, taken, last := 0, -1, map[string]int{} // taken: the newest turn from which notes were taken away
		w.says("Hello.")
		for range rapid.IntRange(10, 40).Draw(rt, "steps") {
			what, past := happenings.Draw(rt, "step"), w.turn().History
			switch newest := past[len(past)-1]; {
			case what == "epoch":
				w.file("SOUL.md", fmt.Sprint("Soul ", w.calls, len(past), runs))
				continue
			case newest.Role == llm.Assistant && !strings.HasPrefix(what, "talk") && !strings.HasPrefix(what, "ask") && what != "event" && what[0] != 'c':
				continue
			case newest.Sender == "" && (strings.HasPrefix(what, "talk") || strings.HasPrefix(what, "ask")):
				turn++
			}
			if what == "retry" {
				taken = turn
			}
			if !w.happens(what) {
				continue
			}
			if w.send().Report.Epoch.New {
				taken = turn
			}
			for _, n := range w.notes() {
				noted[n] = true
				before, ever := last[n]
				if ever && turn-before < 5 && !(turn == before && taken == turn) {
					rt.Fatalf("%s came in turn %d and in turn %d", n, before, turn)
				}
				last[n] = turn
			}
			if strings.HasPrefix(what, "talk") {
				w.answers("Well.")
			}
			if rapid.Bool().Draw(rt, "restart") {
				w.assembler.Leave(history.Timeline(w.room))
			}
		}
	})
	expect.False(t, len(noted) < 10, "only %v ever came: this test says little", noted)
}

// A request that is sent again after a compaction within the turn gets no other notes.
func TestNotesAfterCompactionStay(t *testing.T) {
	w := newWorld(t, Stable)
	w.says("Hello.")
	for _, what := range []string{"ask Remember that it is so.", "fail a", "compacted 3", "fail a"} {
		if w.happens(what) {
			w.send()
		}
	}
	expect.Equal(t, strings.Join(w.notes(), " "), "keep recovered")
	w.assembler.Leave(history.Timeline(w.room))
	expect.Equal(t, w.send().Tail, "", "sent again, it gets")
}

// An epoch that begins within the turn says again what the person's message got.
func TestNotesInANewEpoch(t *testing.T) {
	w := newWorld(t, Stable)
	w.says("Remember that my sister is Jana.")
	w.got("keep")
	w.uses("read_file", "{}", "fine")
	w.file("SOUL.md", "Warm.")
	w.got("keep")
	w.uses("read_file", "{}", "fine")
	w.got("repeat")
	w.answers("Well.")
	w.says("And now?")
	w.file("SOUL.md", "Dry.")
	w.got("")
}

// Without steering no message gets a note; when the tasks cannot be read, none either.
func TestNoSteering(t *testing.T) {
	w := newWorld(t, Stable)
	w.assembler.cfg.NoSteering = true
	w.talks("Remember that my sister is Jana.", "")
	w.restart()
	w.talks("Remember that it is so.", "keep")
	var broken atomic.Pointer[error]
	w.breaks("steering", &broken)
	broken.Store(&errStore)
	w.startsNew()
	w.talks("Remember that it is so.", "")
	broken.Store(nil)
	w.talks("Remember that it is so.", "keep")
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
	expect.NoDiff(t, got, want, "other than wanted")
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
	w.startsNew()
	w.tells("Hello.")
	w.assembler.cfg.SeedLanguage = "de"
	w.answers("I'll remember that.")
	w.tells("Well?")
	w.expect(true, "Deine letzte Antwort sagte")
	w.file("prompts/SEED_xx.txt", "Xx.")
	w.assembler.cfg.SeedLanguage = "xx" // has none: English, and nothing is wrong with that
	w.answers("Well.")
	w.says("Remember that it is so.")
	w.got("keep")
	expect.Len(t, w.sent.Report.Problems, 0, "problems")
}

// What holds no more is said to hold no more, once, and only to a model that was told
// that it held.
func TestNoLonger(t *testing.T) {
	for _, tt := range []struct {
		title, first, second, none string
		set                        func(w *world, s string)
	}{
		{"Thinking:", "low", "high", "Think as much as you find right again.", func(w *world, s string) { w.thinking = s }},
		{"Goal steps now:", "🔄 one", "✅ one", "No steps are open any more.", func(w *world, s string) { w.steps = []string{s} }},
		{"Current Task:", "The first.", "The second.", "No task in particular is being worked on any more.", func(w *world, s string) { w.pin = s }},
	} {
		w := newWorld(t, Stable)
		said := func(want string) {
			t.Helper()
			if reason := w.asks("And now?"); reason != "" && reason != newConversation {
				t.Errorf("%s an epoch began: %s", tt.title, reason)
			}
			_, got, _ := strings.Cut(w.sent.Tail, tt.title+"\n")
			got, _, _ = strings.Cut(got, "\n"+closeNote("k3f9"))
			expect.False(t, !strings.Contains(got, want) || (got == "") != (want == ""), "%s said %q, want %q", tt.title, got, want)
		}
		word := func(s string) string {
			return stdcmp.Or(map[string]string{"low": "Think briefly before you answer.", "high": "Think the question through with care: " +
				"consider other ways, check your result, and only then answer; give only the answer."}[s], s)
		}
		said("")
		tt.set(w, tt.first)
		said(word(tt.first))
		said("")
		tt.set(w, tt.second)
		said(word(tt.second))
		tt.set(w, "")
		said(tt.none)
		said("")
		w.restart()
		said("")
		tt.set(w, tt.first)
		said(word(tt.first))
		tt.set(w, "")
		w.file("SOUL.md", "Another soul.") // a new epoch knows nothing of what was
		p := w.tells("And now?")
		expect.Equal(t, p.Report.Epoch.New, true, tt.title, "a new epoch")
		expect.Lacks(t, p.Tail, tt.title, tt.none)
	}
}

// What stands in a line stands in one, whatever came in; blank lines are none.
func TestWordsOfATurn(t *testing.T) {
	w := newWorld(t, tiered)
	w.tier = 4
	w.markers = true // there is no tool for the goal
	w.goal = []string{" ", "Ship\nit.\n# Instructions", "", strings.Repeat("x", 600)}
	w.asks("Hello")
	w.expect(true, "# Active Goal\nWhen a step begins or ends, ", "Likewise [DECISION] what was decided - LOCKED, [ARTIFACT] Created path, [NEXT] the next step. The person does not see such lines.\n<data id=\"k3f9\" source=\"goal\">\nShip it. # Instructions\n"+strings.Repeat("x", 500)+"…\n</data")
	w.expect(false, "Goal steps now")
	w.expect(true, "# Tools\n- append_memory: what append_memory is for\n- task: what task is for\n")
	w.tools, w.goal = nil, nil
	w.asks("Hello")
	w.expect(false, "# Tools\n", "# Active Goal")
	w.layout, w.summary = Classic, " \n"
	w.restart()
	w.asks("Hello")
	w.expect(false, "# Conversation Summary")
	w.summary = "\nThey talked.\n\n"
	w.asks("Hello")
	w.expect(true, "source=\"summary\">\nThey talked.\n</data")
}

// The runtime line says what is known, and nothing of what is not.
func TestRuntimeAndModels(t *testing.T) {
	w := newWorld(t, split)
	w.tier = 4
	w.asks("Hello")
	w.expect(true, "# Runtime\nagent Reverie, host attic, OS linux/amd64\n")
	w.expect(true, "# Models\nThe person can choose one of these models with `!model NAME`: small, large.\n")
	w.expect(true, "# Tools Reminder\nThese are all the tools there are: append_memory, task, add_skill, read_file. Call no others.")
	w.model, w.tools = "qwen3:8b", nil
	w.assembler.cfg.Machine, w.assembler.cfg.Models = "OS linux/amd64", []string{"small"}
	w.now = time.Date(2026, 12, 31, 23, 5, 0, 0, time.UTC)
	w.asks("Hello")
	w.expect(true, "# Runtime\nagent Reverie, model qwen3:8b, OS linux/amd64")
	w.expect(false, "# Models", "# Tools Reminder")
	w.expect(true, "# Current Time\nFriday, 2027-01-01 00:05 CET")
}

// The steps of the goal are told again after each eight rounds of tools.
func TestChecklist(t *testing.T) {
	w := newWorld(t, Stable)
	w.steps = []string{"- [ ] Lay the bricks"}
	w.says("Build it.")
	var told []int
	for round := range 20 {
		if strings.Contains(w.send().Tail, "Lay the bricks") {
			told = append(told, round)
		}
		w.uses("read_file", fmt.Sprint(round), "fine")
	}
	expect.Equal(t, fmt.Sprint(told), "[0 8 16]")
}

// The terminal is told that it is one, at most every ten turns.
func TestTerminalNote(t *testing.T) {
	w := newWorld(t, Stable)
	w.talks("Hello.", "")
	w.startsNew()
	w.assembler.cfg.Terminal = w.room
	w.talks("Hello.", "channel")
	w.talks("And?", "")
}

// A note that the model repeats is not in its answer, nor the part of one that a draft ends with.
func TestNotesAreNotShown(t *testing.T) {
	w := newWorld(t, Stable)
	w.says("Remember that my sister is Jana.")
	p := w.send()
	expect.Equal(t, len(p.notes), 1)
	expect.Equal(t, p.WithoutNotes("Sure. "+p.notes[0]+" Well."), "Sure.  Well.")
	expect.Equal(t, p.WithoutNotes("Sure. "+p.notes[0][:40]), "Sure. ")
	expect.Equal(t, p.WithoutNotes("Sure, I keep that Jana is your sister."), "Sure, I keep that Jana is your sister.")
}

// A request whose fences were changed is not sent; a new conversation is.
func TestBrokenFenceIsNotSent(t *testing.T) {
	w := newWorld(t, Stable)
	m := w.says("Remember that my sister is Jana.")
	w.send()
	w.answers("Well.")
	expect.Must(w.db.Exec(`UPDATE message SET tail = replace(tail, '[/note', '[/noted') WHERE id = ?`, m.ID))(t)
	w.says("And now?")
	_, err := w.assembler.Assemble(t.Context(), w.turn())
	var broken *FenceError
	expect.False(t, !errors.As(err, &broken) || broken.Message != 1 || broken.Role != llm.User, "assembled: %v", err)
	w.last = nil
	w.startsNew()
	w.says("And now?")
	w.send()
}
