package task

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/trust"
)

// with is the direct chat of a person in a room.
func with(room, person string) Caller {
	return Caller{trust.Place{Room: room, Person: person, Private: true}, trust.User}
}

// TestReaders: what may not be read at a place is not listed there and cannot be changed, and
// an error says no more of it than of a task that never was.
// Holds L16.
func TestReaders(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	readers := []trust.Readers{trust.Person("@ann:x"), trust.Person("@bob:x"), trust.Room(here), trust.Everybody}
	tasks := map[trust.Readers]Task{}
	for _, r := range readers {
		tasks[r] = add(t, s, Task{Room: here, User: "@ann:x", Content: "of " + string(r), Label: trust.Label{Integrity: trust.User, Readers: r}})
	}
	if _, err := s.Add(ctx, Task{Room: here, Content: "of nobody"}); err == nil {
		t.Error("a task that nobody may read is stored")
	}
	content := "changed"
	for _, c := range []Caller{with(here, "@ann:x"), with(here, "@bob:x"), asks(here, "@ann:x"), with(there, "@ann:x"), asks(there, "@ann:x")} {
		listed, err := s.List(ctx, c.Place, "")
		all, err2 := s.List(ctx, c.Place, All)
		if err != nil || err2 != nil || len(all) != len(listed) {
			t.Fatal(err, err2, len(all), len(listed))
		}
		for _, r := range readers {
			may := c.Room == here && c.MayRead(r)
			if got := slices.ContainsFunc(listed, func(x Task) bool { return x.Label.Readers == r }); got != may {
				t.Errorf("%+v lists the task of %s: %v", c, r, got)
			}
			if may {
				continue
			}
			for name, change := range map[string]func(id string) (Task, error){
				"get":      func(id string) (Task, error) { return s.Get(ctx, c.Place, id) },
				"update":   func(id string) (Task, error) { return s.Update(ctx, c.Place, id, Patch{Content: &content}) },
				"complete": func(id string) (Task, error) { return s.Complete(ctx, c, id, "it is over now") },
				"pause":    func(id string) (Task, error) { return s.Pause(ctx, c.Place, id) },
				"resume":   func(id string) (Task, error) { return s.Resume(ctx, c.Place, id) },
				"delete":   func(id string) (Task, error) { return s.Delete(ctx, c.Place, id) },
			} {
				_, err := change(tasks[r].ID)
				_, never := change("task_zzzzzzzz")
				if !errors.Is(err, ErrNotFound) || !errors.Is(never, ErrNotFound) || strings.ReplaceAll(err.Error(), tasks[r].ID, "task_zzzzzzzz") != never.Error() {
					t.Errorf("%+v: %s of the task of %s: %v, want %v", c, name, r, err, never)
				}
			}
		}
	}
	for r, want := range tasks {
		if got, err := s.Find(ctx, want.ID); err != nil || got != want {
			t.Errorf("the task of %s is now %+v, %v", r, got, err)
		}
	}
	if all, err := s.InRoom(ctx, here, ""); err != nil || len(all) != len(readers) {
		t.Errorf("the operator sees %d tasks, %v", len(all), err)
	}
}

// TestRunsOfReaders: runs are listed where their task may be read.
func TestRunsOfReaders(t *testing.T) {
	p := newPost(t)
	mine := must((&Schedule{Type: daily, At: "09:00"}).Validate(p.now, time.UTC))(t)
	add(t, p.store, Task{Room: here, User: "@ann:x", Content: "see the lawyer", Schedule: &mine, Label: with(here, "@ann:x").Label()})
	p.at(21, 9, 0)
	for _, c := range []struct {
		at   trust.Place
		want int
	}{{with(here, "@ann:x").Place, 1}, {with(here, "@bob:x").Place, 0}, {in(here), 0}, {with(there, "@ann:x").Place, 0}} {
		if runs, err := p.store.Runs(t.Context(), c.at, 10); err != nil || len(runs) != c.want {
			t.Errorf("%+v: %d runs, %v, want %d", c.at, len(runs), err, c.want)
		}
	}
	if runs, err := p.store.AllRuns(t.Context(), "", "", 10); err != nil || len(runs) != 1 {
		t.Errorf("the operator sees %d runs, %v", len(runs), err)
	}
}

// TestGoalReaders: a goal of a direct chat does not exist for those who come in later, and
// theirs does not take its place.
func TestGoalReaders(t *testing.T) {
	g, ok, ctx := newGoals(t), done(t), t.Context()
	ann, bob, group := with(here, "@ann:x"), with(here, "@bob:x"), asks(here, "@bob:x")
	secret := ok(g.Create(ctx, ann, "Leave my husband", "high"))
	ours := ok(g.Create(ctx, group, "Paint the fence", ""))
	for _, c := range []Caller{bob, group, asks(there, "@ann:x")} {
		for name, err := range map[string]error{
			"get": second(g.Get(ctx, c.Place, secret.ID)), "update": second(g.Update(ctx, c, secret.ID, GoalPatch{Priority: "low"})),
			"pause": second(g.Pause(ctx, c, secret.ID)), "resume": second(g.Resume(ctx, c, secret.ID)),
			"complete": second(g.Complete(ctx, c, secret.ID, "x")), "abandon": second(g.Abandon(ctx, c, secret.ID, "x")),
			"checkpoint": second(g.SetCheckpoint(ctx, c, secret.ID, "x", Done)), "decide": second(g.Decide(ctx, c, secret.ID, Decision{Description: "x"})),
			"change":   second(g.ChangeDecision(ctx, c, secret.ID, 1, Decision{Description: "x"})),
			"artifact": second(g.RecordArtifact(ctx, c, secret.ID, Artifact{Action: "created", Path: "x"})),
		} {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%+v: %s: %v", c, name, err)
			}
		}
		if events, err := g.Events(ctx, c.Place, secret.ID); err != nil || len(events) != 0 {
			t.Errorf("%+v: events %+v, %v", c, events, err)
		}
		markers, _, _ := ParseMarkers("[GOAL] Leave my husband - DONE")
		if _, err := g.ApplyIn(ctx, c, c.Room, 7, markers); err != nil {
			t.Error(err)
		}
	}
	for c, want := range map[Caller]string{ann: secret.ID, group: ours.ID, bob: ""} {
		if got, found, err := g.Active(ctx, c.Place); err != nil || got.ID != want || found != (want != "") {
			t.Errorf("%+v: the goal is %+v, %v", c, got, err)
		}
		if got, _, err := g.Shown(ctx, c.Place, time.Time{}); err != nil || got.ID != want {
			t.Errorf("%+v: shown is %+v, %v", c, got, err)
		}
	}
	if got, err := g.Get(ctx, ann.Place, secret.ID); err != nil || got.Status != Active || len(got.Checkpoints) != 0 {
		t.Errorf("the goal is now %+v, %v", got, err)
	}
}

// TestIntegrityFalls: who changes the words of a task or goal is trusted no further than the
// caller; a change of state keeps what it was.
func TestIntegrityFalls(t *testing.T) {
	s, ok, ctx := newStore(t), done(t), t.Context()
	g := s.Goals()
	owner, foreign := asks(here, "@ann:x"), asks(here, "@ann:x")
	owner.Integrity, foreign.Integrity = trust.Owner, trust.Foreign
	text := "new words"
	it := add(t, s, Task{Room: here, Content: "old words", Label: owner.Label()})
	for _, c := range []struct{ by, want trust.Integrity }{{trust.Owner, trust.Owner}, {trust.Guest, trust.Guest}, {trust.Owner, trust.Guest}} {
		got, err := s.Update(ctx, in(here), it.ID, Patch{Content: &text, Integrity: c.by})
		if err != nil || got.Label != (trust.Label{Integrity: c.want, Readers: trust.Room(here)}) {
			t.Errorf("changed by %s: %+v, %v", c.by, got.Label, err)
		}
	}
	if got, err := s.Complete(ctx, foreign, it.ID, "it says so"); err != nil || got.Label.Integrity != trust.Foreign {
		t.Errorf("completed: %+v, %v", got.Label, err)
	}
	goal := ok(g.Create(ctx, owner, "Ship it", ""))
	ok(g.Pause(ctx, foreign, ""))
	if goal = ok(g.Resume(ctx, foreign, "")); goal.Label.Integrity != trust.Owner {
		t.Errorf("paused and resumed: %+v", goal.Label)
	}
	if goal = ok(g.SetCheckpoint(ctx, foreign, "", "Write the code", Done)); goal.Label != (trust.Label{Integrity: trust.Foreign, Readers: trust.Room(here)}) {
		t.Errorf("with a foreign step: %+v", goal.Label)
	}
}

// TestMoveReaders: after an upgrade the members of the new room read what those of the old one
// read, and what is private stays so.
func TestMoveReaders(t *testing.T) {
	s, ok, ctx := newStore(t), done(t), t.Context()
	ann, group := with(here, "@ann:x"), asks(here, "@bob:x")
	for _, c := range []Caller{ann, group} {
		add(t, s, Task{Room: here, Content: "of " + string(c.Readers()), Label: c.Label()})
		ok(s.Goals().Create(ctx, c, "of "+string(c.Readers()), ""))
	}
	for range 2 {
		noError(t, errors.Join(s.Move(ctx, here, there), s.Goals().Move(ctx, here, there)))
	}
	for _, c := range []Caller{ann, group} {
		before := c.Place
		c.Room = there
		tasks, err := s.List(ctx, c.Place, "")
		if want := "of " + string(before.Readers()); err != nil || len(tasks) != 1 || tasks[0].Content != want || tasks[0].Label.Readers != c.Readers() {
			t.Errorf("%+v: %+v, %v", c, tasks, err)
		}
		if goal, found, err := s.Goals().Active(ctx, c.Place); err != nil || !found || goal.Label.Readers != c.Readers() {
			t.Errorf("%+v: %+v, %v", c, goal, err)
		}
		if tasks, err := s.List(ctx, before, ""); err != nil || len(tasks) != 0 {
			t.Errorf("%+v is left behind: %+v, %v", before, tasks, err)
		}
	}
}
