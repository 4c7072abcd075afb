package dream

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory"
)

// TestOneLineAfterTheNight: two lines of MEMORIES.txt that mean the same are one afterwards,
// in the file and in what a prompt shows, whatever the backend; the report names both, and
// taking the night back gives both again.
func TestOneLineAfterTheNight(t *testing.T) {
	const less, more = "Anna is fond of green tea.", "Anna is really fond of tea that is green."
	for _, b := range []memory.Backend{memory.FlatFile, memory.FTS5, memory.LocalVector} {
		t.Run(string(b), func(t *testing.T) {
			dir := t.TempDir()
			db, _ := openStore(t, dir)
			s, err := memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: owner, Backend: b})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "MEMORIES.txt")
			if err := os.WriteFile(path, []byte("# mine\n"+less+"\nBen plays chess.\n"+more+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w := worldOf(t, dir, db, s, nil, func(_ *world, prompt string) (string, error) {
				return answerAll(prompt, func(x, y string) string {
					if strings.Contains(x, "Anna") && strings.Contains(y, "Anna") {
						return "duplicate"
					}
					return "neither"
				}), nil
			})
			look := func(want string) {
				t.Helper()
				all, err := s.Entries(t.Context(), memory.Private(owner))
				if err != nil {
					t.Fatal(err)
				}
				shown := ""
				for _, e := range all {
					shown += e.Text + "\n"
				}
				file, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if shown != want || string(file) != "# mine\n"+want {
					t.Errorf("the prompt shows\n%sthe file has\n%swant\n%s", shown, file, want)
				}
			}
			look(less + "\nBen plays chess.\n" + more + "\n")
			r := w.dream(Options{})
			if len(r.Grouped) != 1 || r.Grouped[0].Text != less || r.Grouped[0].ByText != more {
				t.Fatalf("%+v", r)
			}
			for _, text := range []string{less, more} {
				if !strings.Contains(r.Text(time.UTC), text) {
					t.Errorf("the report does not name %q:\n%s", text, r.Text(time.UTC))
				}
			}
			look("Ben plays chess.\n" + more + "\n")
			if e := w.byID(r.Grouped[0].By); e.Source != memory.DreamingMerge {
				t.Errorf("%+v", e)
			}
			if again := w.dream(Options{}); again.State == AppliedState {
				t.Errorf("the next night does it again: %+v", again)
			}
			if _, err := w.d.Undo(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			look("Ben plays chess.\n" + more + "\n" + less + "\n")
			if again := w.dream(Options{}); len(again.Grouped) > 0 {
				t.Errorf("what was parted is put together again: %+v", again)
			}
		})
	}
}

// TestWhoIsShown: the fuller text is shown; what a person wrote is not hidden behind what was
// only heard, nor what is sure behind a guess, nor a name or number behind a text without it, nor
// one of two short answers behind the other.
func TestWhoIsShown(t *testing.T) {
	entry := func(text string, by memory.Source) memory.Entry {
		return memory.Entry{ID: text + string(by), Scope: memory.Private(owner), Text: text, Source: by, State: memory.Active}
	}
	full, short := entry("she enjoys green tea in the evening", memory.Harvest), entry("she likes green tea", memory.Harvest)
	names := newNamer()
	for i, c := range []struct {
		head, member memory.Entry
		want         bool
	}{
		{full, short, true}, {short, full, false},
		{full, entry("she likes green tea", memory.UserExplicit), false}, {entry("she enjoys green tea in the evening", memory.FromFile), short, true},
		{entry("perhaps she enjoys green tea in the evening", memory.Harvest), short, false},
		{full, entry("she likes 3 green teas", memory.Harvest), false},
		{entry("Quentin likes goulash.", memory.Harvest), entry("Quentin likes sushi.", memory.Harvest), false},
		{entry("Quentin adores sushi.", memory.Harvest), entry("Quentin likes sushi.", memory.Harvest), true}, {entry("the", memory.Harvest), entry("a", memory.Harvest), true},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			a, b := names.sign(c.head), names.sign(c.member)
			if got := mayStand(&a, &b); got != c.want {
				t.Errorf("%q for %q: %v", c.head.Text, c.member.Text, got)
			}
		})
	}
}
