package memory

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// storeAs adds text on behalf of guest with an integrity, as one message says it.
func storeAs(t testing.TB, s *Store, scope Scope, text string, i trust.Integrity) Entry {
	t.Helper()
	return added(t, s, Entry{Scope: scope, Text: text, Source: Assistant, Integrity: i, ObservedAt: today.AddDate(0, 0, -9+int(i))}, guest)
}

func nothingElse(context.Context, *sql.Tx) error { return nil }

// integrityOf is the stored integrity of the entry id.
func integrityOf(t testing.TB, s *Store, id string) trust.Integrity {
	t.Helper()
	return expect.Must(s.Get(t.Context(), Access{All: true}, id))(t).Integrity
}

// TestIntegrityIsStored: every reader of entries gets the integrity that was stored, and
// what has none is foreign.
func TestIntegrityIsStored(t *testing.T) {
	t.Parallel()
	s, ctx, mine := openAt(t, t.TempDir()), t.Context(), Private(guest)
	for text, i := range map[string]trust.Integrity{"tea": trust.Owner, "cake": trust.User, "milk": trust.Guest, "rum": trust.Foreign} {
		id := storeAs(t, s, mine, text, i).ID
		hits := expect.Must(s.Search(ctx, Query{Text: text, Scopes: []Scope{mine}}))(t)
		expect.False(t, len(hits) != 1 || hits[0].Integrity() != i || integrityOf(t, s, id) != i, "%s: %+v", text, hits)
	}
	for _, e := range slices.Concat(expect.Must(s.List(ctx, as(guest), Filter{}))(t), expect.Must(s.WorkingSet(ctx, mine))(t)) {
		expect.False(t, e.Integrity != integrityOf(t, s, e.ID), "%s is %v", e.Text, e.Integrity)
	}
}

// TestSaidAgainIntegrity: saying the same with more trust raises an entry, with less changes
// nothing, its date neither; a person's repeating is still noted.
func TestSaidAgainIntegrity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was, again, want trust.Integrity
		dated, noted     bool // the date is that of again; its message is noted
	}{
		"a person says what a file said": {trust.Foreign, trust.User, trust.User, true, true},
		"a file says what a person said": {trust.User, trust.Foreign, trust.User, false, false},
		"a guest after the owner":        {trust.Owner, trust.Guest, trust.Owner, false, false},
		"a person after the owner":       {trust.Owner, trust.User, trust.Owner, false, true},
		"two people":                     {trust.User, trust.User, trust.User, true, true}, "two files": {trust.Foreign, trust.Foreign, trust.Foreign, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, mine, day := t.Context(), Private(guest), today.AddDate(0, 0, -5)
			for way, again := range map[string]func(*Store, Entry) (Entry, error){
				"add": func(s *Store, e Entry) (Entry, error) { e, _, err := s.Add(ctx, e, guest); return e, err },
				"learn": func(s *Store, e Entry) (Entry, error) {
					l, err := s.Learn(ctx, "harvest", []Entry{e}, nothingElse)
					if err != nil {
						return Entry{}, err
					}
					return l[0].Entry, l[0].Refused
				},
			} {
				s := openAt(t, t.TempDir())
				first := added(t, s, Entry{Scope: mine, Text: "tea", Source: Assistant, Integrity: c.was, Event: "$1", ObservedAt: day}, guest)
				got, err := again(s, Entry{Scope: mine, Text: "Tea.", Source: Harvest, Integrity: c.again, Event: "$2", ObservedAt: today})
				if err != nil || got.ID != first.ID {
					t.Fatalf("%s: %+v, %v", way, got, err)
				}
				stored := expect.Must(s.Get(ctx, as(guest), first.ID))(t)
				if got.Integrity != c.want || stored.Integrity != c.want || stored.ObservedAt.After(day) != c.dated {
					t.Errorf("%s: %v, stored %v of %v", way, got.Integrity, stored.Integrity, stored.ObservedAt)
				}
				var noted bool
				if err := s.db.QueryRow(`SELECT EXISTS (SELECT 1 FROM memory_source WHERE event = '$2')`).Scan(&noted); err != nil || noted != c.noted {
					t.Errorf("%s: noted %v, %v", way, noted, err)
				}
			}
		})
	}
}

// TestSharedForeignEntry: what a person says is stored, though foreign text that everybody
// may read says the same.
func TestSharedForeignEntry(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	storeAs(t, s, Shared, "tea", trust.Foreign)
	said := Entry{Scope: Private(guest), Text: "tea", Source: Harvest, Integrity: trust.User}
	l := expect.Must(s.Learn(t.Context(), "harvest", []Entry{said}, nothingElse))(t)
	expect.False(t, !l[0].Added || l[0].Entry.Integrity != trust.User, "%+v", l)
}

// TestUndoIntegrity: taking a change back brings the integrity back that it changed, and
// leaves the one that it did not. Foreign stays foreign in the journal.
func TestUndoIntegrity(t *testing.T) {
	t.Parallel()
	s, ctx, mine := openAt(t, t.TempDir()), t.Context(), Private(guest)
	e := storeAs(t, s, mine, "tea", trust.Foreign)
	expect.OK(t, s.Retire(ctx, as(guest), e.ID))
	expect.Must(s.Undo(ctx, as(guest), ""))(t)
	expect.Equal(t, integrityOf(t, s, e.ID), trust.Foreign, "retired and taken back")
	again := func() { storeAs(t, s, mine, "tea", trust.User) }
	again()
	expect.Must(s.Undo(ctx, as(guest), ""))(t)
	expect.Equal(t, integrityOf(t, s, e.ID), trust.Foreign, "said again by a person, and that taken back")
	expect.OK(t, s.Pin(ctx, as(guest), e.ID, true))
	pinned := expect.Must(s.History(ctx, as(guest), e.ID))(t)
	again()
	expect.Must(s.Undo(ctx, as(guest), pinned[len(pinned)-1].Batch))(t)
	expect.Equal(t, integrityOf(t, s, e.ID), trust.User, "said again, then an older change taken back")
	for _, o := range expect.Must(s.History(ctx, as(guest), e.ID))(t)[:1] {
		expect.Equal(t, o.After.Integrity, trust.Foreign, "the journal says")
	}
}

// TestJournalBeforeLabels: operations without an integrity are those of people.
func TestJournalBeforeLabels(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	e := storeAs(t, s, Private(guest), "tea", trust.Foreign)
	expect.Must(s.db.Exec(`UPDATE memory_op SET after = json_remove(after, '$.integrity')`))(t)
	expect.Equal(t, expect.Must(s.History(t.Context(), as(guest), e.ID))(t)[0].After.Integrity, trust.User, "stored")
}

// TestStepsByIntegrity: no step of a plan replaces an entry by a less trusted one; a more trusted
// successor keeps its own integrity.
func TestStepsByIntegrity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind  StepKind
		e, by trust.Integrity
		done  bool
	}{
		{MergeStep, trust.User, trust.Foreign, false}, {SupersedeStep, trust.User, trust.Foreign, false},
		{GroupStep, trust.User, trust.Foreign, false}, {SupersedeStep, trust.Owner, trust.User, false},
		{MergeStep, trust.Foreign, trust.User, true}, {SupersedeStep, trust.Foreign, trust.User, true},
		{GroupStep, trust.Foreign, trust.User, true}, {MergeStep, trust.Foreign, trust.Foreign, true},
		{ArchiveStep, trust.User, trust.Foreign, true},
	} {
		s, mine := openAt(t, t.TempDir()), Private(guest)
		add := func(text string, i trust.Integrity, days int) Entry {
			return added(t, s, Entry{Scope: mine, Text: text, Source: Harvest, Integrity: i, ObservedAt: today.AddDate(0, 0, -9+days)}, "test")
		}
		e, by := add("Ada likes tea", c.e, 0), add("Ada likes tea a lot", c.by, 3)
		if c.kind == MergeStep {
			by = add("Yes: Ada likes tea", c.by, -1) // older, so that its date could grow
		}
		done := expect.Must(s.Apply(t.Context(), "night", []Step{{Kind: c.kind, ID: e.ID, Rev: e.Rev, By: by.ID, ByRev: by.Rev}}, nil))(t)
		expect.Equal(t, len(done.Done) == 1, c.done, c)
		after := expect.Must(s.Get(t.Context(), Access{All: true}, by.ID))(t)
		if after.Integrity != c.by || c.kind == MergeStep && c.e < c.by && after.ObservedAt.After(by.ObservedAt) {
			t.Errorf("%+v: it is %v of %v now", c, after.Integrity, after.ObservedAt)
		}
	}
}

// TestFileIntegrity: what is written into a file by hand is the owner's. The lines that the
// program wrote keep their integrity, also if it no longer knows that it wrote them.
func TestFileIntegrity(t *testing.T) {
	t.Parallel()
	s, mine := openAt(t, t.TempDir()), Private(guest)
	foreign, user := storeAs(t, s, mine, "rum", trust.Foreign), storeAs(t, s, mine, "cake", trust.User)
	expect.Must(s.db.Exec(`UPDATE memory_file SET hash = '', lines = ''`))(t)
	put(t, s, mine, strings.Replace(onDisk(t, s, mine), "cake", "cake with cream", 1)+"tea\n")
	want := map[string]trust.Integrity{"rum": trust.Foreign, "cake": trust.User, "cake with cream": trust.Owner, "tea": trust.Owner}
	for _, e := range expect.Must(s.WorkingSet(t.Context(), mine))(t) {
		expect.False(t, e.Integrity != want[e.Text], "%s is %v", e.Text, e.Integrity)
	}
	expect.False(t, integrityOf(t, s, foreign.ID) != trust.Foreign || integrityOf(t, s, user.ID) != trust.User, "entries that are there have another integrity now")
}

// TestTurnIntegrity: a message is found with its integrity and that of its neighbours. An
// edit brings its own.
func TestTurnIntegrity(t *testing.T) {
	t.Parallel()
	s, ctx, mine := openAt(t, t.TempDir()), t.Context(), Private(guest)
	say := func(event string, seq int, i trust.Integrity, text string) {
		t.Helper()
		said := Turn{Scope: mine, Event: event, Sender: guest, At: today, Conversation: "x", Seq: seq, Text: text, Integrity: i}
		expect.OK(t, s.IndexTurns(ctx, said))
	}
	find := func() trust.Integrity {
		t.Helper()
		hits := expect.Must(s.Search(ctx, Query{Text: "harbour", Scopes: []Scope{mine}, Turns: true}))(t)
		if len(hits) == 0 || hits[0].Turn == nil || hits[0].Turn.Event != "$1" {
			t.Fatalf("%+v", hits)
		}
		return hits[0].Integrity()
	}
	say("$1", 1, trust.Owner, "the harbour is nice")
	expect.Equal(t, find(), trust.Owner, "alone")
	say("$2", 2, trust.Foreign, "so they say")
	expect.Equal(t, find(), trust.Foreign, "beside a foreign message")
	say("$2", 2, trust.User, "so I say")
	expect.Equal(t, find(), trust.User, "beside an edited message")
}
