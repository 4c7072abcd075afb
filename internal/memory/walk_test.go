package memory

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestNothingIsLostOrComesBack: whatever is said, edited by hand, undone and
// forgotten, in whatever order, by two processes that are restarted in between:
// exactly what should be known is known, in the prompt and in the file.
// Holds W9.
func TestNothingIsLostOrComesBack(t *testing.T) {
	t.Parallel()
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		w := &walker{t: t, rt: rt, dir: filepath.Join(dir, strconv.Itoa(runs)), by: map[string]string{}}
		w.stores[0], w.stores[1] = openAt(t, w.dir), openAt(t, w.dir)
		defer func() { _ = w.stores[0].db.Close(); _ = w.stores[1].db.Close() }()
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			w.step()
		}
		w.look()
		w.stores[0] = openAt(t, w.dir)
		w.look()
	})
}

type walker struct {
	t      *testing.T
	rt     *rapid.T
	dir    string
	stores [2]*Store
	known  []string          // what should be known, in any order
	past   [][]string        // what was, before each change that can be undone
	by     map[string]string // what is to be shown for it while that is shown itself
	night  []Step            // that put two together last
	gone   []string          // forgotten
	unseen bool              // there is a hand edit nobody looked at yet
	number int
}

func (w *walker) store() *Store { return w.stores[rapid.IntRange(0, 1).Draw(w.rt, "process")] }

func (w *walker) fresh() string {
	w.number++
	return fmt.Sprintf("%s number %d", []string{"tea", "# hash", `\# slash`, "Größe", "茶"}[w.number%5], w.number)
}

func (w *walker) did(known []string) {
	w.past = append(w.past, w.known)
	w.known = known
}

func (w *walker) pick() string { return rapid.SampledFrom(w.shown()).Draw(w.rt, "which") }

// member reports whether another text is shown for text.
func (w *walker) member(text string) bool {
	head := w.by[text]
	return head != "" && slices.Contains(w.known, head) && w.by[head] == ""
}

// shown is what prompts and files should show.
func (w *walker) shown() []string { return slices.DeleteFunc(slices.Clone(w.known), w.member) }

// all is text and its members.
func (w *walker) all(text string) []string {
	return slices.DeleteFunc(slices.Clone(w.known), func(s string) bool { return s != text && !(w.by[s] == text && w.member(s)) })
}

// but is what is known without texts.
func (w *walker) but(texts []string) []string {
	return slices.DeleteFunc(slices.Clone(w.known), func(s string) bool { return slices.Contains(texts, s) })
}

// group does in one night what a model may say of two lines, and takes that night back.
func (w *walker) group(s *Store, what int) {
	ctx := w.t.Context()
	if what == 12 {
		one := w.pick()
		two := rapid.SampledFrom(without(w.shown(), one)).Draw(w.rt, "the same")
		e, by := must(s.Get(ctx, everything, w.find(s, one)))(w.t), must(s.Get(ctx, everything, w.find(s, two)))(w.t)
		w.number++
		batch := fmt.Sprint("night ", w.number)
		done, err := s.Apply(ctx, batch, []Step{{GroupStep, e.ID, e.Rev, by.ID, by.Rev}}, nil)
		w.no(err)
		if len(done.Done) == 1 {
			w.by[one], w.by[two] = two, ""
			w.night = append(done.Done, Step{ID: batch, By: one})
		}
		return
	}
	_, left, err := s.UndoRun(ctx, w.night[1].ID, nil)
	w.no(err)
	if !slices.ContainsFunc(left, func(l Left) bool { return l.ID == w.night[0].ID }) {
		e := must(s.Get(ctx, everything, w.night[0].ID))(w.t)
		w.by[w.night[1].By] = ""
		if e.By != "" {
			w.by[w.night[1].By] = must(s.Get(ctx, everything, e.By))(w.t).Text
		}
	}
	w.night = nil
}

func (w *walker) find(s *Store, text string) string {
	all, err := s.Entries(w.t.Context(), Private(owner))
	if err != nil {
		w.rt.Fatal(err)
	}
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Text == text })
	if i < 0 {
		w.rt.Fatalf("%q is not known", text)
	}
	return all[i].ID
}

func (w *walker) no(err error) {
	if err != nil {
		w.rt.Fatal(err)
	}
}

func without(all []string, text string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == text })
}

// lines is the file, with a comment, so that one without entries is not empty.
func (w *walker) lines() []string {
	data, err := readAll(filepath.Join(w.dir, "MEMORIES.txt"))
	if err != nil {
		return []string{"# mine"}
	}
	return strings.Split(strings.TrimRight(string(data), "\n"), "\n")
}

func (w *walker) save(lines []string) {
	put(w.t, w.stores[0], Private(owner), strings.Join(lines, "\n")+"\n")
	w.unseen = true
}

func (w *walker) step() {
	ctx, s := w.t.Context(), w.store()
	me := Access{Actor: owner, Scopes: []Scope{Private(owner)}}
	what := rapid.IntRange(0, 13).Draw(w.rt, "step")
	if what >= 2 && what <= 4 && w.unseen { // two edits that are looked at together are one change
		w.look()
	}
	switch {
	case what <= 1:
		text := w.fresh()
		if _, _, err := s.Add(ctx, Entry{Scope: Private(owner), Text: text, Source: Assistant}, owner); err != nil {
			w.rt.Fatal(err)
		}
		w.did(append(slices.Clone(w.known), text))
		w.unseen = false
	case what == 2: // a line more, somewhere
		text, lines := w.fresh(), w.lines()
		at := rapid.IntRange(0, len(lines)).Draw(w.rt, "at")
		w.save(slices.Insert(lines, at, toLine(text)))
		w.did(append(slices.Clone(w.known), text))
	case what == 3 && len(w.known) > 0: // a line less
		text := w.pick()
		w.save(without(w.lines(), toLine(text)))
		w.did(w.but(w.all(text)))
	case what == 4 && len(w.known) > 0: // a line corrected
		text := w.pick()
		lines := w.lines()
		lines[slices.Index(lines, toLine(text))] = toLine(text + " more")
		w.save(lines)
		w.did(append(w.but(w.all(text)), text+" more"))
	case what == 5:
		w.look()
	case what == 6:
		_, err := s.Undo(ctx, me, "")
		w.unseen = false
		if len(w.past) == 0 {
			if !errors.Is(err, ErrNothing) && !errors.Is(err, ErrGone) {
				w.rt.Fatalf("nothing was done, but: %v", err)
			}
			return
		}
		if errors.Is(err, ErrChanged) && len(w.by) > 0 { // it was put together with another since
			return
		}
		w.no(err)
		w.known, w.past = w.past[len(w.past)-1], w.past[:len(w.past)-1]
	case what == 7 && len(w.known) > 0:
		text := w.pick()
		next := w.fresh()
		_, err := s.Supersede(ctx, me, w.find(s, text), next)
		w.no(err)
		w.did(append(w.but(w.all(text)), next))
		w.unseen = false
	case what == 8 && len(w.known) > 0:
		text := w.pick()
		w.no(s.Retire(ctx, me, w.find(s, text)))
		w.did(w.but(w.all(text)))
		w.unseen = false
	case what == 9 && len(w.known) > 0:
		text := w.pick()
		_, err := s.Forget(ctx, me, w.find(s, text))
		w.no(err)
		w.gone = append(w.gone, w.all(text)...)
		w.known, w.past, w.unseen = w.but(w.all(text)), nil, false // nobody steps back behind that
	case what == 12 && len(w.shown()) > 1, what == 13 && w.night != nil:
		w.group(s, what)
		w.unseen = false
	case what == 10:
		i := rapid.IntRange(0, 1).Draw(w.rt, "restarted")
		_ = w.stores[i].db.Close()
		w.stores[i] = openAt(w.t, w.dir)
		w.unseen = false
	}
}

// look is an inference in both processes.
func (w *walker) look() {
	w.unseen = false
	want := slices.Sorted(slices.Values(w.shown()))
	for i, s := range w.stores {
		got := strings.Split(texts(w.t, s, Private(owner)), "|")
		slices.Sort(got)
		if strings.Join(got, "|") != strings.Join(want, "|") {
			w.rt.Fatalf("process %d knows %q, and should know %q", i, got, want)
		}
	}
	var shown []string
	for _, line := range w.lines() {
		if text := show([]byte(line)); text != "" {
			shown = append(shown, text)
		}
	}
	slices.Sort(shown)
	if strings.Join(shown, "|") != strings.Join(want, "|") {
		w.rt.Fatalf("the file shows %q, and should show %q", shown, want)
	}
	for _, text := range w.gone {
		if slices.Contains(w.known, text) {
			continue
		}
		for _, l := range w.lines() {
			if l == toLine(text) {
				w.rt.Fatalf("%q is back", text)
			}
		}
	}
}
