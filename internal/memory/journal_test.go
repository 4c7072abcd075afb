package memory

import (
	"errors"
	"strings"
	"testing"
)

// as is somebody in a direct chat.
func as(user string) Access { return Access{Actor: user, Scopes: Strict.Visible("!dm", user, true)} }

// must is a value that comes without an error.
func must[T any](v T, err error) func(failer) T {
	return func(t failer) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

// failer is a test, or a part of one that rapid makes.
type failer interface {
	Helper()
	Fatal(...any)
}

// noError ends the test after an error.
func noError(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func noted(t testing.TB, s *Store, scope Scope, text, actor string) Entry {
	t.Helper()
	return added(t, s, Entry{Scope: scope, Text: text, Source: UserExplicit}, actor)
}

// added is e as it is stored on behalf of actor.
func added(t testing.TB, s *Store, e Entry, actor string) Entry {
	t.Helper()
	e, _, err := s.Add(t.Context(), e, actor)
	noError(t, err)
	return e
}

func kinds(all []Op) string {
	var out []string
	for _, o := range all {
		out = append(out, o.Op)
	}
	return strings.Join(out, " ")
}

// TestUndo takes every kind of change back, and that back as well.
// Holds W9.
func TestUndo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	mine := Private(guest)
	for name, tt := range map[string]struct {
		change       func(s *Store, e Entry) error
		after, again string // what the file and the prompt show; again after the undo, if not "tea"
	}{
		"retire":    {func(s *Store, e Entry) error { return s.Retire(ctx, as(guest), e.ID) }, "", ""},
		"supersede": {func(s *Store, e Entry) error { _, err := s.Supersede(ctx, as(guest), e.ID, "cake"); return err }, "cake", ""},
		"pin":       {func(s *Store, e Entry) error { return s.Pin(ctx, as(guest), e.ID, true) }, "tea", ""},
		"share":     {func(s *Store, e Entry) error { _, err := s.Share(ctx, as(guest), e.ID); return err }, "", ""},
		"add": {func(s *Store, e Entry) error {
			_, _, err := s.Add(ctx, Entry{Scope: mine, Text: "cake", Source: Assistant}, guest)
			return err
		}, "tea|cake", ""},
		"by hand": {func(s *Store, e Entry) error { put(t, s, mine, "# x\ntea with milk\n"); texts(t, s, mine); return nil }, "tea with milk", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := openAt(t, t.TempDir())
			e := noted(t, s, mine, "tea", guest)
			check := func(want string) {
				t.Helper()
				if got := texts(t, s, mine); got != want {
					t.Errorf("shows %q, want %q", got, want)
				}
				if got := strings.Join(lineTexts([]byte(onDisk(t, s, mine))), "|"); got != want {
					t.Errorf("file shows %q, want %q", got, want)
				}
			}
			noError(t, tt.change(s, e))
			check(tt.after)
			undone := must(s.Undo(ctx, as(guest), ""))(t)
			check("tea")
			if got := must(s.Get(ctx, everything, e.ID))(t); got.State != Active || got.Pinned || got.Scope != mine || !got.ValidTo.IsZero() {
				t.Errorf("%+v", got)
			}
			if len(undone.Lines()) == 0 {
				t.Error("nothing is said about it")
			}
			must(s.Undo(ctx, as(guest), undone.Batch))(t) // the change holds again
			check(tt.after)
		})
	}
}

// TestUndoRefuses what was changed since, what is not visible and what was forgotten.
// Holds L4.
func TestUndoRefuses(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(guest), "tea", guest)
	first := must(s.History(ctx, as(guest), e.ID))(t)[0].Batch
	noError(t, s.Pin(ctx, as(guest), e.ID, true))
	if _, err := s.Undo(ctx, as(guest), first); !errors.Is(err, ErrChanged) {
		t.Errorf("changed since: %v", err)
	}
	pinned := must(s.History(ctx, as(guest), e.ID))(t)[1].Batch
	must(s.Undo(ctx, as(guest), pinned))(t)
	noError(t, s.Pin(ctx, as(guest), e.ID, true))
	if _, err := s.Undo(ctx, as(guest), pinned); !errors.Is(err, ErrChanged) {
		t.Errorf("taken back already: %v", err)
	}
	if _, err := s.Undo(ctx, as(owner), first); !errors.Is(err, ErrNotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if _, err := s.Undo(ctx, as(guest), "nonsense"); !errors.Is(err, ErrNothing) {
		t.Errorf("no batch: %v", err)
	}
	must(s.Forget(ctx, as(guest), e.ID))(t)
	for _, batch := range []string{first, ""} {
		if _, err := s.Undo(ctx, as(guest), batch); !errors.Is(err, ErrGone) {
			t.Errorf("forgotten, batch %q: %v", batch, err)
		}
	}
}

// TestDuplicates: the same words are one entry, which is known to hold longer;
// what differs in a sign that means something is another.
func TestDuplicates(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := noted(t, s, Shared, "I like C#.", owner)
	for text, want := range map[string]bool{"i like  c#": false, "“I like C#!”": false, "I like C": true, "I like #C": true} {
		again, added, err := s.Append(t.Context(), Shared, text)
		if err != nil || added != want || !added && again.ID != e.ID {
			t.Errorf("%q: added %v, %v", text, added, err)
		}
	}
	for _, pair := range [][2]string{{"rent rose 5%", "rent rose 5"}, {"it is -5 degrees", "it is 5 degrees"}, {"pi is 3.14", "pi is 314"}, {"mail a@b.c", "mail a b c"}, {"the code is Tiger7", "The code is tiger7."}} {
		if !add(t, s, Shared, pair[0]) || !add(t, s, Shared, pair[1]) {
			t.Errorf("%q is taken for the same", pair)
		}
	}
	for _, pair := range [][2]string{{"rest for 5 min", "Rest for 5 MIN"}, {"the boat is called Tiger", "The boat is called tiger"}} {
		if !add(t, s, Shared, pair[0]) || add(t, s, Shared, pair[1]) {
			t.Errorf("%q is not taken for the same", pair)
		}
	}
	got := must(s.Get(t.Context(), everything, e.ID))(t)
	if got.Rev < 2 || got.ObservedAt.Before(e.ObservedAt) || got.Text != "I like C#." {
		t.Errorf("%+v", got)
	}
}

// TestTextsStandOnce: the journal tells the words of an entry, and does not hold them again.
func TestTextsStandOnce(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := added(t, s, Entry{Scope: Shared, Text: "a grey heron", Quote: "I saw a grey heron", Event: "$1", Source: Harvest}, owner)
	noError(t, s.Pin(t.Context(), everything, e.ID, true))
	if n := countRows(t, s.db, `SELECT count(*) FROM memory_op WHERE before LIKE '%heron%' OR after LIKE '%heron%'`); n > 0 {
		t.Errorf("%d operations hold the text", n)
	}
	for _, o := range must(s.History(t.Context(), everything, e.ID))(t) {
		if o.After.Text != e.Text || o.After.Quote != e.Quote || o.Before != nil && o.Before.Text != e.Text {
			t.Errorf("%+v", o)
		}
	}
}

// TestStaleChange: what is decided on an entry as it was is not done to it as it is.
// Holds L4.
func TestStaleChange(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := noted(t, s, Shared, "tea", owner)
	noError(t, s.Pin(t.Context(), everything, e.ID, true))
	if _, err := s.write(t.Context(), owner, nil, func(c *change) error { return c.retire(e) }); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	if got := must(s.Get(t.Context(), everything, e.ID))(t); got.State != Active || !got.Pinned {
		t.Errorf("%+v", got)
	}
}
