package prompt

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	reverie "reverie"
	"reverie/internal/history"
	"reverie/internal/llm"
)

// fails gives the newest call a result that says that nothing came of it.
func (w *world) fails(text string) {
	w.add(history.Message{Role: llm.Tool, CallID: fmt.Sprintf("call_%d", w.calls), Text: text, Failed: true})
}

// event is what the program tells the model by itself.
func (w *world) event(text string) {
	w.add(history.Message{Role: llm.User, Text: text, Header: "[now]"})
}

// compacts takes all but the newest messages out of the conversation, as a summary would.
func (w *world) compacts(keep int) {
	w.t.Helper()
	past := w.turn().History
	w.must(w.assembler.Compacted(context.Background(), history.Talk(w.room), past))
	if len(past) > keep {
		_, err := w.db.Exec(`UPDATE message SET retired = 1 WHERE room = ? AND id < ?`, w.room, past[len(past)-keep].ID)
		w.must(err)
	}
	w.last = nil // shorter than the one before
}

// retries takes back everything after the last message of a person.
func (w *world) retries() {
	w.t.Helper()
	for _, m := range slices.Backward(w.turn().History) {
		if byPerson(&m) {
			w.must(w.history.Retire(context.Background(), history.Talk(w.room), m.ID))
			break
		}
	}
	w.last = nil
}

// counted is what is stored of the room.
func (w *world) counted() *counters {
	w.t.Helper()
	c, err := loadCounters(context.Background(), w.db, history.Talk(w.room))
	w.must(err)
	return c.clone()
}

// notes is the rules whose words the newest message got with the newest request.
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
	sections, problems := parseBase(builtinSteering(w.t, "en"), nil)
	if len(problems) > 0 {
		w.t.Fatal(problems)
	}
	for line := range strings.SplitSeq(lines, "\n") {
		i := slices.IndexFunc(sections, func(s baseSection) bool { return "- "+s.text == line })
		if i < 0 {
			w.t.Fatalf("%q is nobody's words in\n%s", line, w.sent.Tail)
		}
		out = append(out, sections[i].name)
	}
	return out
}

func builtinSteering(t testing.TB, language string) string {
	t.Helper()
	f := newFiles(t.TempDir(), reverie.Data)
	read := f.read(steeringFile(language))
	if !read.exists {
		t.Fatalf("no %s", steeringFile(language))
	}
	return read.text
}

// got sends, and compares the notes with those named in want.
func (w *world) got(want string) {
	w.t.Helper()
	w.send()
	if got := strings.Join(w.notes(), " "); got != want {
		w.t.Errorf("notes %q, want %q", got, want)
	}
}

// talks is a turn in which nothing happens.
func (w *world) talks(text, want string) {
	w.t.Helper()
	w.says(text)
	w.got(want)
	w.answers("Well.")
}

// plays is what happens in a room, and after "=" the notes that the model gets then; none
// elsewhere. See world.happens for the words.
var plays = map[string]string{
	"repeat":           "ask Look.; tool a; tool a = repeat; tool a; tool a = repeat; tool a; reply Well.; ask Look again.; tool a",
	"repeat, by turns": "ask Look.; tool 0; tool 1; tool 0; tool 1; tool 0 = repeat; tool 1",
	"errors":           "ask Look.; fail 0; fail 1 = errors; fail 2; fail 3; fail 4 = errors; tool x; fail y",
	"rounds":           "ask Look.; 9*tool; tool = rounds; 5*tool; tool = rounds; tool",
	"recovered": "talk Hello.; compacted 1; talk And? = recovered; talk And now?; ask Look.; call read_file a; compacted 2; " +
		"work = recovered; tool b; reply Well.; new; talk Hello.; compacted 1; talk And? = recovered; new; talk Hello.; compacted 1; talk And? = recovered",
	"recovered, and taken back": "ask Look.; call read_file a; compacted 2; work = recovered; retry; tool a = recovered",
	"keep": "talk Remember that my sister is Jana. = keep; talk Merk dir, dass sie in Brno wohnt.; talk 请记住她喜欢茶。 = keep; talk Well?; " +
		"talk Do you remember that film?; tools read_file; talk Please remember: tea.",
	"promised": "ask My sister is Jana.; reply I'll remember that.; talk Fine. = promised; ask And her son is Tom.; memory; " +
		"reply I'll remember that.; talk Fine.; event; reply I have saved it.; talk Fine.", // nobody heard that
	"act": "steps one; 4*talk Go on.; talk Go on. = act; 4*talk Go on.; talk Go on. = act; talk Go on.; steps; 6*talk Go on.",
	"remember": "4*talk My cat is hungry.; talk My cat is hungry. = remember; 7*talk My cat is hungry.; " +
		"talk My cat is hungry. = remember; talk My cat is hungry.; ask My cat is thirsty.; memory; reply Well.; " +
		"5*talk My cat is hungry.; talk My cat is hungry. = remember; 2*talk My cat is hungry.",
	"tasks":            "task 5 Call Jana; 11*talk Hello.; talk Hello. = tasks; 11*talk Hello.; talk Hello. = tasks; 2*talk Hello.",
	"tasks, none open": "14*talk Hello.",
	"brief": "2*long Why?; long Why? = brief; 5*long Why?; long Why? = brief; 7*talk Why?; " +
		"2*long " + longQuestion + "; talk Why?", // which may have a long answer
	"brief, code": "4*code Why?",
	// What found no room rests not.
	"the most important three": "steps one; 3*talk My cat is hungry.; ask My cat is hungry.; reply I'll remember that.; compacted 4; " +
		"ask Remember that my cat is hungry. = recovered keep promised; reply Well.; talk My cat. = act remember",
}

var longQuestion = strings.TrimSpace(strings.Repeat("Why? ", 60))

// Each rule comes when its time has come, not before, and rests then.
func TestRules(t *testing.T) {
	for name, script := range plays {
		t.Run(name, func(t *testing.T) { newWorld(t, Stable).play(script) })
	}
}

// play has the steps of a script happen, N*STEP N times.
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
			switch verb, _, _ := strings.Cut(what, " "); verb {
			case "talk":
				w.answers("Well.")
			case "long":
				w.answers(strings.Repeat("words, ", 300))
			case "code":
				w.answers("```" + strings.Repeat("words, ", 300) + "```")
			}
		}
	}
}

// happens has one thing happen, in a word of its own or of a golden script, and reports
// whether the model is asked then.
func (w *world) happens(what string) (asked bool) {
	switch verb, text, _ := strings.Cut(what, " "); verb {
	case "ask", "talk", "long", "code":
		w.says(text)
	case "tool": // with the argument, or another one each time
		w.uses("read_file", cmp.Or(text, fmt.Sprint(w.calls)), "fine")
	case "fail":
		w.callsTool("read_file", text)
		w.fails("no such file")
	case "memory":
		w.uses("append_memory", "{}", "Remembered.")
	case "work":
		w.result("fine")
	case "event":
		w.event("Tidy up.")
	default:
		step(w, nil, verb, text, nil)
		return verb == "retry"
	}
	return true
}

// A window that is nearly full asks for short answers.
func TestBriefWhenFull(t *testing.T) {
	w := newWorld(t, Stable)
	w.window = 1600
	w.tells(strings.Repeat("Why and how? ", 90))
	if used := w.counted().Used; used < 60 || used >= 85 {
		t.Fatalf("used %d %%", used)
	}
	w.answers(strings.Repeat("Well, ", 220))
	w.talks("So?", "")
	if used := w.counted().Used; used < 85 || used > 100 {
		t.Fatalf("used %d %%", used)
	}
	w.talks("So?", "brief")
}
