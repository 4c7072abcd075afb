package task

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTidy: nothing is done to a task with a schedule, to one of another room, to one that has changed, or to one that is not active; what is done is
// given back to the byte, beside what others changed since.
func TestTidy(t *testing.T) {
	s := newStore(t)
	db := s.db
	ctx := t.Context()
	now := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	add := func(content string, schedule bool) Task {
		x := Task{Room: "!a", User: "@me", Content: content}
		if schedule {
			made := must(Schedule{Type: "daily", At: "09:00"}.Validate(s.now(), time.UTC))(t)
			x.Schedule = &made
		}
		return must(s.Add(ctx, labelled(x)))(t)
	}
	plain, twin, daily := add("Water the plants", false), add("water the plants", false), add("Feed the cat", true)
	run := func(x Task, step Tidying) int {
		t.Helper()
		if step.Room == "" {
			step.Room = x.Room
		}
		if step.Updated.IsZero() {
			step.Updated = x.Updated
		}
		step.ID = x.ID
		tx := must(db.BeginTx(ctx, nil))(t)
		defer func() { _ = tx.Rollback() }()
		before := must(get(ctx, tx, x.Place(), x.ID))(t)
		done := must(s.Tidy(ctx, tx, now, []Tidying{step}))(t)
		if len(done) == 0 {
			return 0
		}
		if left, err := s.Untidy(ctx, tx, done); err != nil || len(left) > 0 {
			t.Errorf("%s: %q, %v", step.Kind, left, err)
		}
		if diff := cmp.Diff(before, must(get(ctx, tx, x.Place(), x.ID))(t)); diff != "" {
			t.Errorf("%s: %s", step.Kind, diff)
		}
		return len(done)
	}
	steps := []Tidying{
		{Kind: TidyMerge, Into: twin.ID, IntoAt: twin.Updated, Reason: "the same"}, {Kind: TidyPause, Reason: "long ago"},
	}
	for _, step := range steps {
		if n := run(plain, step); n != 1 {
			t.Errorf("%s: not done", step.Kind)
		}
		elsewhere, changed := step, step
		elsewhere.Room, changed.Updated = "!0", plain.Updated.Add(-time.Millisecond)
		if n := run(plain, elsewhere) + run(plain, changed); n != 0 {
			t.Errorf("%s: done in another room, or to what has changed", step.Kind)
		}
		if n := run(daily, step); n != 0 {
			t.Errorf("%s of a task with a schedule: %d", step.Kind, n)
		}
	}
	for _, step := range []Tidying{
		{Kind: TidyMerge, Into: plain.ID, IntoAt: plain.Updated},
		{Kind: TidyMerge, Into: "task_none", IntoAt: plain.Updated}, {Kind: TidyMerge, Into: twin.ID, IntoAt: plain.Updated.Add(time.Hour)},
	} {
		if n := run(plain, step); n != 0 {
			t.Errorf("%+v: done", step)
		}
	}
	must(s.Pause(ctx, in("!a"), plain.ID))(t)
	paused := must(get(ctx, db, in("!a"), plain.ID))(t)
	if n := run(paused, steps[0]); n != 0 {
		t.Error("a paused task was merged")
	}
}
