package prompt

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/history"
	"reverie/internal/llm"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// The same files, rows and turn make the same bytes, whichever contributor
// answers first and whatever is equal in rank.
func TestSameBytes(t *testing.T) {
	w := newWorld(t, Stable)
	fill(w)
	turn := w.turn()
	for _, turn.Layout = range append(Layouts(), Minimal, BaseOnly, Bare) {
		first := ""
		for range 30 {
			w.restart()
			p := w.assembles(turn)
			got := flat(p.Messages())
			if first == "" {
				first = got
			}
			if got != first {
				t.Fatalf("%s: other bytes for the same turn:\n%s\n--- and ---\n%s", turn.Layout, first, got)
			}
		}
	}
}

// fill gives a world something for every contributor, with ties in every ranking.
func fill(w *world) {
	for _, f := range []string{"SOUL", "AGENTS", "TOOLS", "COMMANDS", "AGENT", "PREFERENCES", "USER"} {
		w.file(f+".md", "What "+f+".md says.")
	}
	w.file("prompts/SANITY.txt", "Check it.")
	w.file("prompts/tools/task.txt", "Give it a date.")
	w.file("prompts/assistant/tier1.txt", "Be short.")
	for i := range 8 {
		w.remembers(fmt.Sprintf("Fact %d.", i))
		w.file(fmt.Sprintf("skills/skill%d.md", 7-i), "# The same summary\n")
		w.addTask(5, "The same task")
	}
	w.mode, w.tier, w.goal, w.steps, w.pin = "assistant", 3, []string{"Ship it."}, []string{"🔄 one", "⏳ two"}, "One."
	w.summary, w.thinking, w.model, w.context = "They talked.", "high", "qwen3:8b", "What this room is about."
	w.instruct("Prefer metric units.")
	w.says("Hello")
	w.uses("read_file", `{"path":"data/skills/skill1.md"}`, "# The same summary")
	w.now = w.now.Add(time.Minute)
}

// The clock, a new memory, a task, a step of the goal, thinking and a restart leave the
// prefix as it is.
// Holds P4.
func TestPrefixStays(t *testing.T) {
	w := newWorld(t, Stable)
	fill(w)
	before := w.send()
	w.answers("Well.")
	for what, change := range map[string]func(){
		"clock":    func() { w.now = w.now.Add(3 * time.Hour) },
		"memory":   func() { w.remembers("Something new.") },
		"task":     func() { w.addTask(1, "Something to do") },
		"step":     func() { w.steps = []string{"✅ one", "🔄 two"} },
		"pin":      func() { w.pin = "Two." },
		"thinking": func() { w.thinking = "low" },
		"model":    func() { w.model = "another" },
		"restart":  func() { w.restart() },
	} {
		change()
		if p := w.tells("And now?"); p.Prefix != before.Prefix || p.Report.Epoch.New {
			t.Errorf("%s: another prefix, new epoch %v: %s", what, p.Report.Epoch.New, p.Report.Epoch.Reason)
		}
		w.answers("Well.")
	}
}

// Whatever the window and whatever there is to say: what is sent fits, counted anew,
// and holds the newest message whole; or there is an error that says so.
func TestEveryWindow(t *testing.T) {
	w := newWorld(t, Stable)
	fill(w)
	rapid.Check(t, func(t *rapid.T) {
		w.room = fmt.Sprintf("!%s:example.org", rapid.StringMatching(`[a-z]{16}`).Draw(t, "room"))
		w.file("MEMORIES.txt", manyLines(rapid.IntRange(0, 300).Draw(t, "memories")))
		w.file("SOUL.md", strings.Repeat("Warm and dry. ", rapid.IntRange(0, 500).Draw(t, "soul")))
		w.file("BASE_PROMPT.txt", strings.Repeat("Be kind. ", rapid.IntRange(1, 400).Draw(t, "base")))
		for range rapid.IntRange(0, 6).Draw(t, "turns") {
			w.says(strings.Repeat("and then? ", rapid.IntRange(1, 60).Draw(t, "question")))
			w.answers(strings.Repeat("it is so. ", rapid.IntRange(1, 200).Draw(t, "answer")))
		}
		newest := strings.Repeat("What about it? ", rapid.IntRange(1, 200).Draw(t, "newest")) + "END"
		w.says(newest)
		turn := w.turn()
		turn.Layout = rapid.SampledFrom(append(Layouts(), Minimal, BaseOnly, Bare)).Draw(t, "layout")
		turn.Window = rapid.IntRange(600, 12_000).Draw(t, "window")
		p, err := w.assembler.Assemble(w.t.Context(), turn)
		var large *TooLargeError
		if errors.As(err, &large) {
			if large.Needed <= large.Room {
				t.Fatalf("%d are needed and there is room for %d", large.Needed, large.Room)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		used := turn.ToolTokens
		for _, m := range p.Messages() {
			used += messageFrame + llm.EstimateTokens(m.Content)
			for _, c := range m.ToolCalls {
				used += llm.EstimateTokens(c.Name) + llm.EstimateTokens(c.Arguments)
			}
		}
		if most := turn.Window - turn.MaxOutput; used > most {
			t.Fatalf("%s: %d tokens are sent and %d fit:\n%s", turn.Layout, used, most, p.Report)
		}
		if all := p.Messages(); !strings.Contains(all[len(all)-1].Content, newest) {
			t.Fatalf("the newest message is not whole in\n%s", all[len(all)-1].Content)
		}
	})
}

// Two rooms talk at once, in layouts that change: neither sees a memory, a task, a goal or
// a file of the other, a skill that the other calls for, or its nonce.
func TestRoomsApart(t *testing.T) {
	w := newWorld(t, Stable)
	w.assembler.nonce = func() string { return strings.ToLower(fmt.Sprintf("n%x", time.Now().UnixNano())) }
	rooms := []string{"!one:example.org", "!two:example.org"}
	turns := make([]Turn, len(rooms))
	for i, room := range rooms {
		w.room, w.private = room, false
		secret := fmt.Sprintf("canary%d", i)
		_, _, err := w.memory.Add(t.Context(), memory.Entry{Scope: memory.Room(room), Text: "The " + secret + " memory.", Source: memory.Assistant, Integrity: trust.User}, "assistant")
		w.must(err)
		w.addTask(3, "The "+secret+" task")
		w.skillFile(fmt.Sprintf("way%d", i), secret, 0, "The "+secret+" way.")
		w.add(history.Message{Role: llm.User, Sender: testUser, Text: "Hello " + secret, Header: "[now]"})
		turns[i] = w.turn()
		turns[i].Goal, turns[i].Pin, turns[i].Summary = []string{secret + " goal"}, secret+" pin", secret+" summary"
	}
	var all sync.WaitGroup
	for i := range rooms {
		all.Go(func() {
			for n := range 60 {
				turn := turns[i]
				if n%2 == 1 {
					turn.Layout = Layouts()[n%len(Layouts())]
				}
				p, err := w.assembler.Assemble(t.Context(), turn)
				if err == nil {
					err = w.assembler.Commit(t.Context(), p)
				}
				if err == nil {
					turns[i].History, err = w.history.Load(t.Context(), history.Talk(turn.Room))
				}
				if err != nil {
					t.Error(err)
					return
				}
				got := flat(p.Messages())
				if other := fmt.Sprintf("canary%d", 1-i); strings.Contains(got, other) {
					t.Errorf("room %d sees %s:\n%s", i, other, got)
					return
				}
				if mine := fmt.Sprintf("canary%d", i); strings.Count(got, mine) < 2 {
					t.Errorf("room %d does not see its own:\n%s", i, got)
					return
				}
			}
		})
	}
	all.Wait()
	first, err := w.assembler.Assemble(t.Context(), turns[0])
	w.must(err)
	second, err := w.assembler.Assemble(t.Context(), turns[1])
	w.must(err)
	if a, b := nonceOf(first), nonceOf(second); a == "" || a == b {
		t.Errorf("nonces %q and %q", a, b)
	}
}

func nonceOf(p Prompt) string {
	_, after, _ := strings.Cut(p.Prefix, `<data id="`)
	nonce, _, _ := strings.Cut(after, `"`)
	return nonce
}
