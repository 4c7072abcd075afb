package memory

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// twice is a store of two lines that mean the same, and another, after the night that found it.
func twice(t *testing.T, b Backend) (s *Store, dir string, head, member Entry) {
	t.Helper()
	dir = t.TempDir()
	s = openWith(t, Config{Dir: dir, Owner: owner, Backend: b})
	put(t, s, Private(owner), "Anna is fond of green tea\nAnna enjoys drinking tea that is green\nBen plays chess\n")
	all := must(s.Entries(t.Context(), Private(owner)))(t)
	member, head = all[0], all[1]
	done := must(s.Apply(t.Context(), "night", []Step{{GroupStep, member.ID, member.Rev, head.ID, head.Rev}}, nil))(t)
	if len(done.Left) > 0 {
		t.Fatalf("%+v", done)
	}
	return s, dir, head, member
}

func shows(t *testing.T, s *Store, want ...string) {
	t.Helper()
	if got := texts(t, s, Private(owner)); got != strings.Join(want, "|") {
		t.Errorf("the prompt shows %q and should show %q", got, want)
	}
	if got := lineTexts([]byte(onDisk(t, s, Private(owner)))); !slices.Equal(got, want) {
		t.Errorf("the file shows %q and should show %q", got, want)
	}
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
	for _, b := range []Backend{FlatFile, FTS5, LocalVector} {
		t.Run(string(b), func(t *testing.T) {
			s, _, head, member := twice(t, b)
			before := must(s.History(t.Context(), as(owner), head.ID))(t)
			shows(t, s, teaHead, chess)
			if e := must(s.Get(t.Context(), as(owner), head.ID))(t); e.Source != DreamingMerge {
				t.Errorf("%+v", e)
			}
			if !slices.ContainsFunc(before, func(o Op) bool { return o.Entry == member.ID && o.After.Text == teaMember }) {
				t.Errorf("the journal does not tell of the other: %+v", before)
			}
			if list := must(s.List(t.Context(), as(owner), Filter{}))(t); len(list) != 2 {
				t.Errorf("listed: %+v", list)
			}
			for _, query := range []string{"what green tea is Anna fond of?", "what tea does Anna enjoy drinking?"} {
				hits := must(s.Search(t.Context(), Query{Text: query, Scopes: []Scope{Private(owner)}}))(t)
				if len(hits) != 1 {
					t.Errorf("%q finds %+v", query, hits)
				} else if hits[0].Entry.ID == member.ID && hits[0].Shown != teaHead {
					t.Errorf("%q does not tell what is shown: %+v", query, hits[0])
				}
			}
			undone, left, err := s.UndoRun(t.Context(), "night", nil)
			if err != nil || len(left) > 0 || len(undone.Changed) != 1 {
				t.Fatalf("%+v, %+v, %v", undone, left, err)
			}
			shows(t, s, teaHead, chess, teaMember)
			if e := must(s.Get(t.Context(), as(owner), head.ID))(t); e.Source != FromFile {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestForgetOneLine: with a line all goes that it was shown for, whichever is named, and no
// trace is left of any.
func TestForgetOneLine(t *testing.T) {
	t.Parallel()
	for name, what := range map[string]string{"the line": teaHead, "the other text": teaMember} {
		t.Run(name, func(t *testing.T) {
			s, dir, _, _ := twice(t, FTS5)
			found, exact, err := s.Find(t.Context(), as(owner), what)
			if err != nil || !exact {
				t.Fatalf("%+v, %v, %v", found, exact, err)
			}
			done := must(s.Forget(t.Context(), as(owner), found[0].ID))(t)
			if done.Entries != 2 {
				t.Errorf("%+v", done)
			}
			shows(t, s, chess)
			for _, text := range []string{"fond of green", "enjoys drinking"} {
				if found := traces(t, dir, text); len(found) > 0 {
					t.Errorf("%q is left in %q", text, found)
				}
			}
			if hits := must(s.Search(t.Context(), Query{Text: "green tea", Scopes: []Scope{Private(owner)}, Past: true}))(t); len(hits) > 0 {
				t.Errorf("%+v", hits)
			}
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
		s, _, head, member := twice(t, FTS5)
		for id, of := range map[string]string{head.ID: "$head", member.ID: "$member"} {
			must(s.db.Exec(`UPDATE memory SET event = ? WHERE id = ?`, of, id))(t)
		}
		must(s.ForgetEvent(t.Context(), as(owner), event))(t)
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
			s, _, _, _ := twice(t, FlatFile)
			put(t, s, Private(owner), c.file)
			shows(t, s, c.want...)
			if c.again == nil {
				return
			}
			if hits := must(s.Search(t.Context(), Query{Text: "green tea", Scopes: []Scope{Private(owner)}}))(t); len(hits) > 0 {
				t.Errorf("found: %+v", hits)
			}
			must(s.Undo(t.Context(), as(owner), ""))(t)
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
			s, _, head, _ := twice(t, FlatFile)
			all := must(s.Entries(t.Context(), Private(owner)))(t)
			noError(t, do(s, must(s.Get(t.Context(), as(owner), head.ID))(t), all[1]))
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
	all := must(s.Entries(t.Context(), Private(owner)))(t)
	noError(t, s.Pin(t.Context(), as(owner), all[2].ID, true))
	pinned := must(s.Get(t.Context(), as(owner), all[2].ID))(t)
	done := must(s.Apply(t.Context(), "night", []Step{
		{GroupStep, all[0].ID, all[0].Rev, all[1].ID, all[1].Rev}, {GroupStep, pinned.ID, pinned.Rev, all[1].ID, all[1].Rev},
		{GroupStep, all[1].ID, all[1].Rev, all[0].ID, all[0].Rev}, {GroupStep, all[0].ID, all[0].Rev, all[1].ID, all[1].Rev},
	}, nil))(t)
	if diff := cmp.Diff([]string{"the other does not say all of it", "it is pinned", "the other does not say all of it"}, whys(done.Left)); diff != "" {
		t.Error(diff)
	}
	shows(t, s, "the shed has 2 doors", "bikes stand in it")
}

func whys(left []Left) (out []string) {
	for _, l := range left {
		out = append(out, l.Why)
	}
	return out
}
