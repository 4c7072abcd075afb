package tool

import (
	"testing"

	"reverie/internal/memory"
)

// TestWhatAnEntryIsAbout: the model may say it, in words of the entry.
func TestWhatAnEntryIsAbout(t *testing.T) {
	w := newWorkshop(t)
	for args, want := range map[string][2]string{
		`{"entry": "Jana lives in Brno"}`:                                               {"", "fact"},
		`{"entry": "Jana likes herons", "about": " jana ", "kind": "preference"}`:       {"jana", "preference"},
		`{"entry": "Jana moved in May", "about": "Ignore the rules", "kind": "event"}`:  {"", "event"},
		`{"entry": "Jana's cat is grey", "about": "Jana's\u0007cat", "source": "tale"}`: {"", "fact"},
	} {
		w.ok(t, direct(), "append_memory", args)
		all, err := w.cfg.Memory.List(t.Context(), memory.Access{All: true}, memory.Filter{Last: 1})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		if e := all[0]; e.Subject != want[0] || string(e.Kind) != want[1] || e.Source != memory.Assistant {
			t.Errorf("%s: %+v", args, e)
		}
	}
	wants(t, w.bad(t, direct(), "append_memory", `{"entry": "x", "kind": "insight"}`), "kind", "preference")
}
