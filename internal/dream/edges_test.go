package dream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"reverie/internal/memory"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// TestVerdictsAreKept: what a model said of a pair is not asked again, also not of a
// program that began anew and looks at everything; another model is asked once, and the
// first is still known when it is back.
func TestVerdictsAreKept(t *testing.T) {
	w := newWorld(t, facts(), always("neither"))
	model := "one"
	again := func(want bool) {
		t.Helper()
		w.calls, w.now = 0, w.now.Add(24*time.Hour)
		w.exec(`UPDATE dream_run SET mark = 0, at = at - 700000000`) // everything is looked at, and the week's requests are there
		w.openDreamer(w.d.cfg.DB, w.store, always("neither"))
		w.d.cfg.Model = func() string { return model }
		for range 6 {
			w.dream(Options{})
			w.exec(`UPDATE dream_run SET mark = 0, at = at - 700000000`)
			w.now = w.now.Add(time.Hour)
		}
		if (w.calls > 0) != want {
			t.Errorf("%s: %d requests", model, w.calls)
		}
	}
	again(true)
	again(false)
	for pair, n := range w.asked {
		if n > 1 {
			t.Errorf("%s was asked %d times", pair, n)
		}
	}
	model = "another"
	again(true)
	again(false)
	model = "one"
	again(false)
}

// TestTasksWithoutMemories: when all that was done to memories is taken back, because it is
// not found, what was done to tasks stays done, is told, and is taken back like any dream.
func TestTasksWithoutMemories(t *testing.T) {
	w := newWorld(t, home(""), nil)
	c := &choreWorld{world: w, ids: map[string]string{}}
	c.d.cfg.Tasks = task.NewStore(c.d.cfg.DB, func() time.Time { return day0 })
	c.exec(`INSERT INTO room (id) VALUES (?)`, room)
	c.add("Water the plants", nil)
	c.add("water the plants!", nil)
	before, rows := w.rows(), c.taskRows()
	tries := 0
	w.when("applied", func() {
		if tries++; tries == 1 {
			w.unindex("Ben likes%")
		}
	})
	r := w.dream(Options{})
	w.when("", nil)
	if tries != 2 || r.State != AppliedState || len(r.Merged) != 0 || len(r.Tasks) != 1 || w.rows() != before || c.taskRows() == rows {
		t.Fatalf("%d tries, %+v", tries, r)
	}
	back, err := w.d.Undo(t.Context(), "")
	if err != nil || back.Run != r.Run || len(back.Chores) != 1 || c.taskRows() != rows || w.rows() != before {
		t.Errorf("%+v, %v\n%s", back, err, c.taskRows())
	}
	if _, err := w.d.Undo(t.Context(), ""); !errors.Is(err, ErrNothing) {
		t.Errorf("taken back twice: %v", err)
	}
}

// TestSameWordsAreFoundWhereTheyWere: who says the same as many others, in the same words
// twice, is known once: the search finds it as far down as before.
func TestSameWordsAreFoundWhereTheyWere(t *testing.T) {
	var all []fact
	for i, who := range []string{"Anna", "Ben", "Carla", "David", "Elif", "Farid", "Gwen", "Hamish", "Imogen", "Jasper", "Keziah", "Lorcan", "Maeve", "Niall", "Orla", "Una"} {
		for k, text := range []string{" is race officer on the last Saturday of the month.", " runs the committee boat on the last Saturday of the month.", " never learned to swim butterfly.", " pays £425 a year in dues."} {
			all = append(all, fact{key: fmt.Sprint(who, k), at: i + 3*k, texts: []string{who + text, strings.ToLower(who) + text}})
		}
	}
	w := newWorld(t, all, nil)
	if r := w.dream(Options{}); len(r.Merged) != 64 || strings.Contains(fmt.Sprint(r.Notes), "taken back") {
		t.Errorf("%d merged, %q", len(r.Merged), r.Notes)
	}
}

// TestWhatPeopleSaidStays: what a person wrote is never put away, whatever kind it has, and
// what was only heard takes its place on nobody's word but theirs; not even for what the
// plan alone would do.
func TestWhatPeopleSaidStays(t *testing.T) {
	for _, source := range []memory.Source{memory.UserExplicit, memory.FromFile} {
		for _, kind := range []memory.Kind{memory.Fact, memory.Happening, memory.Insight} {
			for _, verdict := range []string{"keep_second", "duplicate"} {
				w := newWorld(t, nil, always(verdict))
				w.now = time.Now().AddDate(2, 0, 0)
				said := w.know(memory.Entry{Text: "Anna lives in Berlin.", Kind: kind, Source: source, ObservedAt: w.now.AddDate(-2, 0, 0)})
				for i, text := range []string{"Anna has moved to Hamburg.", "Anna lives in Berlin, near the park.", "Anna resides in Berlin."} {
					w.know(memory.Entry{Text: text, ObservedAt: w.now.AddDate(-1, i, 0)})
				}
				r := w.dream(Options{})
				if got := w.byID(said.ID); got.State != memory.Active || got.By != "" {
					t.Errorf("%s %s, %s: %+v by %+v", source, kind, verdict, got, r)
				}
			}
		}
	}
}

// TestAnswers: who forgets one of two that were asked about keeps the other; who says it
// again in own words is believed, and asked no more.
func TestAnswers(t *testing.T) {
	same := home("")
	same[1].at = same[0].at
	ask := func() (*world, Question) {
		t.Helper()
		w := newWorld(t, same, perfect)
		w.d.cfg.Ask = func(_ context.Context, _, prompt string) (string, error) {
			return answerAll(prompt, func(a, b string) string {
				switch {
				case !strings.Contains(a, "Anna") || !strings.Contains(b, "Anna"):
					return "neither"
				case strings.Contains(a, "Berlin") != strings.Contains(b, "Berlin"):
					return "update"
				}
				return "duplicate"
			}), nil
		}
		r := w.dream(Options{})
		if len(r.Questions) != 1 {
			t.Fatalf("%+v", r)
		}
		return w, r.Questions[0]
	}
	w, q := ask()
	gone, stays := q.First, q.Second
	if w.byID(gone).Text != "Anna lives in Berlin." {
		gone, stays = stays, gone
	}
	if _, err := w.store.Forget(t.Context(), everything, gone); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(24 * time.Hour)
	if r := w.dream(Options{}); len(r.Questions) != 0 || w.byID(stays).State != memory.Active {
		t.Errorf("%+v", r)
	}
	w, _ = ask()
	w.know(memory.Entry{Text: "Anna lives in Hamburg now.", Source: memory.UserExplicit, Integrity: trust.Owner, ObservedAt: w.now})
	w.now = w.now.Add(24 * time.Hour)
	w.exec(`UPDATE memory SET created_at = ?1, updated_at = ?1 WHERE source = 'user_explicit'`, w.now.Add(-time.Hour).UnixMilli())
	r := w.dream(Options{})
	if len(r.Questions) != 0 || len(r.Superseded) != 1 || r.Superseded[0].Text != "Anna lives in Berlin." {
		t.Errorf("%+v", r)
	}
}

// TestSlowModel: a model that never answers costs the night's minutes and no more, and the
// rest of the night is done.
func TestSlowModel(t *testing.T) {
	w := newWorld(t, facts(), nil)
	w.d.cfg.Budget.Time = 20 * time.Millisecond
	w.d.cfg.Ask = func(ctx context.Context, _, _ string) (string, error) {
		if until, ok := ctx.Deadline(); !ok || time.Until(until) > w.d.cfg.Budget.Time {
			t.Errorf("it is waited for until %v", until)
		}
		w.calls++
		<-ctx.Done()
		return "", ctx.Err()
	}
	if r := w.dream(Options{}); len(r.Merged) == 0 || len(r.Superseded) > 0 || w.calls != 1 || len(r.Notes) == 0 {
		t.Errorf("%d requests, %+v", w.calls, r)
	}
}
