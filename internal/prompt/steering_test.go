package prompt

import (
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

// Each rule comes when its time has come, not before, and rests then.
func TestRules(t *testing.T) {
	for name, play := range map[string]func(w *world){
		"repeat": func(w *world) {
			w.says("Look.")
			w.send()
			for i, want := range []string{"", "repeat", "", "repeat", ""} {
				w.callsTool("read_file", `{"path":"a"}`)
				w.result("b")
				w.send()
				if got := strings.Join(w.notes(), " "); got != want {
					w.t.Errorf("call %d: %q, want %q", i+1, got, want)
				}
			}
			w.answers("Well.")
			w.says("Look again.")
			w.got("")
			w.callsTool("read_file", `{"path":"a"}`) // in another turn it is no repetition
			w.result("b")
			w.got("")
		},
		"repeat, by turns": func(w *world) {
			w.says("Look.")
			w.send()
			for i := range 6 {
				w.callsTool("read_file", fmt.Sprintf(`{"path":"%d"}`, i%2))
				w.result("b")
				w.got(map[int]string{4: "repeat"}[i])
			}
		},
		"errors": func(w *world) {
			w.says("Look.")
			w.send()
			for i, want := range []string{"", "errors", "", "", "errors"} {
				w.callsTool("read_file", fmt.Sprintf(`{"path":"%d"}`, i))
				w.fails("no such file")
				w.got(want)
			}
			w.callsTool("read_file", `{"path":"x"}`)
			w.result("fine")
			w.got("")
			w.callsTool("read_file", `{"path":"y"}`)
			w.fails("no such file")
			w.got("")
		},
		"rounds": func(w *world) {
			w.says("Look.")
			w.send()
			for i := range 17 {
				w.callsTool("read_file", fmt.Sprintf(`{"path":"%d"}`, i))
				w.result("fine")
				w.got(map[int]string{9: "rounds", 15: "rounds"}[i])
			}
		},
		"recovered": func(w *world) {
			w.talks("Hello.", "")
			w.compacts(1)
			w.talks("And?", "recovered")
			w.talks("And now?", "")
			w.says("Look.")
			w.got("")
			w.callsTool("read_file", "{}")
			w.compacts(2)
			w.result("fine")
			w.got("recovered")
			w.callsTool("task", "{}")
			w.result("fine")
			w.got("")
			w.answers("Well.")
			for range 2 {
				w.startsNew()
				w.talks("Hello.", "")
				w.compacts(1)
				w.talks("And?", "recovered")
			}
		},
		"keep": func(w *world) {
			w.talks("Remember that my sister is Jana.", "keep")
			w.talks("Merk dir, dass sie in Brno wohnt.", "")
			w.talks("请记住她喜欢茶。", "keep")
			w.talks("Well?", "")
			w.talks("Do you remember that film?", "")
			w.tools = []string{"read_file"}
			w.talks("Please remember: tea.", "")
		},
		"promised": func(w *world) {
			w.says("My sister is Jana.")
			w.got("")
			w.answers("I'll remember that.")
			w.talks("Fine.", "promised")
			w.says("And her son is Tom.")
			w.got("")
			w.callsTool("append_memory", `{"entry":"Tom"}`)
			w.result("Remembered: Tom")
			w.got("")
			w.answers("I'll remember that.")
			w.talks("Fine.", "")
			w.event("Tidy up.")
			w.got("")
			w.answers("I have saved it.") // which nobody heard
			w.talks("Fine.", "")
		},
		"act": func(w *world) {
			w.goal, w.steps = []string{"Ship it."}, []string{"one"}
			for i := range 11 {
				w.talks("Go on.", map[int]string{4: "act", 9: "act"}[i])
			}
			w.steps = nil
			for range 6 {
				w.talks("Go on.", "")
			}
		},
		"remember": func(w *world) {
			for i := range 14 {
				w.talks("My cat is hungry.", map[int]string{4: "remember", 12: "remember"}[i])
			}
			w.says("My cat is thirsty.")
			w.got("")
			w.callsTool("append_memory", `{}`)
			w.result("Remembered.")
			w.answers("Well.")
			for i := range 8 {
				w.talks("My cat is hungry.", map[int]string{5: "remember"}[i])
			}
		},
		"tasks": func(w *world) {
			w.addTask(5, "Call Jana")
			for i := range 26 {
				w.talks("Hello.", map[int]string{11: "tasks", 23: "tasks"}[i])
			}
		},
		"tasks, none open": func(w *world) {
			for range 14 {
				w.talks("Hello.", "")
			}
		},
		"brief": func(w *world) {
			long := strings.Repeat("words, ", 300)
			for _, want := range []string{"", "", "brief", "", "", "", "", "", "brief"} {
				w.says("Why?")
				w.got(want)
				w.answers(long)
			}
			w.talks("Why?", "") // and this answer was short
			for range 6 {
				w.talks("Why?", "")
			}
			w.says(strings.Repeat("Why? ", 60)) // a long message may have a long answer
			w.got("")
			w.answers(long)
			w.says(strings.Repeat("Why? ", 60))
			w.got("")
			w.answers(long)
			w.talks("Why?", "")
		},
		"brief, code": func(w *world) {
			for range 4 {
				w.says("Why?")
				w.got("")
				w.answers("```" + strings.Repeat("words, ", 300) + "```")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { play(newWorld(t, Stable)) })
	}
}

// A window that is nearly full asks for short answers.
func TestBriefWhenFull(t *testing.T) {
	w := newWorld(t, Stable)
	w.window = 1600
	w.says(strings.Repeat("Why and how? ", 90))
	w.send()
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

// Where many rules hold, the most important ones come.
func TestMostNotes(t *testing.T) {
	w := newWorld(t, Stable)
	w.goal, w.steps = []string{"Ship it."}, []string{"one"}
	for i := range 4 {
		w.says("My cat is hungry.")
		w.send()
		w.answers([]string{"Well.", "I'll remember that."}[i/3])
	}
	w.compacts(4)
	w.says("Remember that my cat is hungry.")
	w.got("recovered keep promised")
	w.answers("Well.")
	w.talks("My cat.", "act remember") // what found no room rests not
}
