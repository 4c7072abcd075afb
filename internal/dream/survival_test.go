package dream

import (
	"strings"
	"testing"
	"time"

	"reverie/internal/memory"
)

// TestNothingTrueIsLost: whatever a model says, every fact that holds stays active in
// at least one of its wordings, and no text appears that nobody said. With a model that
// is right, what holds no longer is superseded, and hardly a fact is there twice.
// Holds L1, L6, W14.
func TestNothingTrueIsLost(t *testing.T) {
	dir := prepare(t, facts())
	for name, judge := range judges {
		t.Run(name, func(t *testing.T) {
			w := openWorld(t, dir, facts(), judge)
			entries := len(w.active())
			for night := range 7 {
				r := w.dream(Options{})
				for _, c := range r.Superseded {
					if f := w.of[c.Text]; !f.old {
						t.Errorf("%q holds, and is superseded by %q", c.Text, c.ByText)
					}
				}
				if garbled := name == "garbage" || name == "empty" || name == "inventing"; night == 0 && garbled && !strings.Contains(strings.Join(r.Notes, "\n"), "could not be read") {
					t.Errorf("what the model said is not told: %q", r.Notes)
				}
				if name == "hostile2" && len(r.Grouped) > 0 {
					t.Errorf("of a model that takes everything for the same, something is hidden: %+v", r.Grouped)
				}
				w.now = w.now.Add(24 * time.Hour)
			}
			active := w.active()
			for text := range active {
				if w.of[text] == nil {
					t.Errorf("nobody ever said %q", text)
				}
			}
			copies, outdated, retired := 0, 0, 0
			for i := range w.facts {
				f := &w.facts[i]
				n := 0
				for _, text := range f.texts {
					e, there := active[text]
					if there && (e.By == "" || w.of[w.byID(e.By).Text] != f) {
						n++
					}
				}
				switch {
				case f.old:
					outdated++
					if n == 0 {
						retired++
					}
				case n == 0:
					t.Errorf("%s is not known any more: %q", f.key, f.texts)
				default:
					copies += n - 1
				}
			}
			repeated := 0
			for _, n := range w.asked {
				repeated += n - 1
			}
			if repeated > 0 && name != "down" {
				t.Errorf("%d pairs were asked twice", repeated)
			}
			if 2*w.calls > entries {
				t.Errorf("%d calls for %d entries", w.calls, entries)
			}
			t.Logf("%d entries, %d active, %d of %d outdated retired, %d extra copies of %d facts, %d calls", entries, len(active), retired, outdated, copies, len(w.facts), w.calls)
			if name == "perfect" || name == "fenced" {
				if retired < outdated || 10*copies > len(w.facts) {
					t.Errorf("%d of %d outdated facts were retired, %d facts are there twice", retired, outdated, copies)
				}
			}
			if faults, err := memory.OpenFTS(w.d.cfg.DB).Verify(t.Context()); err != nil || len(faults) > 0 {
				t.Errorf("the index: %q, %v", faults, err)
			}
		})
	}
}

func (w *world) byID(id string) memory.Entry {
	w.t.Helper()
	e, err := w.store.Get(w.t.Context(), everything, id)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}
