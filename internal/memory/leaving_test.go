package memory

import (
	"fmt"
	"strings"
	"testing"
)

// TestKilledBetweenFileAndNote: a file that shows a part of what is known is written, and the
// program is killed before that is noted, or noted and not written: what gave its place to
// others still counts, and what a person takes out of the file does not.
func TestKilledBetweenFileAndNote(t *testing.T) {
	for _, point := range []string{"rename", "rendered"} {
		t.Run(point, func(t *testing.T) {
			c := Config{Dir: t.TempDir(), Owner: owner, FileLines: 4}
			s := openWith(t, c)
			for i := range 12 {
				stored := false
				s.fault = func(at string) {
					if stored = stored || at == "committed"; stored && at == point && i > 3 {
						panic("killed")
					}
				}
				func() {
					defer func() {
						if p := recover(); (p != nil) != (i > 3) {
							t.Errorf("%d: %v", i, p)
						}
					}()
					if _, _, err := s.Append(t.Context(), Private(owner), fmt.Sprintf("Fact number %d is of its own kind.", i)); err != nil {
						t.Error(err)
					}
				}()
				s = openWith(t, c)
				if _, _, err := s.Append(t.Context(), Private(owner), fmt.Sprintf("Fact number %d is of its own kind.", i)); err != nil { // perhaps it had not come so far
					t.Fatal(err)
				}
				if all, err := s.List(t.Context(), everything, Filter{}); err != nil || len(all) != i+1 {
					t.Fatalf("%d of %d facts count, %v", len(all), i+1, err)
				}
			}
			shown := onDisk(t, s, Private(owner))
			if strings.Count(shown, "Fact number") != 4 || !strings.Contains(shown, "Fact number 11") {
				t.Errorf("%q", shown)
			}
			put(t, s, Private(owner), strings.Replace(shown, "Fact number 11 is of its own kind.\n", "", 1))
			texts(t, s, Private(owner))
			if all, err := s.List(t.Context(), everything, Filter{}); err != nil || len(all) != 11 {
				t.Errorf("%d facts count, %v", len(all), err)
			}
		})
	}
}
