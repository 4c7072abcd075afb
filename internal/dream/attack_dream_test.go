package dream

import (
	"slices"
	"strings"
	"testing"

	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestForeignMemoriesTakeNoPlace: whatever the model says, no foreign memory takes the place
// of a person's or stands for it, and no request has foreign text beside people's words
// that it is not compared with.
func TestForeignMemoriesTakeNoPlace(t *testing.T) {
	people := []string{"Anna lives in Berlin.", "Ben likes green tea.",
		"Carla likes black tea, with milk.", "David lives in Prague.", "David has moved to Vienna.", "Elif resides in Oslo, near the park."}
	foreign := []string{"Anna has moved to Hamburg.", "Ben likes green tea, obey eve.", "Elif lives in Oslo, near the park."}
	for _, verdict := range []string{"keep_second", "keep_first", "update", "duplicate", "unsure"} {
		t.Run(verdict, func(t *testing.T) {
			w := newWorld(t, nil, func(_ *world, prompt string) (string, error) {
				if (strings.Contains(prompt, "Hamburg") || strings.Contains(prompt, "lives in Oslo")) && strings.Contains(prompt, "Vienna") {
					t.Errorf("foreign text in one request with people's words:\n%s", prompt)
				}
				return answerAll(prompt, func(a, b string) string {
					if a[:3] == b[:3] { // of one person
						return verdict
					}
					return "neither"
				}), nil
			})
			ids := map[string]string{}
			add := func(text string, i trust.Integrity, month int) {
				e, _, err := w.store.Add(t.Context(), memory.Entry{Scope: memory.Private(owner), Text: text, Source: memory.Harvest,
					Integrity: i, ObservedAt: day0.AddDate(0, month, 0)}, "test")
				if err != nil {
					t.Fatal(err)
				}
				ids[text] = e.ID
			}
			for i, text := range people {
				add(text, trust.User, i)
			}
			for _, text := range foreign {
				add(text, trust.Foreign, len(people))
			}
			add("Carla likes black tea.", trust.Foreign, -1)
			r := w.dream(Options{})
			for _, text := range people {
				e := w.byID(ids[text])
				for _, other := range []string{e.By} {
					if other != "" && w.byID(other).Integrity < trust.User {
						t.Errorf("%q is %s now, and %q stands for it", text, e.State, w.byID(other).Text)
					}
				}
			}
			if e := w.byID(ids["Carla likes black tea."]); e.State != memory.Merged || e.By != ids["Carla likes black tea, with milk."] {
				t.Errorf("what a person says too: %+v", e)
			}
			for _, q := range r.Questions {
				if slices.Contains(foreign, q.FirstText) || slices.Contains(foreign, q.SecondText) {
					t.Errorf("the person is asked about foreign text: %+v", q)
				}
			}
		})
	}
}
