package task

import (
	"errors"
	"testing"

	"reverie/internal/trust"
)

// TestTakeBack: what is open and was made for a message goes with it, once; not what is
// done, what others had a say in, or what another room has.
func TestTakeBack(t *testing.T) {
	s := newStore(t)
	add := func(room, content, asked string) Task {
		t.Helper()
		return add(t, s, Task{Room: room, Content: content, Asked: asked})
	}
	gone, paused, done := add("!a", "open", "$1"), add("!a", "paused", "$1"), add("!a", "done", "$1")
	add("!a", "another's", "$2")
	add("!a", "nobody's", "")
	add("!b", "elsewhere", "$1")
	own, others := add("!a", "own change", "$1"), add("!a", "others' change", "$1")
	must(s.Pause(t.Context(), in("!a"), paused.ID))(t)
	must(s.Complete(t.Context(), asks("!a", ""), done.ID, "it was done"))(t)
	first := 1
	for _, p := range []struct {
		id, asked string
	}{{own.ID, "$1"}, {others.ID, "$3"}} {
		must(s.Update(t.Context(), in("!a"), p.id, Patch{Priority: &first, Asked: p.asked}))(t)
	}
	if _, err := s.Update(t.Context(), in("!a"), own.ID, Patch{Asked: "$1"}); err == nil {
		t.Error("a change of nothing is one")
	}
	for _, want := range []int{3, 0} {
		if n, words, err := s.MadeFor(t.Context(), in("!a"), []string{"$0", "$1", ""}); err != nil || n != 3 || len(words) != want {
			t.Errorf("%d tasks were made for it, %q, %v", n, words, err)
		}
		noError(t, s.TakeBack(t.Context(), "!a", []string{"$0", "$1", ""}))
	}
	for _, id := range []string{gone.ID, paused.ID, own.ID} {
		var status, content string
		if err := s.db.QueryRowContext(t.Context(), `SELECT status, content FROM task WHERE id = ?`, id).Scan(&status, &content); err != nil || status != "deleted" || content != takenBack {
			t.Errorf("%s is %s: %s, %v", id, status, content, err)
		}
	}
	left, err := s.List(t.Context(), in("!a"), "")
	if err != nil || len(left) != 3 {
		t.Errorf("%d tasks are left, %v", len(left), err)
	}
	if it, err := s.Get(t.Context(), in("!a"), done.ID); err != nil || it.Content != "done" {
		t.Errorf("what was done is %+v, %v", it, err)
	}
	if left, err := s.List(t.Context(), in("!b"), ""); err != nil || len(left) != 1 {
		t.Errorf("elsewhere %d, %v", len(left), err)
	}
}

// TestTakeBackOfReaders: what a message asked for in private goes with it wherever it is taken
// back, but is counted only where it may be read.
func TestTakeBackOfReaders(t *testing.T) {
	s, ctx, events := newStore(t), t.Context(), []string{"$1"}
	secret := add(t, s, Task{Room: here, Content: "see the lawyer", Asked: "$1", Label: with(here, "@ann:x").Label()})
	for at, want := range map[trust.Place]int{with(here, "@ann:x").Place: 1, in(here): 0, with(here, "@bob:x").Place: 0} {
		if n, words, err := s.MadeFor(ctx, at, events); err != nil || n != want || len(words) != 1 {
			t.Errorf("%+v: %d, %q, %v", at, n, words, err)
		}
	}
	noError(t, s.TakeBack(ctx, here, events))
	if _, err := s.Get(ctx, with(here, "@ann:x").Place, secret.ID); !errors.Is(err, ErrNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}
