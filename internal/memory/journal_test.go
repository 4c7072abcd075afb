package memory

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// as is somebody in a direct chat.
func as(user string) Access { return Access{Actor: user, Scopes: Strict.Visible("!dm", user, true)} }

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func noted(t testing.TB, s *Store, scope Scope, text, actor string) Entry {
	t.Helper()
	e, _, err := s.Add(t.Context(), Entry{Scope: scope, Text: text, Source: UserExplicit}, actor)
	if err != nil {
		t.Fatal(err)
	}
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
			if err := tt.change(s, e); err != nil {
				t.Fatal(err)
			}
			check(tt.after)
			undone := must[Undone](t)(s.Undo(ctx, as(guest), ""))
			check("tea")
			if got := must[Entry](t)(s.Get(ctx, everything, e.ID)); got.State != Active || got.Pinned || got.Scope != mine || !got.ValidTo.IsZero() {
				t.Errorf("%+v", got)
			}
			if len(undone.Lines()) == 0 {
				t.Error("nothing is said about it")
			}
			must[Undone](t)(s.Undo(ctx, as(guest), undone.Batch)) // the change holds again
			check(tt.after)
		})
	}
}

// TestUndoStepsBack: each further one takes back the change before, and then
// there is nothing left.
func TestUndoStepsBack(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	for i := range 3 {
		noted(t, s, Private(guest), fmt.Sprintf("fact %d", i), guest)
	}
	noted(t, s, Private(owner), "the owner's", owner)
	noted(t, s, Shared, "shared by the owner", owner)
	for _, want := range []string{"fact 0|fact 1", "fact 0", ""} {
		must[Undone](t)(s.Undo(ctx, as(guest), ""))
		if got := texts(t, s, Private(guest)); got != want {
			t.Errorf("left %q, want %q", got, want)
		}
	}
	if _, err := s.Undo(ctx, as(guest), ""); !errors.Is(err, ErrNothing) {
		t.Errorf("error %v", err)
	}
	if got := texts(t, s, Private(owner), Shared); got != "the owner's|shared by the owner" {
		t.Errorf("somebody else's: %q", got)
	}
}

// TestUndoRefuses what was changed since, what is not visible and what was forgotten.
// Holds L4.
func TestUndoRefuses(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(guest), "tea", guest)
	first := must[[]Op](t)(s.History(ctx, as(guest), e.ID))[0].Batch
	if err := s.Pin(ctx, as(guest), e.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(ctx, as(guest), first); !errors.Is(err, ErrChanged) {
		t.Errorf("changed since: %v", err)
	}
	pinned := must[[]Op](t)(s.History(ctx, as(guest), e.ID))[1].Batch
	must[Undone](t)(s.Undo(ctx, as(guest), pinned))
	if err := s.Pin(ctx, as(guest), e.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Undo(ctx, as(guest), pinned); !errors.Is(err, ErrChanged) {
		t.Errorf("taken back already: %v", err)
	}
	if _, err := s.Undo(ctx, as(owner), first); !errors.Is(err, ErrNotFound) {
		t.Errorf("somebody else's: %v", err)
	}
	if _, err := s.Undo(ctx, as(guest), "nonsense"); !errors.Is(err, ErrNothing) {
		t.Errorf("no batch: %v", err)
	}
	must[Erased](t)(s.Forget(ctx, as(guest), e.ID))
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
	got := must[Entry](t)(s.Get(t.Context(), everything, e.ID))
	if got.Rev < 2 || got.ObservedAt.Before(e.ObservedAt) || got.Text != "I like C#." {
		t.Errorf("%+v", got)
	}
}

// TestJournal: every change is an operation with what was before and after.
func TestJournal(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	e := noted(t, s, Private(guest), "tea", guest)
	next := must[Entry](t)(s.Supersede(ctx, as(guest), e.ID, "green tea"))
	must[Entry](t)(s.Share(ctx, as(guest), next.ID))
	all := must[[]Op](t)(s.History(ctx, everything, e.ID))
	if got := kinds(all); got != "add add supersede move" {
		t.Errorf("operations: %s", got)
	}
	if o := all[2]; o.Before.State != Active || o.After.State != Superseded || o.After.By != next.ID || o.Actor != guest || o.Batch != all[1].Batch {
		t.Errorf("%+v", o)
	}
	// Who sees it only now does not see where it comes from.
	if got := must[[]Op](t)(s.History(ctx, as(owner), next.ID)); len(got) != 0 {
		t.Errorf("a stranger sees %s", kinds(got))
	}
	if _, err := s.History(ctx, as(owner), e.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("a stranger asks for the old: %v", err)
	}
}

// TestIndexHook: the index hears of every changed row, in the same transaction,
// and can refuse.
func TestIndexHook(t *testing.T) {
	ctx, s := t.Context(), openAt(t, t.TempDir())
	var told []int64
	var fail error
	s.indexer = func(_ context.Context, tx *sql.Tx, rows []int64) error {
		var n int
		for _, row := range rows {
			if err := tx.QueryRow(`SELECT count(*) FROM memory WHERE n = ?`, row).Scan(&n); err != nil || n != 1 {
				t.Errorf("row %d is not there: %v", row, err)
			}
		}
		told = append(told, rows...)
		return fail
	}
	e := noted(t, s, Shared, "tea", owner)
	next := must[Entry](t)(s.Supersede(ctx, everything, e.ID, "green tea"))
	put(t, s, Shared, "# x\ngreen tea\ncake\n")
	texts(t, s, Shared)
	must[Undone](t)(s.Undo(ctx, everything, ""))
	must[Erased](t)(s.Forget(ctx, everything, next.ID))
	slices.Sort(told[len(told)-2:])
	if want := []int64{1, 2, 1, 3, 3, 1, 2}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
	fail = errors.New("no room in the index")
	if _, _, err := s.Append(ctx, Shared, "pie"); !errors.Is(err, fail) {
		t.Errorf("error %v", err)
	}
	if got := texts(t, s, Shared); strings.Contains(got, "pie") {
		t.Errorf("stored without the index: %q", got)
	}
}

// TestStaleChange: what is decided on an entry as it was is not done to it as it is.
// Holds L4.
func TestStaleChange(t *testing.T) {
	s := openAt(t, t.TempDir())
	e := noted(t, s, Shared, "tea", owner)
	if err := s.Pin(t.Context(), everything, e.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write(t.Context(), owner, nil, func(c *change) error { return c.retire(e) }); !errors.Is(err, ErrChanged) {
		t.Errorf("error %v", err)
	}
	if got := must[Entry](t)(s.Get(t.Context(), everything, e.ID)); got.State != Active || !got.Pinned {
		t.Errorf("%+v", got)
	}
}
