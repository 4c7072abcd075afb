package prompt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"reverie/internal/llm"
)

// When the history outgrows the window, the oldest whole turns go in one batch
// and the prompt then grows again for a while.
func TestHistoryIsLeftOutInBatches(t *testing.T) {
	for _, layout := range []Layout{Stable, Classic} {
		w := newWorld(t, layout)
		w.window = 3000
		epochs, began, leftOut := 0, 0, 0
		for i := range 40 {
			w.addTask(5, "one more thing to do") // so that tails are a good part of what is sent
			if len(w.turn().History) > 0 && i%4 == 0 {
				_, err := w.tasks.Complete(t.Context(), w.caller(), fmt.Sprintf("task_%d", w.numbered), "it is done")
				w.must(err)
			}
			p := w.tells(fmt.Sprintf("Question %d: %s", i, strings.Repeat("what is it? ", 10)))
			if p.Report.Epoch.New {
				epochs++
				if epochs > 1 && i-began < 2 {
					t.Errorf("%s: an epoch of %d turns only", layout, i-began)
				}
				if epochs > 1 && p.Report.History.LeftOut <= leftOut {
					t.Errorf("%s: an epoch began for the history's sake, but nothing was left out", layout)
				}
				leftOut = p.Report.History.LeftOut
				began = i
			}
			if limit := w.window - w.maxOutput; p.Report.Total > limit {
				t.Fatalf("%s: %d tokens are sent, %d fit", layout, p.Report.Total, limit)
			}
			past := w.turn().History
			if len(p.History)+p.Report.History.LeftOut != len(past) {
				t.Fatalf("%s: %d messages sent and %d left out, of %d", layout, len(p.History), p.Report.History.LeftOut, len(past))
			}
			if p.History[0].Role != llm.User {
				t.Fatalf("%s: the history begins with a message of the %s", layout, p.History[0].Role)
			}
			for _, m := range p.History { // every result comes after its call
				if m.Role == llm.Tool && !strings.Contains(flat(p.History), "→ "+m.ToolCallID+" ") {
					t.Fatalf("%s: %s without its call", layout, m.ToolCallID)
				}
			}
			w.uses("read_file", "{}", strings.Repeat("the file says so. ", 10))
			w.send()
			w.answers(strings.Repeat("it is this. ", 20))
		}
		if epochs < 3 {
			t.Errorf("%s: %d epochs; the window was never full", layout, epochs)
		}
	}
}

// With more remembered than a small window holds, there is still room for a
// conversation.
func TestSmallWindowKeepsAConversation(t *testing.T) {
	for _, layout := range []Layout{Stable, Classic} {
		w := newWorld(t, layout)
		w.file("MEMORIES.txt", manyLines(1000))
		w.window = 3000
		epochs := 0
		for i := range 20 {
			p := w.tells("What about it?")
			if p.Report.Epoch.New {
				epochs++
			}
			if i > 3 && len(p.History) < 4 {
				t.Errorf("%s: only %d messages of turn %d are sent", layout, len(p.History), i)
			}
			w.answers("It is like this, and not like that.")
		}
		if epochs > 4 {
			t.Errorf("%s: %d epochs in 20 turns", layout, epochs)
		}
	}
}

// A small window takes from the sections that matter least, not from the
// message that is to be answered.
func TestSmallWindowShrinksSections(t *testing.T) {
	w := newWorld(t, Stable)
	w.file("MEMORIES.txt", manyLines(100)+"the newest\n")
	for i := range 40 {
		w.file(fmt.Sprintf("skills/skill%02d.md", i), "# A skill for this and that\n")
	}
	w.window = 1900
	p := w.tells("Hello")
	if p.Report.Total > w.window-w.maxOutput {
		t.Errorf("%d tokens are sent", p.Report.Total)
	}
	w.expect(true, "Hello", "You are Reverie.", "the newest")
	states := map[string]State{}
	for _, s := range p.Report.Sections {
		states[s.ID] = s.State
	}
	if states["core"] != Kept || states["memories"] != Shrunk || states["skills"] == Kept {
		t.Errorf("states: %v", states)
	}
}

func TestTooLargeIsAnError(t *testing.T) {
	for _, layout := range []Layout{Stable, Classic} {
		w := newWorld(t, layout)
		w.window = 1500
		w.says(strings.Repeat("word ", 3000))
		_, err := w.assembler.Assemble(t.Context(), w.turn())
		var large *TooLargeError
		if !errors.As(err, &large) {
			t.Fatalf("%s: %v", layout, err)
		}
		if large.Window != 1500 || large.Output != 500 || large.Tools != 100 || large.Needed <= large.Room || large.Room > 900 {
			t.Errorf("%s: %+v", layout, large)
		}
		w.startsNew()
		w.says("Hello")
		w.send() // a shorter message works
	}
}

// TestDense: what the window holds goes by how the model counts, and so do the numbers
// that people read.
func TestDense(t *testing.T) {
	w := newWorld(t, Stable)
	w.window = 0
	for range 40 {
		w.asks(strings.Repeat("many words ", 100))
	}
	w.says("and now?")
	assemble := func(window int, dense float64) (Prompt, error) {
		turn := w.turn()
		turn.Window, turn.MaxOutput, turn.Dense = window, 500, dense
		return w.assembler.Assemble(t.Context(), turn)
	}
	before := 1 << 30
	for _, dense := range []float64{0.8, 1, 1.3, 2} {
		p, err := assemble(8000, dense)
		w.must(err)
		r := p.Report
		if r.History.Tokens >= before || r.Counted() > 8000-500 || r.Counted() != int(float64(r.Total)*dense) || r.Room() != int(7500/dense) {
			t.Errorf("with %v for one, %d tokens of history, %d of all, %d as counted, room for %d", dense, r.History.Tokens, r.Total, r.Counted(), r.Room())
		}
		if got := strings.Contains(r.String(), " as the model counts; window 8000"); got != (dense != 1) {
			t.Errorf("with %v for one: %s", dense, r.String())
		}
		before = r.History.Tokens
	}
	// What a small model must leave out, a large one gets.
	if p, err := assemble(200_000, 1); err != nil || p.Report.History.LeftOut != 0 {
		t.Errorf("%v: %d messages are left out of a large window", err, p.Report.History.LeftOut)
	}
	_, err := assemble(8000, 400)
	var large *TooLargeError
	if !errors.As(err, &large) || large.Room > 7500 || large.Needed < 8000 {
		t.Errorf("%v", err)
	}
}
