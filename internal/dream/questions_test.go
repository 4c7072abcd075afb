package dream

import (
	"context"
	"errors"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// questioning is a harvester and a dreamer of one database, where anna was asked which of two holds.
type questioning struct {
	*rig
	d             *Dreamer
	first, second memory.Entry
}

func newAsking(t *testing.T, verdict string) *questioning {
	t.Helper()
	a := &questioning{rig: newRig(t, nil)}
	day := a.clock.AddDate(0, 0, -60)
	for i, e := range []*memory.Entry{&a.first, &a.second} {
		var err error
		*e, _, err = a.store.Add(t.Context(), memory.Entry{Scope: memory.Private(anna), Text: []string{"Anna lives in Berlin.", "Anna lives in Hamburg."}[i],
			Source: []memory.Source{memory.UserExplicit, memory.Harvest}[i], Integrity: trust.User, ObservedAt: day.AddDate(0, 0, i)}, anna)
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"Anna plays the cello.", "Anna works as a nurse.", "Anna has two cats."} {
		if _, _, err := a.store.Add(t.Context(), memory.Entry{Scope: memory.Private(anna), Text: text, Source: memory.Harvest, Integrity: trust.User, ObservedAt: day}, anna); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	a.d, err = Open(Config{DB: a.db, Store: a.store, Dir: t.TempDir(), Default: reverie.Data, Now: func() time.Time { return time.Now().Add(time.Hour) },
		Ask: func(_ context.Context, _, prompt string) (string, error) {
			return answerAll(prompt, func(string, string) string { return verdict }), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	if r := a.dream(); len(r.Questions) != 1 || r.Questions[0].Number != 1 {
		t.Fatalf("%+v", r)
	}
	if err := errors.Join(a.store.Put(t.Context(), "question:1", "!dm", []int64{1}), a.store.PutAt(t.Context(), "question:1", a.clock)); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *questioning) dream() Report {
	a.t.Helper()
	r, err := a.d.Dream(a.t.Context(), Options{})
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

// TestNotAskedInOtherWords: what says one of the two again, and settles nothing, is no new question.
func TestNotAskedInOtherWords(t *testing.T) {
	a := newAsking(t, "unsure")
	if _, err := a.db.Exec(`UPDATE memory SET subject = ?`, anna); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.store.Add(t.Context(), memory.Entry{Scope: memory.Private(anna), Text: "Anna lives in Hamburg, by the river.", Subject: anna, Source: memory.Harvest, Integrity: trust.User, ObservedAt: a.clock}, anna); err != nil {
		t.Fatal(err)
	}
	if r := a.dream(); len(r.Questions) != 0 || len(r.Superseded) != 0 || len(r.Waiting)+len(r.Merged) == 0 {
		t.Errorf("%+v", r)
	}
}

// TestScopesShareQuestionsFairly: one scope with many doubts takes none of another's.
func TestScopesShareQuestionsFairly(t *testing.T) {
	n := &night{}
	for range maxQuestions {
		n.report.Questions = append(n.report.Questions, Question{Scope: memory.Shared})
	}
	if !n.tooMany(memory.Shared) || n.tooMany(memory.Private(anna)) {
		t.Error("shared: ", n.tooMany(memory.Shared), ", private: ", n.tooMany(memory.Private(anna)))
	}
}
