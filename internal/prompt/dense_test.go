package prompt

import (
	"errors"
	"strings"
	"testing"
)

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
