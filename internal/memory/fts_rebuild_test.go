package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// unused lists the tables of indexes that are not in use.
func unused(t *testing.T, f *FTS) []string {
	t.Helper()
	names, err := list[string](t.Context(), f.db, `SELECT name FROM sqlite_schema WHERE name GLOB 'fresh_*' OR name GLOB 'stale_*'`)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func filled(t *testing.T) *Store {
	t.Helper()
	s := openWith(t, Config{Dir: t.TempDir(), Owner: owner, Backend: FTS5})
	for n := range 6 {
		add(t, s, Private(owner), fmt.Sprintf("the heron number %d is grey", n))
		if err := s.Hear(t.Context(), Turn{Scope: Private(owner), Event: fmt.Sprint("$", n), Sender: owner, Text: fmt.Sprintf("the boat number %d", n), At: today, Conversation: "c", Seq: n}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// What others write while the index is made anew is in the new one, too.
func TestRebuildBesideWriters(t *testing.T) {
	s := filled(t)
	told := 0
	if err := s.index.Rebuild(t.Context(), func(int, int) {
		told++
		one := func(words string) string {
			found, _, err := s.Find(t.Context(), everything, words)
			if err != nil || len(found) != 1 {
				t.Fatalf("%q: %+v, %v", words, found, err)
			}
			return found[0].ID
		}
		if told > 1 {
			return
		}
		add(t, s, Private(owner), "the pelican is white")
		_, err := s.Supersede(t.Context(), everything, one("number 1"), "the heron number 1 is blue")
		if err := errors.Join(err, s.Retire(t.Context(), everything, one("number 2"))); err != nil {
			t.Fatal(err)
		}
		for n, text := range map[int]string{3: "the ship number 3", 9: "the boat number 9"} { // an edit, and a new one
			if err := s.Hear(t.Context(), Turn{Scope: Private(owner), Event: fmt.Sprint("$", n), Sender: owner, Text: text, At: today, Conversation: "c", Seq: n}); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(unused(t, s.index)); n == 0 {
			t.Error("there is nothing that could miss it")
		}
	}); err != nil || told != 2 {
		t.Fatalf("%v, told %d times", err, told)
	}
	sound(t, s)
	if left := unused(t, s.index); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if hits, err := s.index.Search(t.Context(), Query{Text: "pelican", Scopes: []Scope{Private(owner)}}); err != nil || len(hits) != 1 {
		t.Errorf("%+v, %v", hits, err)
	}
}

// However far it came, an index that was cut off while it was made harms nobody, is
// removed by the next, and keeps nothing that was forgotten.
func TestRebuildThatIsCutOff(t *testing.T) {
	t.Parallel()
	for upTo := range 5 {
		for _, then := range []string{"again", "forget", "unhear"} {
			t.Run(fmt.Sprint(upTo, " steps, ", then), func(t *testing.T) {
				s := filled(t)
				conn, free, err := roomy(t.Context(), s.db)
				if err != nil {
					t.Fatal(err)
				}
				r := rebuild{f: s.index, conn: conn, token: "x"}
				for _, step := range []func(context.Context, *sql.Tx) error{
					r.begin,
					func(ctx context.Context, tx *sql.Tx) error {
						all, err := sources(ctx, tx, entrySource)
						return errors.Join(err, r.write(ctx, tx, nil, s.index.words.makeAll(all)))
					},
					func(ctx context.Context, tx *sql.Tx) error {
						all, err := sources(ctx, tx, turnSource)
						return errors.Join(err, r.write(ctx, tx, nil, s.index.words.makeAll(all)))
					},
					r.swap,
				}[:min(upTo, 4)] {
					if err := r.in(t.Context(), func(tx *sql.Tx) error { return step(t.Context(), tx) }); err != nil {
						t.Fatal(err)
					}
				}
				free()
				sound(t, s)
				if upTo > 0 && len(unused(t, s.index)) == 0 {
					t.Fatal("nothing is left")
				}
				switch then {
				case "again":
					err = s.index.Rebuild(t.Context(), nil)
				case "forget":
					all, _, failed := s.Find(t.Context(), everything, "number 4")
					if failed != nil {
						t.Fatal(failed)
					}
					_, err = s.Forget(t.Context(), everything, all[0].ID)
				case "unhear":
					_, err = s.Unhear(t.Context(), "$4")
				}
				if left := unused(t, s.index); err != nil || len(left) > 0 {
					t.Errorf("left: %q, %v", left, err)
				}
				sound(t, s)
			})
		}
	}
}

// Who forgets something does not wait for the index that is being made, which knows it:
// that is begun anew.
func TestForgettingWhileTheIndexIsMade(t *testing.T) {
	s := filled(t)
	e := noted(t, s, Private(owner), "the safe is behind the zanzibarium", owner)
	forgotten := false
	if err := s.index.Rebuild(t.Context(), func(int, int) {
		if forgotten {
			return
		}
		forgotten = true
		if _, err := s.Forget(t.Context(), everything, e.ID); err != nil {
			t.Fatal(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	sound(t, s)
	if left := unused(t, s.index); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if n := occurrences(t, filepath.Join(s.dir, "bot.db"), "zanzibar"); n > 0 {
		t.Errorf("the word is still %d times in the database", n)
	}
}

// When very much goes while the index is made, it is quicker to begin anew.
func TestMuchGoesWhileTheIndexIsMade(t *testing.T) {
	t.Parallel()
	s := filled(t)
	lines := ""
	for n := range mostGone + 1 {
		lines += fmt.Sprintf("{\"text\":\"pelican %d\",\"conversation\":\"p\",\"seq\":%d}\n", n, n)
	}
	got, err := newImporter(s).Import(t.Context(), "x", strings.NewReader(lines))
	if err != nil {
		t.Fatal(err)
	}
	var told []int
	if err := s.index.Rebuild(t.Context(), func(done, total int) {
		if told = append(told, total); len(told) > 1 {
			return
		}
		if _, err := s.Undo(t.Context(), everything, got.Batch); err != nil {
			t.Fatal(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(told) != 4 { // entries and messages, twice
		t.Errorf("told %v", told)
	}
	sound(t, s)
}
