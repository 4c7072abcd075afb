package dream

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	reverie "reverie"
	"reverie/internal/memory"
	"reverie/internal/trust"
)

// TestChosen: a message takes a side by its words alone, or none.
func TestChosen(t *testing.T) {
	for _, c := range []struct{ first, second, said, want string }{
		{"I live in Berlin.", "I live in Hamburg.", "Berlin is right", "a"},
		{"I live in Berlin.", "I live in Hamburg.", "I moved to Hamburg, the old address is wrong", "b"},
		{"I live in Berlin.", "I live in Hamburg.", "Hamburg, not Berlin.", "b"},
		{"I live in Berlin.", "I live in Hamburg.", "My old flat in Berlin is wrong. I live in Hamburg now.", "b"},
		{"me lives in Berlin.", "me lives in Hamburg.", "Still Berlin!", "a"},
		{"The code is 4711.", "The code is 4712.", "4712 holds", "b"},
		{"Ich wohne in Berlin.", "Ich wohne in Hamburg.", "Hamburg stimmt", "b"},
		{"Ich wohne in Berlin.", "Ich wohne in Hamburg.", "Ich bin umgezogen, ich wohne jetzt in Hamburg.", "b"},
		{"J'habite à Lyon.", "J'habite à Nantes.", "Nantes est juste", "b"},
		{"Vivo en Lima.", "Vivo en Quito.", "Quito es correcto", "b"},
		{"Abito a Roma.", "Abito a Torino.", "Torino è giusto", "b"},
		// Asked, doubted, compared, denied, or about something else.
		{"I live in Berlin.", "I live in Hamburg.", "Berlin?", ""},
		{"I live in Berlin.", "I live in Hamburg.", "Is Berlin right? I forgot.", ""},
		{"I live in Berlin.", "I live in Hamburg.", "Maybe Berlin", ""},
		{"I live in Berlin.", "I live in Hamburg.", "If I move, Berlin is right", ""},
		{"I live in Berlin.", "I live in Hamburg.", "I went from Berlin to Hamburg", ""},
		{"I live in Berlin.", "I live in Hamburg.", "I was in Hamburg yesterday", ""},
		{"I live in Berlin.", "I live in Hamburg.", "Berlin is wrong", ""},
		{"I live in Berlin.", "I live in Hamburg.", "Berlin. That is wrong.", ""},
		{"I live in Berlin.", "I live in Hamburg.", "I don't live in Berlin", ""},
		{"I live in Berlin.", "I live in Hamburg.", "Berlin is right, Hamburg is right", ""},
		{"I live in Berlin.", "I live in Hamburg.", "My sister lives in Berlin", ""},
		{"I live in Berlin.", "I live in Hamburg.", "Berliner doughnuts", ""},
		{"I live in Berlin.", "I live in Hamburg.", "good morning", ""},
		{"The code is 4711.", "The code is 4712.", "47", ""},
		{"Ich wohne in Berlin.", "Ich wohne in Hamburg.", "Hamburg ist falsch", ""},
		{"Ich wohne in Berlin.", "Ich wohne in Hamburg.", "Nicht Hamburg", ""},
	} {
		got := chosen(c.said, memory.Entry{Text: c.first}, memory.Entry{Text: c.second})
		if string(got) != c.want {
			t.Errorf("%q: %q, want %q", c.said, got, c.want)
		}
	}
}

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

// holds says which of the two count.
func (a *questioning) holds() string {
	out := ""
	for i, e := range []memory.Entry{a.first, a.second} {
		if now, err := a.store.Get(a.t.Context(), memory.Access{All: true}, e.ID); err != nil || now.State == memory.Active {
			out += "ab"[i : i+1]
		}
	}
	return out
}

// TestAnsweredInWords: what a person says having been asked settles it, if a model makes a
// fact of it and the words themselves say so; neither is enough alone, and no other
// person's words are.
func TestAnsweredInWords(t *testing.T) {
	fact := func(text, quote string) func(string) (string, error) {
		return func(string) (string, error) {
			return `[{"message": 1, "quote": "` + quote + `", "fact": "` + text + `", "subject": "I", "kind": "fact"}]`, nil
		}
	}
	for _, c := range []struct {
		name, said, fact, verdict, want string
		by, room, tail                  string
	}{
		{"the newer, only heard", "Hamburg is right", "Anna lives in Hamburg.", "keep_second", "b", anna, "!dm", ""},
		{"as it was recalled", "Hamburg is right", "Anna lives in Hamburg.", "keep_second", "b", anna, "!dm", "Anna lives in Hamburg."},
		{"the older", "Berlin is right", "Anna lives in Berlin.", "keep_second", "a", anna, "!dm", ""},
		{"with more words", "I live in Hamburg, by the river", "Anna lives in Hamburg, by the river", "keep_second", "b", anna, "!dm", ""},
		{"the model alone", "Tell me a joke about Hamburg", "Anna lives in Hamburg.", "keep_second", "ab", anna, "!dm", ""},
		{"the model against the words", "Berlin is right", "Anna lives in Hamburg.", "keep_second", "ab", anna, "!dm", ""},
		{"the words alone", "Hamburg is right", "Anna likes tea", "keep_second", "ab", anna, "!dm", ""},
		{"always the same", "Hamburg is right", "Anna lives in Hamburg.", "duplicate", "b", anna, "!dm", ""},
		{"somebody else", "Hamburg is right", "Anna lives in Hamburg.", "keep_second", "ab", "@ben:example.org", "!dm", ""},
		{"elsewhere", "Hamburg is right", "Anna lives in Hamburg.", "keep_second", "ab", anna, "!other", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAsking(t, "unsure")
			id := a.sayIn(c.room, c.by, "$said", c.said, false)
			if _, err := a.db.Exec(`UPDATE message SET tail = ? WHERE id = ?`, c.tail, id); err != nil {
				t.Fatal(err)
			}
			a.answer = fact(c.fact, c.said)
			a.harvest()
			r := a.dream()
			if got := a.holds(); got != c.want || len(r.Questions) != 0 {
				t.Errorf("%q hold, want %q; %+v", got, c.want, r)
			}
			if (c.want == "ab") != (len(r.Waiting) == 1) || (c.want != "ab") != (len(r.Superseded) == 1) || len(r.Waiting) == 1 && !strings.Contains(r.Text(time.UTC), "not answered yet") {
				t.Errorf("%s", r.Text(time.UTC))
			}
			if c.want == "ab" {
				return
			}
			if _, err := a.d.Undo(t.Context(), ""); err != nil || a.holds() != "ab" {
				t.Errorf("taken back: %s, %v", a.holds(), err)
			}
			if r := a.dream(); a.holds() != "ab" || len(r.Waiting) != 1 {
				t.Errorf("taken back, and done again: %s", a.holds())
			}
		})
	}
}

// TestSaidBefore: what was said before it was asked is no answer, and a question that
// nobody was asked is answered by nothing that is said.
func TestSaidBefore(t *testing.T) {
	a := newAsking(t, "unsure")
	a.say("$said", "Hamburg is right")
	a.answer = func(string) (string, error) {
		return `[{"message": 1, "quote": "Hamburg is right", "fact": "Anna lives in Hamburg.", "subject": "I", "kind": "fact"}]`, nil
	}
	a.harvest()
	for _, at := range []int64{a.clock.Add(time.Hour).UnixMilli(), 0} {
		if _, err := a.db.Exec(`UPDATE memory_question SET asked = ?`, at); err != nil {
			t.Fatal(err)
		}
		if a.dream(); a.holds() != "ab" {
			t.Errorf("asked at %d: %s", at, a.holds())
		}
	}
}

// TestPinnedIsLeftToTheCommand: what is pinned is put away by no sentence.
func TestPinnedIsLeftToTheCommand(t *testing.T) {
	a := newAsking(t, "unsure")
	if err := a.store.Pin(t.Context(), memory.Access{All: true, Actor: anna}, a.first.ID, true); err != nil {
		t.Fatal(err)
	}
	a.say("$said", "Hamburg is right")
	a.answer = func(string) (string, error) {
		return `[{"message": 1, "quote": "Hamburg is right", "fact": "Anna lives in Hamburg.", "subject": "I", "kind": "fact"}]`, nil
	}
	a.harvest()
	if r := a.dream(); a.holds() != "ab" || len(r.Questions) != 0 {
		t.Errorf("%q hold; %+v", a.holds(), r)
	}
	if _, _, err := a.store.Answer(t.Context(), memory.Access{Actor: anna, Scopes: []memory.Scope{memory.Private(anna)}}, 1, memory.KeepSecond); err != nil || a.holds() != "b" {
		t.Errorf("%q hold, %v", a.holds(), err)
	}
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
