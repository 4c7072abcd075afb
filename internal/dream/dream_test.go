package dream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/dream/report"
	"reverie/internal/memory"
	"reverie/internal/store"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// home is one fact and what took its place.
func home(by memory.Source) []fact {
	return []fact{
		{key: "home", value: "Berlin", old: true, at: 1, by: by, texts: []string{"Anna lives in Berlin."}},
		{key: "home", value: "Hamburg", at: 40, texts: []string{"Anna has moved to Hamburg."}},
		{key: "tea", at: 3, texts: []string{"Ben likes green tea.", "Ben likes green tea, with milk."}},
		{key: "code", at: 4, texts: []string{"The garage door code is 4711."}},
	}
}

// rows is all that is stored of memories.
func (w *world) rows() string {
	w.t.Helper()
	return dump(w.t, w.d.cfg.DB, `SELECT * FROM memory ORDER BY id`)
}

// TestUndo: a dream that is taken back leaves everything as it was, and is not dreamt again.
func TestUndo(t *testing.T) {
	w := newWorld(t, home(""), perfect)
	before := w.rows()
	if r := w.dream(Options{DryRun: true}); len(r.Merged) != 1 || len(r.Superseded) != 1 || w.rows() != before {
		t.Fatalf("dry run: %+v", r)
	}
	r := w.dream(Options{Phases: Phases}) // so that the next one looks at everything again
	if r.State != report.Applied || len(r.Merged) != 1 || len(r.Superseded) != 1 || w.rows() == before {
		t.Fatalf("%+v", r)
	}
	back, err := w.d.Undo(t.Context(), "")
	if err != nil || back.Run != r.Run || len(back.Back) != 2 {
		t.Fatalf("%+v, %v", back, err)
	}
	if diff := cmp.Diff(before, w.rows()); diff != "" {
		t.Error(diff)
	}
	w.now = w.now.Add(24 * time.Hour)
	if r := w.dream(Options{}); r.State != report.Nothing || w.rows() != before {
		t.Errorf("it is dreamt again: %+v", r)
	}
	for _, run := range []string{"", r.Run, "none"} {
		if _, err := w.d.Undo(t.Context(), run); !errors.Is(err, ErrNothing) {
			t.Errorf("undo %q: %v", run, err)
		}
	}
}

// TestReportAndForget: the report tells what was done, word for word; what is
// forgotten afterwards is nowhere in the data folder.
func TestReportAndForget(t *testing.T) {
	w := newWorld(t, home(""), perfect)
	if _, err := w.store.WorkingSet(t.Context(), memory.Private(owner)); err != nil { // the file
		t.Fatal(err)
	}
	r := w.dream(Options{})
	b := expect.Must(os.ReadFile(filepath.Join(w.dir, report.Folder, w.now.UTC().Format(time.DateOnly)+".md")))(t)
	for _, want := range []string{"1 merged, 1 superseded.", "- Anna lives in Berlin. (", "holds since: Anna has moved to Hamburg. (", "bot dream undo " + r.Run, "asked 1 times"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%q is missing in\n%s", want, b)
		}
	}
	info, err := os.Stat(filepath.Join(w.dir, report.Folder, r.Run+".db"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy: %v, %v", info, err)
	}
	expect.Must(w.store.Forget(t.Context(), everything, w.active()["Anna has moved to Hamburg."].ID))(t)
	for _, gone := range []string{"lives in Berlin", "moved to Hamburg"} {
		err := filepath.WalkDir(w.dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			if bytes.Contains(b, []byte(gone)) {
				t.Errorf("%q is in %s", gone, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if b, err = os.ReadFile(filepath.Join(w.dir, report.Folder, w.now.UTC().Format(time.DateOnly)+".md")); err != nil || !strings.Contains(string(b), "green tea") {
		t.Errorf("the rest of the report is gone: %s, %v", b, err)
	}
}

// TestQuestions: what dates and origin cannot decide is asked, once, and nothing is done.
// Holds L5.
func TestQuestions(t *testing.T) {
	same := home("")
	same[1].at = same[0].at
	ofHome := func(v string) func(*world, string) (string, error) {
		return func(w *world, prompt string) (string, error) {
			return answerAll(prompt, func(a, b string) string {
				if w.of[a].key != "home" || w.of[b].key != "home" {
					return "neither"
				}
				return v
			}), nil
		}
	}
	for _, c := range []struct {
		name  string
		facts []fact
		judge func(*world, string) (string, error)
		pin   bool
	}{
		{"same time", same, ofHome("keep_second"), false},
		{"a person said it", home(memory.UserExplicit), ofHome("keep_second"), false},
		{"pinned", home(""), ofHome("keep_second"), true},
		{"the older one", home(""), ofHome("keep_first"), false},
		{"unsure", home(""), ofHome("unsure"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.facts, c.judge)
			if c.pin {
				w.exec(`UPDATE memory SET pinned = 1 WHERE id = ?`, w.active()["Anna lives in Berlin."].ID)
			}
			r := w.dream(Options{Phases: []Phase{Contradiction}})
			if len(r.Questions) != 1 || len(r.Superseded) != 0 || w.active()["Anna lives in Berlin."].ID == "" {
				t.Errorf("%+v", r)
			}
			if r := w.dream(Options{Phases: []Phase{Contradiction}}); len(r.Questions) != 0 {
				t.Errorf("asked again: %+v", r.Questions)
			}
		})
	}
}

// TestScopesStayApart: nothing of one scope is compared with, or shown to a model
// beside, what is of another.
func TestScopesStayApart(t *testing.T) {
	w := newWorld(t, home(""), func(w *world, prompt string) (string, error) {
		if strings.Contains(prompt, "Hamburg") && (strings.Contains(prompt, "Zoe") || strings.Contains(prompt, "Paris")) {
			t.Errorf("two scopes in one request:\n%s", prompt)
		}
		return answerAll(prompt, func(a, b string) string {
			if a[:3] == b[:3] { // of one person
				return "keep_second"
			}
			return "neither"
		}), nil
	})
	guest := memory.Private("@guest:example.org")
	for i, text := range []string{"Anna lives in Berlin.", "Zoe lives in Oslo.", "Zoe has moved to Bergen.", "Anna has moved to Paris."} {
		w.know(memory.Entry{Scope: guest, Text: text, Integrity: trust.User, ObservedAt: day0.AddDate(0, i, 0)})
	}
	w.know(memory.Entry{Scope: memory.Shared, Text: "Anna lives in Rome.", ObservedAt: day0})
	r := w.dream(Options{})
	if len(r.Superseded) != 3 || len(r.Merged) != 1 {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Superseded {
		expect.Equal(t, w.byID(c.ID).Scope, w.byID(c.By).Scope, "%q and %q are of two scopes", c.Text, c.ByText)
	}
}

// TestStale: only what happened or was concluded, long ago and of no use, is put away,
// a little each night.
// Holds L1.
func TestStale(t *testing.T) {
	w := newWorld(t, nil, nil)
	w.now = time.Now().AddDate(1, 0, 0)
	old := w.now.AddDate(0, 0, -200)
	add := func(text string, kind memory.Kind, source memory.Source, at time.Time) memory.Entry {
		e := w.know(memory.Entry{Text: text, Kind: kind, Source: source, ObservedAt: at})
		return e
	}
	add("we saw a heron", memory.Happening, memory.Harvest, old)
	add("it rained on the way", memory.Happening, memory.Harvest, old)
	kept := []memory.Entry{
		add("peanuts are deadly for Ben", memory.Fact, memory.Harvest, old), add("we married", memory.Happening, memory.UserExplicit, old),
		add("the roof leaked", memory.Happening, memory.Harvest, w.now.AddDate(0, 0, -100)), add("the boiler broke", memory.Happening, memory.Harvest, old),
		add("the fence fell", memory.Happening, memory.Harvest, old),
	}
	w.exec(`UPDATE memory SET pinned = 1 WHERE id = ?`, kept[3].ID)
	w.exec(`UPDATE memory SET hits = 1, last_hit = ? WHERE id = ?`, w.now.AddDate(0, 0, -10).UnixMilli(), kept[4].ID)
	for night, want := range []int{1, 1, 0} {
		if r := w.dream(Options{}); len(r.Archived) != want {
			t.Errorf("night %d: %+v", night, r.Archived)
		}
	}
	for _, e := range kept {
		expect.Equal(t, w.byID(e.ID).State, memory.Active, "the state of %q", e.Text)
	}
}

// TestOneAtATime: while one dreams no other does, in this process or in another one.
// That the lock ends with its process is seen by TestKilledWhileDreaming.
func TestOneAtATime(t *testing.T) {
	var second error
	w := newWorld(t, home(""), func(w *world, prompt string) (string, error) {
		if w.calls == 1 {
			_, second = Open(w.d.cfg).Dream(t.Context(), Options{})
		}
		return perfect(w, prompt)
	})
	w.dream(Options{})
	if !errors.Is(second, ErrBusy) {
		t.Errorf("two dreams at once: %v", second)
	}
}

// TestDreamMergesTheIndex: a dream leaves one segment.
func TestDreamMergesTheIndex(t *testing.T) {
	w := newWorld(t, home(""), nil)
	for i := range 9 {
		_, _, err := w.store.Add(t.Context(), memory.Entry{Scope: memory.Shared, Text: fmt.Sprintf("The heron has %d chicks.", i), Source: memory.UserExplicit, Integrity: trust.Owner}, "@a:b")
		expect.OK(t, err)
	}
	w.dream(Options{})
	expect.Equal(t, expect.Must(store.Value[int](t.Context(), w.d.cfg.DB, `SELECT count(DISTINCT segid) FROM index_fts_idx`))(t), 1, "segments")
}

// TestWithoutModel: what needs a model that answers, in a form that can be read, waits; the rest is done,
// and the report says so.
func TestWithoutModel(t *testing.T) {
	for name, judge := range map[string]func(*world, string) (string, error){
		"none": nil, "down": func(*world, string) (string, error) { return "", errors.New("connection refused") }, "budget": perfect,
		"garbage":             func(*world, string) (string, error) { return "I'd say they are [all] fine, {pair}!", nil },
		"cut off by a person": func(*world, string) (string, error) { return "", context.DeadlineExceeded },
	} {
		w := newWorld(t, home(""), judge)
		if name == "budget" {
			w.d.cfg.Budget.Tokens = 1
			w.d.cfg.Budget.Calls = -1
		}
		r := w.dream(Options{})
		if len(r.Merged) != 1 || len(r.Superseded) != 0 || len(r.Notes) == 0 {
			t.Errorf("%s: %+v", name, r)
		}
		if name == "garbage" {
			if !strings.Contains(strings.Join(r.Notes, "\n"), "could not be read") {
				t.Errorf("%q", r.Notes)
			}
			continue // such a pair is asked about again after weeks
		}
		w.d.cfg.Budget = report.Budget{Calls: 5, Tokens: 1 << 20, Time: time.Minute}
		w.d.cfg.Ask = func(_ context.Context, _, prompt string) (string, error) { return perfect(w, prompt) }
		if r := w.dream(Options{}); len(r.Superseded) != 1 {
			t.Errorf("%s: the pair was not asked about later: %+v", name, r)
		}
	}
}

// TestCopiesAreFew: the newest copies are kept, and what a program left that was killed while it
// kept one goes with the next.
func TestCopiesAreFew(t *testing.T) {
	w := newWorld(t, home(""), perfect)
	half := filepath.Join(w.dir, report.Folder, "dream_1.db.part-journal")
	expect.OK(t, errors.Join(os.MkdirAll(filepath.Dir(half), 0o700), os.WriteFile(half, []byte("half"), 0o600)))
	for i := range 9 {
		expect.OK(t, w.d.snapshot(t.Context(), fmt.Sprint("dream_", i)))
		at := time.Now().Add(time.Duration(i-20) * time.Hour)
		expect.OK(t, os.Chtimes(filepath.Join(w.dir, report.Folder, fmt.Sprint("dream_", i, ".db")), at, at))
	}
	all, err := filepath.Glob(filepath.Join(w.dir, report.Folder, "*"))
	if err != nil || len(all) != copies || !strings.HasSuffix(all[0], "dream_2.db") {
		t.Errorf("%q, %v", all, err)
	}
}

// Holds L7.
func TestReadVerdicts(t *testing.T) {
	for _, c := range []struct {
		answer string
		want   []verdict
	}{
		{`[{"pair":1,"verdict":"keep_first"},{"pair":2,"verdict":"neither"}]`, []verdict{keepFirst, neither}},
		{"Sure! Such as [{\"pair\":1,\"verdict\":\"merge\"}]:\n```json\n[{\"pair\":\"2\",\"verdict\":\"Keep Second\"},\n{\"pair\":1,\"verdict\":\"unsure\"}]\n```\nBye [1].", []verdict{unsure, keepSecond}},
		{`{"verdicts":[{"pair":2,"verdict":"update","why":"[dates]"}]}`, []verdict{unclear, update}},
		{`[{"pair":1,"verdict":"keep_first"},{"pair":2,"verd`, []verdict{keepFirst, unclear}},
		{`[{"pair":1,"verdict":"keep_first"},{"pair":1,"verdict":"keep_second"}]`, []verdict{unclear, unclear}},
		{`[{"pair":3,"verdict":"keep_first"},{"pair":0,"verdict":"keep_first"},{"pair":1,"verdict":"delete"},{"verdict":"merge"}]`, []verdict{unclear, unclear}},
		{`["keep_first","keep_second"]`, []verdict{unclear, unclear}},
		{`both should be kept`, []verdict{unclear, unclear}},
		{``, []verdict{unclear, unclear}},
	} {
		if diff := cmp.Diff(c.want, readVerdicts(c.answer, 2)); diff != "" {
			t.Errorf("%s: %s", c.answer, diff)
		}
	}
}

// TestTemplates: a template is its owner's; what it has no place for is appended, and
// braces in memories are text.
func TestTemplates(t *testing.T) {
	d := &Dreamer{cfg: Config{Location: time.UTC}}
	s := signed("I say {entry_2} and {content}", "the {second}")
	s[0].ObservedAt, s[1].ObservedAt = day0, day0
	one, two := `(2026-01-01 09:00) <memory x>I say {entry_2} and {content}</memory x>`, `(2026-01-01 09:00) <memory x>the {second}</memory x>`
	batch := []*pair{{a: s[0], b: s[1]}, {a: s[1], b: s[0]}}
	for _, c := range []struct{ template, want string }{
		{"Which? {a stray brace}\n\n{entry_1} or {entry_2}?\n\nSay it.", "Which? {a stray brace}\n\nPair 1\n" + one + " or " + two + "?\n\nPair 2\n" + two + " or " + one + "?\n\nSay it."},
		{"{count} pairs:\n\n{content}\n\nSay it.", "2 pairs:\n\nPair 1\n1: " + one + "\n2: " + two + "\n\nPair 2\n1: " + two + "\n2: " + one + "\n\nSay it."},
		{"Say it.", "Say it.\n\nPair 1\n1: " + one + "\n2: " + two + "\n\nPair 2\n1: " + two + "\n2: " + one},
	} {
		if diff := cmp.Diff(c.want, d.fill(c.template, batch, "x")); diff != "" {
			t.Error(diff)
		}
	}
	d.cfg.Prompts = fstest.MapFS{conflictForm.File: {Data: []byte("<!-- mine -->\nMine.\n")}}
	d.cfg.Default = fstest.MapFS{conflictForm.File: {Data: []byte("Yours.")}, paraphraseForm.File: {Data: []byte("Too.")}}
	if a, b := conflictForm.Load(d.cfg.Prompts, d.cfg.Default, nil), paraphraseForm.Load(d.cfg.Prompts, d.cfg.Default, nil); a != "Mine.\n" || b != "Too." {
		t.Errorf("%q, %q", a, b)
	}
}

// TestYoungIsLeftAlone: what was said just now may be part of a talk, unless somebody
// asks for it; what is brought in from elsewhere is as old as it says.
func TestYoungIsLeftAlone(t *testing.T) {
	w := newWorld(t, home(""), perfect)
	w.now = time.Now()
	for _, text := range []string{"Carla likes jazz.", "Carla likes jazz, on Sundays."} {
		w.know(memory.Entry{Text: text})
	}
	if r := w.dream(Options{}); len(r.Merged) != 1 || r.Merged[0].Text == "Carla likes jazz." {
		t.Errorf("%+v", r.Merged)
	}
	w.now = w.now.Add(time.Second)
	if r := w.dream(Options{Now: true}); len(r.Merged) != 1 || r.Merged[0].Text != "Carla likes jazz." {
		t.Errorf("%+v", r)
	}
}
