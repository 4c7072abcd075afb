package dream

import "testing"

// dentists is what no table of questions knows of: each person has a new one.
func dentists() []fact {
	var out []fact
	for i, who := range []string{"Anna", "Ben", "Carla", "David", "Elif", "Farid", "Greta", "Hugo"} {
		first, second := []string{"Adler", "Bosse", "Conrad"}[i%3], []string{"Ebert", "Falk", "Gruber"}[i%3]
		out = append(out,
			fact{key: who + " dentist", old: true, at: i, texts: []string{"For bad teeth " + who + " sees " + first + "."}},
			fact{key: who + " dentist", at: 50 + i, texts: []string{who + " goes to " + second + " with bad teeth these days."}},
			fact{key: who + " hobby", at: 20 + i, texts: []string{who + " collects stamps in the evening."}},
			fact{key: who + " pet", at: 30 + i, texts: []string{who + " walks a small dog at noon."}},
		)
	}
	return out
}

// TestLoosePairs: what is an update by its meaning only is superseded when the model is
// right about what is known, and never when it is not.
func TestLoosePairs(t *testing.T) {
	dir := prepare(t, dentists())
	for name, c := range map[string]struct {
		judge func(*world, string) (string, error)
		want  int
	}{
		"perfect": {perfect, 8}, "always update": {always("update"), 0}, "always the newer": {always("keep_second"), 0}, "always unsure": {always("unsure"), 0}, "always the same": {always("duplicate"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := openWorld(t, dir, dentists(), c.judge)
			got := 0
			for range 4 {
				for _, s := range w.dream(Options{Now: true}).Superseded {
					if got++; !w.of[s.Text].old {
						t.Errorf("%q holds", s.Text)
					}
				}
			}
			if got != c.want {
				t.Errorf("%d superseded", got)
			}
			for pair, n := range w.asked {
				if n > 1 {
					t.Errorf("asked %d times: %s", n, pair)
				}
			}
		})
	}
}
