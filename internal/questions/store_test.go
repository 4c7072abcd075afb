package questions

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"reverie/internal/memory"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const owner, guest = "@owner:x", "@guest:x"

func open(t *testing.T) Store {
	t.Helper()
	dir := t.TempDir()
	db := expect.Must(storetest.Open(t, filepath.Join(dir, "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	return Store{db, expect.Must(memory.Open(t.Context(), memory.Config{DB: db, Dir: dir, Owner: owner}))(t)}
}

// added stores e on behalf of actor.
func added(t *testing.T, s Store, e memory.Entry, actor string) memory.Entry {
	t.Helper()
	e, _, err := s.Memory.Add(t.Context(), e, actor)
	expect.OK(t, err)
	return e
}

// TestQuestions: a question is open while both entries are active, only its own people answer it,
// and undoing the answer reopens it.
func TestQuestions(t *testing.T) {
	s := open(t)
	me, they := memory.Access{Actor: owner, Scopes: []memory.Scope{memory.Private(owner), memory.Shared}}, memory.Access{Actor: guest, Scopes: []memory.Scope{memory.Private(guest), memory.Shared}}
	day := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	note := func(scope memory.Scope, text string, at time.Time) memory.Entry {
		return added(t, s, memory.Entry{Scope: scope, Text: text, Source: memory.UserExplicit, ObservedAt: at}, owner)
	}
	var pairs [][2]memory.Entry
	for _, scope := range []memory.Scope{memory.Private(owner), memory.Private(guest), memory.Shared} {
		pairs = append(pairs, [2]memory.Entry{note(scope, "lives in Berlin", day), note(scope, "lives in Hamburg", day.AddDate(0, 1, 0))})
	}
	for range 2 { // the second time they are known
		for _, p := range pairs {
			expect.Must(s.Add(t.Context(), Question{Run: "dream_1", Scope: p[0].Scope, First: p[0], Second: p[1], Why: "both are from the same time"}))(t)
		}
	}
	numbers := func(a memory.Access) (all []int64) {
		t.Helper()
		list := expect.Must(s.Questions(t.Context(), a))(t)
		for _, q := range list {
			expect.False(t, q.First.Text != "lives in Berlin" || q.Second.Text != "lives in Hamburg" || !a.Sees(q.Scope), "%+v", q)
			all = append(all, q.ID)
		}
		return all
	}
	mine, theirs := numbers(me), numbers(they)
	if len(mine) != 2 || len(theirs) != 2 || mine[1] != theirs[1] || len(numbers(memory.Access{})) != 0 || len(numbers(memory.Access{All: true})) != 3 {
		t.Fatalf("%v, %v", mine, theirs)
	}
	refused := func(a memory.Access, number int64, keep Choice, want error) {
		t.Helper()
		if _, _, err := s.Answer(t.Context(), a, number, keep); !errors.Is(err, want) {
			t.Errorf("%d %s: %v, want %v", number, keep, err, want)
		}
	}
	refused(they, mine[0], KeepFirst, ErrNoQuestion) // another person's
	refused(they, 99, KeepBoth, ErrNoQuestion)
	refused(they, mine[1], KeepFirst, memory.ErrNotYours) // everybody's
	refused(they, mine[1], KeepBoth, memory.ErrNotYours)

	kept, other, err := s.Answer(t.Context(), me, mine[0], KeepFirst) // the older one, against the dates
	expect.False(t, err != nil || kept.ID != pairs[0][0].ID || other.ID != pairs[0][1].ID, "%+v, %+v, %v", kept, other, err)
	gone, err := s.Memory.Get(t.Context(), me, other.ID)
	expect.False(t, err != nil || gone.State != memory.Superseded || gone.By != kept.ID || !gone.ValidTo.Equal(gone.Since()), "%+v, %v", gone, err)
	refused(me, mine[0], keepSecond, ErrObsolete)
	expect.Len(t, numbers(me), 1, "open")
	if u, err := s.Memory.Undo(t.Context(), me, ""); err != nil || len(u.Restored) != 1 || len(u.Changed) != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	expect.Len(t, numbers(me), 2, "taken back, open")

	if _, _, err := s.Answer(t.Context(), they, theirs[0], KeepBoth); err != nil || len(numbers(they)) != 1 {
		t.Errorf("both: %v, %v", err, numbers(they))
	}
	if _, _, err := s.Answer(t.Context(), they, theirs[0], keepSecond); err != nil { // they have thought again
		t.Error(err)
	}
	if gone, err := s.Memory.Get(t.Context(), they, pairs[1][0].ID); err != nil || gone.State != memory.Superseded || !gone.ValidTo.Equal(day.AddDate(0, 1, 0)) {
		t.Errorf("%+v, %v", gone, err)
	}
	expect.Must(s.Memory.Unshare(t.Context(), memory.Access{Actor: owner, Scopes: me.Scopes, Owner: true}, pairs[2][0].ID))(t)
	if got := numbers(memory.Access{All: true}); len(got) != 1 || got[0] != mine[0] {
		t.Errorf("the two belong to different people, and yet open: %v", got)
	}
	if _, err := s.Memory.Forget(t.Context(), me, pairs[0][1].ID); err != nil || len(numbers(me)) != 0 {
		t.Errorf("forgotten: %v, %v", err, numbers(me))
	}
}

// TestAnswerRaisesIntegrity: an entry kept by a person gets that person's integrity.
func TestAnswerRaisesIntegrity(t *testing.T) {
	t.Parallel()
	s, mine, ctx := open(t), memory.Private(guest), t.Context()
	first, second := added(t, s, memory.Entry{Scope: mine, Text: "lives in Berlin", Source: memory.Assistant, Integrity: trust.User}, guest),
		added(t, s, memory.Entry{Scope: mine, Text: "lives in Hamburg", Source: memory.Assistant, Integrity: trust.Foreign}, guest)
	expect.Must(s.Add(ctx, Question{Run: "dream_1", Scope: mine, First: first, Second: second}))(t)
	a := memory.Access{Actor: guest, Scopes: []memory.Scope{mine, memory.Shared}, Integrity: trust.User}
	q := expect.Must(s.Questions(ctx, a))(t)
	if _, _, err := s.Answer(ctx, a, q[0].ID, keepSecond); err != nil {
		t.Fatal(err)
	}
	expect.Equal(t, expect.Must(s.Memory.Get(ctx, a, second.ID))(t).Integrity, trust.User, "it")
	expect.Must(s.Memory.Undo(ctx, a, ""))(t)
	expect.Equal(t, expect.Must(s.Memory.Get(ctx, a, second.ID))(t).Integrity, trust.Foreign, "taken back")
}
