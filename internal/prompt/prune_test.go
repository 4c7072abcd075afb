package prompt

import (
	"strings"
	"testing"
)

// TestPrune: when asked to, the oldest turns go in one batch before they must, also at
// an epoch that begins for another reason; and what is left stays for the requests after it.
func TestPrune(t *testing.T) {
	for _, edited := range []bool{false, true} {
		w := newWorld(t, Stable)
		w.window = 6000
		for range 20 {
			w.says(strings.Repeat("many words ", 100))
			w.send()
			w.answers("fine")
		}
		if w.sent.Report.History.LeftOut != 0 {
			t.Fatalf("left out already: %+v", w.sent.Report.History)
		}
		w.says("and now?")
		if edited {
			w.file("SOUL.md", "You are kind.\n")
		}
		turn := w.turn()
		turn.Prune = 1
		p, err := w.assembler.Assemble(t.Context(), turn)
		w.must(err)
		w.must(w.assembler.Commit(t.Context(), p))
		left := p.Report.History.LeftOut
		if !p.Report.Epoch.New || left < 16 || p.Report.History.Messages < 3 {
			t.Errorf("edited %v: epoch %+v, history %+v", edited, p.Report.Epoch, p.Report.History)
		}
		w.last = p.Messages()
		w.answers("fine")
		w.says("and then?")
		if w.send(); w.sent.Report.Epoch.New || w.sent.Report.History.LeftOut != left {
			t.Errorf("edited %v: the next request: epoch %+v, history %+v", edited, w.sent.Report.Epoch, w.sent.Report.History)
		}
	}
}

// TestPruneWhatIsDense: where the model counts more tokens than the estimate, more goes.
func TestPruneWhatIsDense(t *testing.T) {
	w := newWorld(t, Stable)
	w.window = 6000
	for range 20 {
		w.says(strings.Repeat("many words ", 100))
		w.send()
		w.answers("fine")
	}
	w.says("and now?")
	before := 1 << 30
	for _, dense := range []float64{1, 1.2, 2} {
		turn := w.turn()
		turn.Prune = dense
		p, err := w.assembler.Assemble(t.Context(), turn)
		w.must(err)
		if n := p.Report.History.Tokens; n >= before || float64(n)*dense > 6000/2 {
			t.Errorf("with %v tokens for one, %d stay; before it was %d", dense, n, before)
		}
		before = p.Report.History.Tokens
	}
}
