package memory

import (
	"errors"
	"testing"
	"time"
)

// TestQuestions: a question is open to whom it concerns as long as both entries count, is
// decided by its own people alone, and taking the decision back opens it again.
func TestQuestions(t *testing.T) {
	s := openAt(t, t.TempDir())
	me, they := Access{Actor: owner, Scopes: []Scope{Private(owner), Shared}}, Access{Actor: guest, Scopes: []Scope{Private(guest), Shared}}
	day := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	note := func(scope Scope, text string, at time.Time) Entry {
		return added(t, s, Entry{Scope: scope, Text: text, Source: UserExplicit, ObservedAt: at}, owner)
	}
	var pairs [][2]Entry
	for _, scope := range []Scope{Private(owner), Private(guest), Shared} {
		pairs = append(pairs, [2]Entry{note(scope, "lives in Berlin", day), note(scope, "lives in Hamburg", day.AddDate(0, 1, 0))})
	}
	for range 2 { // the second time they are known
		for _, p := range pairs {
			noError(t, s.Wonder(t.Context(), []Question{{Run: "dream_1", Scope: p[0].Scope, First: p[0], Second: p[1], Why: "both are of the same time"}}))
		}
	}
	numbers := func(a Access) (all []int64) {
		t.Helper()
		list := must(s.Questions(t.Context(), a))(t)
		for _, q := range list {
			if q.First.Text != "lives in Berlin" || q.Second.Text != "lives in Hamburg" || !a.sees(q.Scope) {
				t.Errorf("%+v", q)
			}
			all = append(all, q.ID)
		}
		return all
	}
	mine, theirs := numbers(me), numbers(they)
	if len(mine) != 2 || len(theirs) != 2 || mine[1] != theirs[1] || len(numbers(Access{})) != 0 || len(numbers(Access{All: true})) != 3 {
		t.Fatalf("%v, %v", mine, theirs)
	}
	refused := func(a Access, number int64, keep Choice, want error) {
		t.Helper()
		if _, _, err := s.Answer(t.Context(), a, number, keep); !errors.Is(err, want) {
			t.Errorf("%d %s: %v, want %v", number, keep, err, want)
		}
	}
	refused(they, mine[0], KeepFirst, ErrNoQuestion) // another person's
	refused(they, 99, KeepBoth, ErrNoQuestion)
	refused(they, mine[1], KeepFirst, ErrNotYours) // everybody's
	refused(they, mine[1], KeepBoth, ErrNotYours)

	kept, other, err := s.Answer(t.Context(), me, mine[0], KeepFirst) // the older one, against the dates
	if err != nil || kept.ID != pairs[0][0].ID || other.ID != pairs[0][1].ID {
		t.Errorf("%+v, %+v, %v", kept, other, err)
	}
	gone, err := s.Get(t.Context(), me, other.ID)
	if err != nil || gone.State != Superseded || gone.By != kept.ID || !gone.ValidTo.Equal(gone.Since()) {
		t.Errorf("%+v, %v", gone, err)
	}
	refused(me, mine[0], KeepSecond, ErrSettled)
	if got := numbers(me); len(got) != 1 {
		t.Errorf("open: %v", got)
	}
	if u, err := s.Undo(t.Context(), me, ""); err != nil || len(u.Back) != 1 || len(u.Changed) != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	if got := numbers(me); len(got) != 2 {
		t.Errorf("taken back, open: %v", got)
	}

	if _, _, err := s.Answer(t.Context(), they, theirs[0], KeepBoth); err != nil || len(numbers(they)) != 1 {
		t.Errorf("both: %v, %v", err, numbers(they))
	}
	if _, _, err := s.Answer(t.Context(), they, theirs[0], KeepSecond); err != nil { // they have thought again
		t.Error(err)
	}
	if gone, err := s.Get(t.Context(), they, pairs[1][0].ID); err != nil || gone.State != Superseded || !gone.ValidTo.Equal(day.AddDate(0, 1, 0)) {
		t.Errorf("%+v, %v", gone, err)
	}
	must(s.Withdraw(t.Context(), Access{Actor: owner, Scopes: me.Scopes, Owner: true}, pairs[2][0].ID))(t)
	if got := numbers(Access{All: true}); len(got) != 1 || got[0] != mine[0] {
		t.Errorf("the two belong to different people, and yet open: %v", got)
	}
	if _, err := s.Forget(t.Context(), me, pairs[0][1].ID); err != nil || len(numbers(me)) != 0 {
		t.Errorf("forgotten: %v, %v", err, numbers(me))
	}
}
