package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"reverie/internal/memory/lines"
	"reverie/internal/search/qdrant/standin"
	"reverie/internal/search/searchtest"
	"reverie/internal/search/vector"
	"reverie/internal/test/expect"
)

// TestAlwaysSound: whatever is done, in whatever order, the index is what the
// entries ask for, the journal played from its beginning gives the entries, and
// of what was forgotten not one word is left in the data folder.
// Holds L9, W8.
func TestAlwaysSound(t *testing.T) {
	t.Parallel()
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		d := doer{t: t, rt: rt, dir: filepath.Join(dir, strconv.Itoa(runs))}
		d.s = openAt(t, d.dir)
		defer func() { _ = d.s.db.Close() }()
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			d.step()
		}
		expect.OK(rt, indexIsSound(t, OpenFTS(d.s.db)))
		d.replay()
		for _, word := range d.gone {
			if found := traces(t, d.dir, word); len(found) > 0 {
				rt.Fatalf("%s is left in %v", word, found)
			}
		}
	})
}

// TestQdrantAlwaysSound: whatever is done, in whatever order, while the server comes and
// goes: in the end it holds what the entries ask for, and of what was forgotten nothing. So does
// the memory of a process that compares vectors itself.
func TestQdrantAlwaysSound(t *testing.T) {
	t.Parallel()
	dir, runs := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		server, url := stand(t)
		d := doer{t: t, rt: rt, dir: filepath.Join(dir, strconv.Itoa(runs))}
		e := &searchtest.Embedder{Model: "words", Dim: 16}
		db := openAt(t, d.dir).db
		p := openPoints(t, db, e, url)
		d.s = openWith(t, Config{Dir: d.dir, Owner: owner, Backend: "qdrant", Vectors: p.vectors, Server: p.Points})
		defer func() { _ = d.s.db.Close(); _ = db.Close() }()
		all := vector.Filter{Scopes: []Scope{Private(owner), Room(room), Shared}, Past: true}
		expect.Must(p.vectors.Nearest(t.Context(), searchtest.WordVector("anything", 16), all, 1))(t) // so that it keeps them in memory
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			switch rapid.IntRange(0, 5).Draw(rt, "server") {
			case 0:
				server.Break(standin.Refuse(500))
			case 1:
				server.Break(nil)
			case 2:
				complete(t, p.vectors)
				_ = p.Complete(t.Context()) // or not
			case 3:
				for _, name := range server.Collections() {
					server.Drop(name)
				}
				_ = p.Rebuild(t.Context()) // it is seen then
			}
			d.step()
		}
		server.Break(nil)
		complete(t, p.vectors)
		_ = p.Rebuild(t.Context()) // it fails where the collection was lost, and sees that
		expect.OK(t, p.Complete(t.Context()))
		knows(t, p.vectors, db, e)
		verified(t, server, db)
		if got := onServer(t, server, d.s.db); slices.Contains(got, "") {
			rt.Fatalf("the server holds %q", got)
		}
	})
}

type doer struct {
	t    *testing.T
	rt   *rapid.T
	dir  string
	s    *Store
	n    int
	gone []string
	runs int // of dreaming
}

// fresh is a text with a word that stands nowhere else, in any form.
func (d *doer) fresh() string {
	d.n++
	return fmt.Sprintf("the %sov of %s", d.word(d.n), []string{"tea", "Größe", "茶碗"}[d.n%3])
}

func (d *doer) word(n int) string {
	return "zq" + strings.Map(func(r rune) rune { return r - '0' + 'b' }, fmt.Sprintf("%04d", n))
}

func (d *doer) scope() Scope {
	return rapid.SampledFrom([]Scope{Private(owner), Room(room), Shared}).Draw(d.rt, "scope")
}

func (d *doer) step() {
	ctx, s := d.t.Context(), d.s
	me := Access{Actor: owner, All: true, Owner: true}
	what := rapid.IntRange(0, 16).Draw(d.rt, "step")
	switch what {
	case 0:
		d.ok(drop(s.Add(ctx, Entry{Scope: d.scope(), Text: d.fresh(), Source: UserExplicit, Subject: "Anna"}, owner)))
		return
	case 1:
		var lines strings.Builder
		for range rapid.IntRange(1, 6).Draw(d.rt, "lines") {
			fmt.Fprintf(&lines, "{\"text\":%q,\"scope\":%q,\"conversation\":%q,\"seq\":%d}\n", d.fresh(), d.scope(), rapid.SampledFrom([]string{"", "c", "d"}).Draw(d.rt, "conversation"), d.n)
		}
		imported(d.t, s, Private(owner), lines.String())
		return
	case 2:
		put(d.t, s, Private(owner), "# mine\n"+d.fresh()+"\n"+d.fresh()+"\n") // what stood there is taken out
		texts(d.t, s, Private(owner))
		return
	case 3:
		_, err := s.Undo(ctx, me, "")
		d.ok(err)
		return
	case 4:
		d.n++
		d.ok(s.index.IndexTurns(ctx, Turn{Scope: d.scope(), Event: fmt.Sprint("$", d.n%3), Text: "we talk of herons", At: today, Conversation: "c", Seq: d.n}))
		return
	case 5:
		d.ok(OpenFTS(s.db).Unhear(ctx, fmt.Sprint("$", d.n%3)))
		return
	case 13:
		d.edit()
		return
	case 14:
		if d.runs > 0 {
			_, _, err := s.UndoRun(ctx, fmt.Sprint("night ", rapid.IntRange(1, d.runs).Draw(d.rt, "night")), nil)
			d.ok(err)
		}
		return
	case 15:
		d.ok(s.db.Close())
		d.s = openAt(d.t, d.dir)
		return
	}
	all, err := s.List(ctx, me, Filter{})
	d.ok(err)
	if len(all) == 0 {
		return
	}
	e := rapid.SampledFrom(all).Draw(d.rt, "entry")
	switch what {
	case 6:
		d.ok(errOf(s.Share(ctx, me, e.ID)))
	case 7:
		d.ok(errOf(s.Unshare(ctx, me, e.ID)))
	case 8:
		d.ok(errOf(s.Supersede(ctx, me, e.ID, d.fresh())))
	case 9:
		d.ok(s.Retire(ctx, me, e.ID))
	case 10:
		d.ok(s.Pin(ctx, me, e.ID, !e.Pinned))
	case 11:
		d.ok(errOf(s.Forget(ctx, me, e.ID)))
		for n := range d.n + 1 {
			if strings.Contains(e.Text, d.word(n)) {
				d.gone = append(d.gone, d.word(n))
			}
		}
	case 16:
		d.night(e, all)
	}
}

// edit makes a line of a file longer, which is a correction of it.
func (d *doer) edit() {
	lines := strings.Split(texts(d.t, d.s, Private(owner)), "|")
	n := rapid.IntRange(0, len(lines)-1).Draw(d.rt, "line")
	if lines[n] == "" {
		return
	}
	d.n++
	old := onDisk(d.t, d.s, Private(owner))
	put(d.t, d.s, Private(owner), strings.Replace(old, lines[n], lines[n]+" and "+d.word(d.n), 1))
	texts(d.t, d.s, Private(owner))
}

// night does what a dream may with e and up to two others.
func (d *doer) night(e Entry, all []Entry) {
	var steps []Step
	for range rapid.IntRange(1, 3).Draw(d.rt, "steps of the night") {
		by := rapid.SampledFrom(all).Draw(d.rt, "by")
		kind := rapid.SampledFrom([]StepKind{MergeStep, SupersedeStep, ArchiveStep, GroupStep}).Draw(d.rt, "kind")
		steps = append(steps, Step{Kind: kind, ID: e.ID, Rev: e.Rev, By: by.ID, ByRev: by.Rev})
		e = by
	}
	d.runs++
	d.ok(errOf(d.s.Apply(d.t.Context(), fmt.Sprint("night ", d.runs), steps, nil)))
}

// ok lets pass what is no fault of the store.
func (d *doer) ok(err error) {
	if err != nil && !errors.Is(err, ErrNothing) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrNotYours) {
		d.rt.Fatal(err)
	}
}

func errOf[T any](_ T, err error) error { return err }

func drop[T any](_ T, _ bool, err error) error { return err }

// replay plays the journal and compares.
func (d *doer) replay() {
	ctx := d.t.Context()
	journal, err := selectOps(ctx, d.s.db, `ORDER BY seq`)
	d.ok(err)
	now, gone := map[string]string{}, map[string]bool{}
	for _, o := range journal {
		if o.Op == "forget" {
			gone[o.Entry] = true
		}
	}
	for _, o := range journal {
		if gone[o.Entry] {
			if o.Before != nil || o.After != nil {
				d.rt.Fatalf("operation %d still holds what was forgotten", o.Seq)
			}
			continue
		}
		before := ""
		if o.Before != nil {
			before = asJSON(*o.Before)
		}
		if before != now[o.Entry] {
			d.rt.Fatalf("operation %d (%s) begins with\n%s, but it was\n%s", o.Seq, o.Op, before, now[o.Entry])
		}
		now[o.Entry] = asJSON(*o.After)
	}
	all, err := selectEntries(ctx, d.s.db, `ORDER BY n`)
	d.ok(err)
	for _, e := range all {
		if gone[e.ID] != (e.State == Forgotten) || gone[e.ID] && e.Text+e.Subject+e.Quote+e.Ref+e.Conversation != "" {
			d.rt.Fatalf("%+v; forgotten: %v", e, gone[e.ID])
		}
		if !gone[e.ID] && asJSON(e) != now[e.ID] {
			d.rt.Fatalf("the entry is\n%s, and the journal says\n%s", asJSON(e), now[e.ID])
		}
		delete(now, e.ID)
	}
	if len(now) > 0 {
		d.rt.Fatalf("the journal knows entries that are not there: %v", now)
	}
}

// asJSON is e without what changes with every operation.
func asJSON(e Entry) string {
	e.UpdatedAt, e.Rev = time.Time{}, 0
	b, _ := json.Marshal(e)
	return string(b)
}

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
		e, by := expect.Must(s.Get(ctx, everything, w.find(s, one)))(w.t), expect.Must(s.Get(ctx, everything, w.find(s, two)))(w.t)
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
	if !slices.ContainsFunc(left, func(l Skipped) bool { return l.ID == w.night[0].ID }) {
		e := expect.Must(s.Get(ctx, everything, w.night[0].ID))(w.t)
		w.by[w.night[1].By] = ""
		if e.By != "" {
			w.by[w.night[1].By] = expect.Must(s.Get(ctx, everything, e.By))(w.t).Text
		}
	}
	w.night = nil
}

func (w *walker) find(s *Store, text string) string {
	all := expect.Must(s.WorkingSet(w.t.Context(), Private(owner)))(w.rt)
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Text == text })
	if i < 0 {
		w.rt.Fatalf("%q is not known", text)
	}
	return all[i].ID
}

func (w *walker) no(err error) {
	expect.OK(w.rt, err)
}

func without(all []string, text string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == text })
}

// lines is the file, with a comment, so that one without entries is not empty.
func (w *walker) lines() []string {
	data, err := os.ReadFile(filepath.Join(w.dir, "MEMORIES.txt"))
	if err != nil {
		return []string{"# mine"}
	}
	return strings.Split(strings.TrimRight(string(data), "\n"), "\n")
}

func (w *walker) save(now []string) {
	put(w.t, w.stores[0], Private(owner), strings.Join(now, "\n")+"\n")
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
		text, there := w.fresh(), w.lines()
		at := rapid.IntRange(0, len(there)).Draw(w.rt, "at")
		w.save(slices.Insert(there, at, lines.Escape(text)))
		w.did(append(slices.Clone(w.known), text))
	case what == 3 && len(w.known) > 0: // a line less
		text := w.pick()
		w.save(without(w.lines(), lines.Escape(text)))
		w.did(w.but(w.all(text)))
	case what == 4 && len(w.known) > 0: // a line corrected
		text := w.pick()
		there := w.lines()
		there[slices.Index(there, lines.Escape(text))] = lines.Escape(text + " more")
		w.save(there)
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
		if text := lines.Text([]byte(line)); text != "" {
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
			if l == lines.Escape(text) {
				w.rt.Fatalf("%q is back", text)
			}
		}
	}
}
