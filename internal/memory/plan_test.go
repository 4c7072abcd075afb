package memory

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
)

// rowsOf is everything that the database holds of entries, to the byte.
func rowsOf(t testing.TB, s *Store) string {
	t.Helper()
	rows := must(s.db.Query(`SELECT * FROM memory ORDER BY n`))(t)
	defer rows.Close()
	columns := must(rows.Columns())(t)
	var out strings.Builder
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		noError(t, rows.Scan(values...))
		for i, v := range values {
			fmt.Fprintf(&out, "%s=%v ", columns[i], *v.(*any))
		}
		out.WriteByte('\n')
	}
	noError(t, rows.Err())
	return out.String()
}

// planOf fills s and plans one step of each kind.
func planOf(t testing.TB, s *Store) []Step {
	t.Helper()
	scope, day := Private(owner), time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	add := func(text string, kind Kind, days int) Entry {
		return added(t, s, Entry{Scope: scope, Text: text, Kind: kind, Source: Harvest, ObservedAt: day.AddDate(0, 0, days)}, "test")
	}
	a, b := add("Anna lives in Berlin", Fact, 9), add("Anna lives in Berlin, near the park", Fact, 1)
	c, d := add("the code is 4711", Fact, 1), add("the code is now 4713", Fact, 5)
	e, f := add("Ben likes tea", Fact, 1), add("tea is what Ben likes", Fact, 2)
	g := add("a party took place", Happening, 1)
	must(s.db.Exec(`UPDATE memory SET hits = 3, last_hit = 1700000000000 WHERE id = ?`, a.ID))(t)
	return []Step{
		{MergeStep, a.ID, a.Rev, b.ID, b.Rev}, {SupersedeStep, c.ID, c.Rev, d.ID, d.Rev}, {GroupStep, f.ID, f.Rev, e.ID, e.Rev}, {Kind: ArchiveStep, ID: g.ID, Rev: g.Rev},
	}
}

// TestApplyAndUndo: a plan is done as a whole, what took a place knows what the other
// knew, and taking it back leaves every row as it was, to the byte.
// Holds L5.
func TestApplyAndUndo(t *testing.T) {
	s := openAt(t, t.TempDir())
	steps := planOf(t, s)
	before := rowsOf(t, s)
	done, err := s.Apply(t.Context(), "night", steps, nil)
	if err != nil || len(done.Done) != 4 || len(done.Left) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	get := func(id string) Entry {
		e := must(s.Get(t.Context(), everything, id))(t)
		return e
	}
	a, b, c, f, g := get(steps[0].ID), get(steps[0].By), get(steps[1].ID), get(steps[2].ID), get(steps[3].ID)
	if a.State != Merged || a.By != b.ID || b.Hits != 3 || b.LastHit.UnixMilli() != 1700000000000 || !b.ObservedAt.Equal(a.ObservedAt) {
		t.Errorf("merged: %+v into %+v", a, b)
	}
	if c.State != Superseded || !c.ValidTo.Equal(get(steps[1].By).ObservedAt) || f.State != Active || f.By != steps[2].By || g.State != Archived {
		t.Errorf("%+v\n%+v\n%+v", c, f, g)
	}
	if file := onDisk(t, s, Private(owner)); strings.Contains(file, "4711") || !strings.Contains(file, "near the park") {
		t.Errorf("the file: %s", file)
	}
	if _, err := s.Apply(t.Context(), "night", nil, nil); err == nil {
		t.Error("two plans have one name")
	}
	undone, left, err := s.UndoRun(t.Context(), "night", nil)
	if err != nil || len(left) != 0 || len(undone.Back) != 3 {
		t.Fatalf("%+v, %+v, %v", undone, left, err)
	}
	if diff := gocmp.Diff(before, rowsOf(t, s)); diff != "" {
		t.Error(diff)
	}
	noError(t, indexIsSound(t, OpenFTS(s.db)))
	if _, _, err := s.UndoRun(t.Context(), "night", nil); !errors.Is(err, ErrNothing) {
		t.Errorf("taken back twice: %v", err)
	}
}

// TestUndoKeepsWhatCameLater: what a person did, and what was counted, since a dream
// stays when it is taken back.
func TestUndoKeepsWhatCameLater(t *testing.T) {
	s := openAt(t, t.TempDir())
	steps := planOf(t, s)
	must(s.Apply(t.Context(), "night", steps, nil))(t)
	noError(t, s.Pin(t.Context(), everything, steps[0].By, true))
	must(s.db.Exec(`UPDATE memory SET hits = hits + 2, last_hit = 1800000000000 WHERE id = ?`, steps[0].By))(t)
	must(s.Forget(t.Context(), everything, steps[3].ID))(t)
	_, left, err := s.UndoRun(t.Context(), "night", nil)
	if err != nil || len(left) != 1 || left[0].ID != steps[3].ID {
		t.Fatalf("%+v, %v", left, err)
	}
	b, err := s.Get(t.Context(), everything, steps[0].By)
	if err != nil || !b.Pinned || b.Hits != 2 || b.LastHit.UnixMilli() != 1800000000000 || b.ObservedAt.Day() != 2 {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestApplyLeavesOut: a step that does not fit the entries any more, or would lose
// something, is left out, and the others are done.
// Holds L4.
func TestApplyLeavesOut(t *testing.T) {
	s := openAt(t, t.TempDir())
	steps := planOf(t, s)
	scope := Private(owner)
	add := func(e Entry) Entry {
		e.Source = cmp.Or(e.Source, Harvest)
		return added(t, s, e, "test")
	}
	late := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	x, y := add(Entry{Scope: scope, Text: "number 4711 it is"}), add(Entry{Scope: scope, Text: "number 4712 it is"})
	other := add(Entry{Scope: Room(room), Text: "Anna lives in Berlin, of all places"})
	said := add(Entry{Scope: scope, Text: "we met in May", Source: UserExplicit, Kind: Happening})
	pinned := add(Entry{Scope: scope, Text: "never forget", ObservedAt: late})
	noError(t, s.Pin(t.Context(), everything, pinned.ID, true))
	pinned.Rev++
	for _, pinned := range []bool{true, false} { // changed since it was planned
		noError(t, s.Pin(t.Context(), everything, steps[1].ID, pinned))
	}
	wrong := []Step{
		{MergeStep, x.ID, x.Rev, y.ID, y.Rev},
		{MergeStep, steps[0].ID, steps[0].Rev, other.ID, other.Rev},
		{SupersedeStep, steps[0].ID, steps[0].Rev, steps[0].By, steps[0].ByRev}, // the older one
		{SupersedeStep, pinned.ID, pinned.Rev, x.ID, x.Rev},
		{Kind: ArchiveStep, ID: said.ID, Rev: said.Rev},
		{MergeStep, "mem_none", 1, y.ID, y.Rev},
		{MergeStep, y.ID, y.Rev, y.ID, y.Rev},
	}
	done := must(s.Apply(t.Context(), "night", slices.Concat(wrong, steps), nil))(t)
	var left []Step
	for _, l := range done.Left {
		left = append(left, l.Step)
	}
	if diff := gocmp.Diff(append(wrong, steps[1]), left); diff != "" {
		t.Error(diff)
	}
	if diff := gocmp.Diff([]Step{steps[0], steps[2], steps[3]}, done.Done); diff != "" {
		t.Error(diff)
	}
}

// TestApplyIsOne: whatever fails on the way, also what its caller writes with it,
// nothing is done.
// Holds L3.
func TestApplyIsOne(t *testing.T) {
	s := openAt(t, t.TempDir())
	steps := planOf(t, s)
	before := rowsOf(t, s)
	_, err := s.Apply(t.Context(), "night", steps, func(context.Context, *sql.Tx, Applied) error { return errors.New("disk full") })
	if err == nil || rowsOf(t, s) != before {
		t.Errorf("%v; %s", err, rowsOf(t, s))
	}
}

func TestProtected(t *testing.T) {
	for _, c := range []struct {
		from, to string
		lost     bool
	}{
		{"code 4711", "the code is 4711", false}, {"code 4711", "the code is 4712", true}, {"code 4711", "code 47110", true},
		{"it weighs 5 kg", "it weighs 5kg", false}, {"it weighs 5 kg", "it weighs 5 g", true}, {"-5 degrees", "5 degrees", true},
		{"$5", "€5", true}, {"5 %", "5%", false}, {"at 17:30", "at 17:31", true}, {"on 2026-05-08", "on 2026-05-09", true},
		{"see https://a.example/x", "see https://a.example/y", true}, {"write to anna@a.example", "write to anna@b.example", true},
		{"Anna came", "anna came", false}, {"Anna came", "Ben came", true}, {"Anna's car", "the car of Anna", false},
		{`she said "never mind"`, `she said “never mind”`, false}, {`she said "never mind"`, `she said "mind"`, true},
		{"password Tiger7", "password tiger7", true}, {"likes C#", "likes C", true}, {"das Haus in Köln", "das haus in köln", false},
	} {
		if lost := Lost(c.from, c.to); len(lost) > 0 != c.lost {
			t.Errorf("%q to %q loses %q", c.from, c.to, lost)
		}
	}
}

// TestMissing: what is only shown for another text may take Anna for Annas, and nothing else.
func TestMissing(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"10 geese", "10 of them", ""}, {"10 geese", "100 of them", "10"}, {"10 geese", "at 10:30", "10"},
		{"it has -5 degrees", "it has 5 degrees", "-5"}, {"at Jana", "JANA's", ""}, {"geht mit Janas", "von Jana", ""}, {"geht mit Jana", "mit Janas Bruder", ""},
		{"with Ann", "with Anna", "ann"}, {"Bus 5s", "Bus 5", "5s"}, {"see https://a.example/x", "see https://a.example/xy", "a.example/x|https://a.example/x"},
	} {
		if got := strings.Join(Missing(tt.from, tt.to), "|"); got != tt.want {
			t.Errorf("%q in %q: %q is missing, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}
