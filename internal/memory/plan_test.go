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

	"reverie/internal/memory/lines"
	"reverie/internal/test/expect"
)

// rowsOf is everything that the database holds of entries, to the byte.
func rowsOf(t testing.TB, s *Store) string {
	t.Helper()
	rows := expect.Must(s.db.Query(`SELECT * FROM memory ORDER BY n`))(t)
	defer rows.Close()
	columns := expect.Must(rows.Columns())(t)
	var out strings.Builder
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		expect.OK(t, rows.Scan(values...))
		for i, v := range values {
			fmt.Fprintf(&out, "%s=%v ", columns[i], *v.(*any))
		}
		out.WriteByte('\n')
	}
	expect.OK(t, rows.Err())
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
	expect.Must(s.db.Exec(`UPDATE memory SET hits = 3, last_hit = 1700000000000 WHERE id = ?`, a.ID))(t)
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
	if err != nil || len(done.Done) != 4 || len(done.Skipped) != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	get := func(id string) Entry {
		e := expect.Must(s.Get(t.Context(), everything, id))(t)
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
	if err != nil || len(left) != 0 || len(undone.Restored) != 3 {
		t.Fatalf("%+v, %+v, %v", undone, left, err)
	}
	expect.NoDiff(t, rowsOf(t, s), before, "other than wanted")
	expect.OK(t, indexIsSound(t, OpenFTS(s.db)))
	if _, _, err := s.UndoRun(t.Context(), "night", nil); !errors.Is(err, ErrNothing) {
		t.Errorf("taken back twice: %v", err)
	}
}

// TestUndoKeepsWhatCameLater: what a person did, and what was counted, since a dream
// stays when it is taken back.
func TestUndoKeepsWhatCameLater(t *testing.T) {
	s := openAt(t, t.TempDir())
	steps := planOf(t, s)
	expect.Must(s.Apply(t.Context(), "night", steps, nil))(t)
	expect.OK(t, s.Pin(t.Context(), everything, steps[0].By, true))
	expect.Must(s.db.Exec(`UPDATE memory SET hits = hits + 2, last_hit = 1800000000000 WHERE id = ?`, steps[0].By))(t)
	expect.Must(s.Forget(t.Context(), everything, steps[3].ID))(t)
	_, left, err := s.UndoRun(t.Context(), "night", nil)
	if err != nil || len(left) != 1 || left[0].ID != steps[3].ID {
		t.Fatalf("%+v, %v", left, err)
	}
	b, err := s.Get(t.Context(), everything, steps[0].By)
	expect.False(t, err != nil || !b.Pinned || b.Hits != 2 || b.LastHit.UnixMilli() != 1800000000000 || b.ObservedAt.Day() != 2, "%+v, %v", b, err)
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
	expect.OK(t, s.Pin(t.Context(), everything, pinned.ID, true))
	pinned.Rev++
	for _, pinned := range []bool{true, false} { // changed since it was planned
		expect.OK(t, s.Pin(t.Context(), everything, steps[1].ID, pinned))
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
	done := expect.Must(s.Apply(t.Context(), "night", slices.Concat(wrong, steps), nil))(t)
	var left []Step
	for _, l := range done.Skipped {
		left = append(left, l.Step)
	}
	expect.NoDiff(t, left, append(wrong, steps[1]), "other than wanted")
	expect.NoDiff(t, done.Done, []Step{steps[0], steps[2], steps[3]}, "other than wanted")
}

// TestApplyIsAtomic: whatever fails on the way, also what its caller writes with it,
// nothing is done.
// Holds L3.
func TestApplyIsAtomic(t *testing.T) {
	s := openAt(t, t.TempDir())
	steps := planOf(t, s)
	before := rowsOf(t, s)
	_, err := s.Apply(t.Context(), "night", steps, func(context.Context, *sql.Tx, Applied) error { return errors.New("disk full") })
	if err == nil || rowsOf(t, s) != before {
		t.Errorf("%v; %s", err, rowsOf(t, s))
	}
}

// twice is a store of two lines that mean the same, and another, after the night that found it.
func twice(t *testing.T, b string) (s *Store, dir string, head, member Entry) {
	t.Helper()
	dir = t.TempDir()
	s = openWith(t, Config{Dir: dir, Owner: owner, Backend: b})
	put(t, s, Private(owner), "Anna is fond of green tea\nAnna enjoys drinking tea that is green\nBen plays chess\n")
	all := expect.Must(s.WorkingSet(t.Context(), Private(owner)))(t)
	member, head = all[0], all[1]
	done := expect.Must(s.Apply(t.Context(), "night", []Step{{GroupStep, member.ID, member.Rev, head.ID, head.Rev}}, nil))(t)
	if len(done.Skipped) > 0 {
		t.Fatalf("%+v", done)
	}
	return s, dir, head, member
}

func shows(t *testing.T, s *Store, want ...string) {
	t.Helper()
	if got := texts(t, s, Private(owner)); got != strings.Join(want, "|") {
		t.Errorf("the prompt shows %q and should show %q", got, want)
	}
	expect.EqualSlice(t, lines.Texts([]byte(onDisk(t, s, Private(owner)))), want, "the file shows and should show")
}

const (
	teaHead   = "Anna enjoys drinking tea that is green"
	teaMember = "Anna is fond of green tea"
	chess     = "Ben plays chess"
)

// TestOneLine: what means the same is one line in prompts, files and lists and one hit of a
// search, marked as put together, in each backend; taking the night back gives both again.
func TestOneLine(t *testing.T) {
	t.Parallel()
	for _, b := range []string{"flat_file", "fts5", "local_vector"} {
		t.Run(b, func(t *testing.T) {
			s, _, head, member := twice(t, b)
			before := expect.Must(s.History(t.Context(), as(owner), head.ID))(t)
			head = expect.Must(s.Get(t.Context(), as(owner), head.ID))(t)
			shows(t, s, teaHead, chess)
			expect.Equal(t, head.Source, DreamingMerge, "stored")
			if !slices.ContainsFunc(before, func(o Op) bool { return o.Entry == member.ID && o.After.Text == teaMember }) {
				t.Errorf("the journal does not tell of the other: %+v", before)
			}
			expect.Len(t, expect.Must(s.List(t.Context(), as(owner), Filter{}))(t), 2, "listed")
			for _, query := range []string{"what green tea is Anna fond of?", "what tea does Anna enjoy drinking?"} {
				hits := expect.Must(s.Search(t.Context(), Query{Text: query, Scopes: []Scope{Private(owner)}}))(t)
				if len(hits) != 1 {
					t.Errorf("%q finds %+v", query, hits)
				} else if hits[0].Entry.ID == member.ID && (hits[0].Shown != teaHead || hits[0].Head != head.N) {
					t.Errorf("%q does not tell what is shown: %+v", query, hits[0])
				}
			}
			undone, left, err := s.UndoRun(t.Context(), "night", nil)
			if err != nil || len(left) > 0 || len(undone.Changed) != 1 {
				t.Fatalf("%+v, %+v, %v", undone, left, err)
			}
			shows(t, s, teaHead, chess, teaMember)
			expect.Equal(t, expect.Must(s.Get(t.Context(), as(owner), head.ID))(t).Source, FromFile, "stored")
		})
	}
}

// TestForgetOneLine: with a line all goes that it was shown for, whichever is named, and no
// trace is left of any.
func TestForgetOneLine(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{"the line": teaHead, "the other text": teaMember} {
		t.Run(name, func(t *testing.T) {
			s, dir, _, _ := twice(t, "fts5")
			found, exact, err := s.Find(t.Context(), as(owner), what)
			if err != nil || !exact {
				t.Fatalf("%+v, %v, %v", found, exact, err)
			}
			done := expect.Must(s.Forget(t.Context(), as(owner), found[0].ID))(t)
			expect.Equal(t, done.Entries, 2, done)
			shows(t, s, chess)
			for _, text := range []string{"fond of green", "enjoys drinking"} {
				expect.Len(t, traces(t, dir, text), 0, "%q is left in", text)
			}
			expect.Len(t, expect.Must(s.Search(t.Context(), Query{Text: "green tea", Scopes: []Scope{Private(owner)}, Past: true}))(t), 0, "found")
			texts(t, openAt(t, dir), Private(owner)) // and nothing comes back
			shows(t, s, chess)
		})
	}
}

// TestRedactOneOfTwo: when the message of one is taken back, the other stays, as another
// message said it.
func TestRedactOneOfTwo(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"$head", "$member"} {
		s, _, head, member := twice(t, "fts5")
		for id, of := range map[string]string{head.ID: "$head", member.ID: "$member"} {
			expect.Must(s.db.Exec(`UPDATE memory SET event = ? WHERE id = ?`, of, id))(t)
		}
		expect.Must(s.ForgetEvent(t.Context(), as(owner), event))(t)
		if event == "$head" {
			shows(t, s, chess, teaMember)
		} else {
			shows(t, s, teaHead, chess)
		}
	}
}

// TestEditOneLine: what a person does to the line by hand holds for all that it is shown for.
func TestEditOneLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file        string
		want, again []string // again: when it was undone
	}{
		"corrected":         {"Anna prefers coffee now\n" + chess + "\n", []string{"Anna prefers coffee now", chess}, []string{chess, teaHead}},
		"removed":           {chess + "\n", []string{chess}, []string{chess, teaHead}},
		"the other written": {teaHead + "\n" + chess + "\n" + teaMember + "\n", []string{teaHead, chess, teaMember}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _, _ := twice(t, "flat_file")
			put(t, s, Private(owner), c.file)
			shows(t, s, c.want...)
			if c.again == nil {
				return
			}
			expect.Len(t, expect.Must(s.Search(t.Context(), Query{Text: "green tea", Scopes: []Scope{Private(owner)}}))(t), 0, "found")
			expect.Must(s.Undo(t.Context(), as(owner), ""))(t)
			shows(t, s, c.again...)
			if _, left, err := s.UndoRun(t.Context(), "night", nil); err != nil || len(left) > 0 {
				t.Errorf("%+v, %v", left, err)
			}
			shows(t, s, append(c.again, teaMember)...)
		})
	}
}

// TestMembersAreShownAgain: a member is hidden only while its head is shown: what a model says
// of the head, or a move to another scope, does not take the member away.
func TestMembersAreShownAgain(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(s *Store, head Entry, other Entry) error{
		"superseded by a dream": func(s *Store, head, other Entry) error {
			if _, err := s.db.Exec(`UPDATE memory SET observed_at = observed_at + 1000 WHERE id = ?`, other.ID); err != nil {
				return err
			}
			_, err := s.Apply(t.Context(), "next", []Step{{SupersedeStep, head.ID, head.Rev, other.ID, other.Rev}}, nil)
			return err
		},
		"shared": func(s *Store, head, _ Entry) error {
			_, err := s.Share(t.Context(), as(owner), head.ID)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, head, _ := twice(t, "flat_file")
			all := expect.Must(s.WorkingSet(t.Context(), Private(owner)))(t)
			expect.OK(t, do(s, expect.Must(s.Get(t.Context(), as(owner), head.ID))(t), all[1]))
			shows(t, s, chess, teaMember)
		})
	}
}

// TestGroupRefuses: a pinned text, and one with a name or number that the other lacks, stays a
// line of its own.
func TestGroupRefuses(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	put(t, s, Private(owner), "the shed has 2 doors\nthe shed has doors\nbikes stand in it\n")
	all := expect.Must(s.WorkingSet(t.Context(), Private(owner)))(t)
	expect.OK(t, s.Pin(t.Context(), as(owner), all[2].ID, true))
	pinned := expect.Must(s.Get(t.Context(), as(owner), all[2].ID))(t)
	done := expect.Must(s.Apply(t.Context(), "night", []Step{
		{GroupStep, all[0].ID, all[0].Rev, all[1].ID, all[1].Rev}, {GroupStep, pinned.ID, pinned.Rev, all[1].ID, all[1].Rev},
		{GroupStep, all[1].ID, all[1].Rev, all[0].ID, all[0].Rev}, {GroupStep, all[0].ID, all[0].Rev, all[1].ID, all[1].Rev},
	}, nil))(t)
	expect.NoDiff(t, whys(done.Skipped), []string{"the other does not say all of it", "it is pinned", "the other does not say all of it"}, "other than wanted")
	shows(t, s, "the shed has 2 doors", "bikes stand in it")
}

func whys(left []Skipped) (out []string) {
	for _, l := range left {
		out = append(out, l.Reason)
	}
	return out
}
