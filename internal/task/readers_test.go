package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

// with is the direct chat of a person in a room.
func with(room, person string) trust.Caller {
	return trust.Caller{Place: trust.Place{Room: room, Person: person, Private: true}, Integrity: trust.User}
}

// TestReaders: an unreadable task is not listed, cannot be changed, and its error equals that of a missing one.
// Holds L16.
func TestReaders(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	readers := []trust.Readers{trust.PersonReaders("@ann:x"), trust.PersonReaders("@bob:x"), trust.RoomReaders(here), trust.Everybody}
	tasks := map[trust.Readers]Task{}
	for _, r := range readers {
		tasks[r] = add(t, s, Task{Room: here, User: "@ann:x", Content: "of " + string(r), Label: trust.Label{Integrity: trust.User, Readers: r}})
	}
	if _, err := s.Add(ctx, Task{Room: here, Content: "of nobody"}); err == nil {
		t.Error("a task that nobody may read is stored")
	}
	content := "changed"
	for _, c := range []trust.Caller{with(here, "@ann:x"), with(here, "@bob:x"), asks(here, "@ann:x"), with(there, "@ann:x"), asks(there, "@ann:x")} {
		listed, err := s.List(ctx, c.Place, "")
		all, err2 := s.List(ctx, c.Place, All)
		if err != nil || err2 != nil || len(all) != len(listed) {
			t.Fatal(err, err2, len(all), len(listed))
		}
		for _, r := range readers {
			may := c.Room == here && c.MayRead(r)
			expect.Equal(t, slices.ContainsFunc(listed, func(x Task) bool { return x.Label.Readers == r }), may, "%+v lists the task of %s", c, r)
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
				if !errors.Is(err, errNotFound) || !errors.Is(never, errNotFound) || strings.ReplaceAll(err.Error(), tasks[r].ID, "task_zzzzzzzz") != never.Error() {
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
	expect.Equal(t, len(expect.Must(s.InRoom(ctx, here, ""))(t)), len(readers), "tasks that the operator sees")
}

// TestIntegrityFalls: a caller's words cap the task's integrity.
func TestIntegrityFalls(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	owner, foreign := asks(here, "@ann:x"), asks(here, "@ann:x")
	owner.Integrity, foreign.Integrity = trust.Owner, trust.Foreign
	text := "new words"
	it := add(t, s, Task{Room: here, Content: "old words", Label: owner.Label()})
	for _, c := range []struct{ by, want trust.Integrity }{{trust.Owner, trust.Owner}, {trust.Guest, trust.Guest}, {trust.Owner, trust.Guest}} {
		got, err := s.Update(ctx, in(here), it.ID, Patch{Content: &text, Integrity: c.by})
		if err != nil || got.Label != (trust.Label{Integrity: c.want, Readers: trust.RoomReaders(here)}) {
			t.Errorf("changed by %s: %+v, %v", c.by, got.Label, err)
		}
	}
	if got, err := s.Complete(ctx, foreign, it.ID, "it says so"); err != nil || got.Label.Integrity != trust.Foreign {
		t.Errorf("completed: %+v, %v", got.Label, err)
	}
}

// TestMoveReaders: after a room upgrade, room tasks are readable in the new room and private ones stay private.
func TestMoveReaders(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	ann, group := with(here, "@ann:x"), asks(here, "@bob:x")
	for _, c := range []trust.Caller{ann, group} {
		add(t, s, Task{Room: here, Content: "of " + string(c.Readers()), Label: c.Label()})
	}
	for range 2 {
		expect.OK(t, s.Move(ctx, here, there))
	}
	for _, c := range []trust.Caller{ann, group} {
		before := c.Place
		c.Room = there
		tasks, err := s.List(ctx, c.Place, "")
		if want := "of " + string(before.Readers()); err != nil || len(tasks) != 1 || tasks[0].Content != want || tasks[0].Label.Readers != c.Readers() {
			t.Errorf("%+v: %+v, %v", c, tasks, err)
		}
		if tasks, err := s.List(ctx, before, ""); err != nil || len(tasks) != 0 {
			t.Errorf("%+v is left behind: %+v, %v", before, tasks, err)
		}
	}
}

// TestOthersReadRoom: a task whose room has other readers does not run there, even if claimed
// already. It moves to its readers' room, or is paused with a reason.
func TestOthersReadRoom(t *testing.T) {
	for _, chat := range []string{"", "!chat:x"} {
		t.Run("direct chat "+chat, func(t *testing.T) {
			p := newPost(t)
			shared := false
			p.rooms.room = func(_ context.Context, it Task) (string, error) {
				if it.Room == here && shared && it.Label.Readers.Person() != "" {
					return chat, nil
				}
				return it.Room, nil
			}
			schedule := Schedule{Type: daily, At: "09:00"}
			secret := add(t, p.store, Task{Room: here, User: "@ann:x", Content: "secret", Schedule: &schedule, Label: with(here, "@ann:x").Label()})
			early := Schedule{Type: daily, At: "08:30"}
			handed := add(t, p.store, Task{Room: here, User: "@ann:x", Content: "handed over", Schedule: &early, Label: with(here, "@ann:x").Label()})
			add(t, p.store, Task{Room: here, Content: "ours", Schedule: &schedule})
			p.now = time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
			if p.look(); len(p.inbox) != 1 {
				t.Fatalf("handed over: %+v", p.inbox)
			}
			shared = true
			p.work()
			p.at(21, 9, 0)
			p.at(21, 9, 1)
			for _, it := range []Task{secret, handed} {
				got, err := p.store.Find(t.Context(), it.ID)
				switch {
				case err != nil:
					t.Fatal(err)
				case chat == "" && (got.Status != Paused || got.Reason != otherReadersReason || got.Runs != 0 || !got.NextDue.IsZero()):
					t.Errorf("without a direct chat: %+v", got)
				case chat != "" && (got.Room != chat || got.Status != Active || got.Runs != 1 || got.Label != it.Label):
					t.Errorf("with a direct chat: %+v", got)
				}
			}
			if chat == "" {
				p.heard("ours 21 09:00")
			} else {
				p.heard("ours 21 09:00", "secret 21 09:00", "handed over 21 08:30")
			}
			runs, err := p.store.Runs(t.Context(), "", handed.ID, 10)
			if err != nil || len(runs) != 1 || chat == "" && (runs[0].State != runSkipped || !strings.Contains(runs[0].Result.String(), "other people")) || chat != "" && runs[0].State != runDone {
				t.Errorf("runs %+v, %v", runs, err)
			}
		})
	}
}

// TestMergedIntegrity: the kept task gets the lower integrity of both; only tasks of the same readers merge.
func TestMergedIntegrity(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	foreign := asks(here, "@ann:x").Label()
	foreign.Integrity = trust.Foreign
	stays := add(t, s, Task{Room: here, Content: "water the plants", Label: asks(here, "@ann:x").Label()})
	goes := add(t, s, Task{Room: here, Content: "water the plants", Label: foreign})
	secret := add(t, s, Task{Room: here, Content: "water the plants", Label: with(here, "@ann:x").Label()})
	tx := expect.Must(s.db.BeginTx(ctx, nil))(t)
	defer func() { _ = tx.Rollback() }()
	done, err := s.ApplyTidySteps(ctx, tx, s.now(), []TidyStep{
		{Kind: TidyMerge, Room: here, ID: secret.ID, Updated: secret.Updated, Into: stays.ID, IntoAt: stays.Updated, Reason: "the same"},
		{Kind: TidyMerge, Room: here, ID: goes.ID, Updated: goes.Updated, Into: stays.ID, IntoAt: stays.Updated, Reason: "the same"},
	})
	if err != nil || len(done) != 1 || done[0].ID != goes.ID {
		t.Errorf("merged %+v, %v", done, err)
	}
	expect.Equal(t, expect.Must(getReadable(ctx, tx, in(here), stays.ID))(t).Label, foreign)
}

// every is a schedule due each minute.
func every(t *testing.T, p *post) *Schedule {
	t.Helper()
	s := expect.Must(Schedule{Type: interval, IntervalSeconds: 60}.Validate(p.now, time.UTC))(t)
	return &s
}

// labelOf is the label of a task of the room.
func labelOf(room string) trust.Label {
	return trust.Label{Integrity: trust.User, Readers: trust.RoomReaders(room)}
}

// TestActiveTaskLimits: people have a limit of active tasks with a prompt, on every path;
// reminders do not count.
func TestActiveTaskLimits(t *testing.T) {
	p := newPost(t)
	ctx, minutely := t.Context(), every(t, p)
	work := func(room, user string, i int) (Task, error) {
		return p.store.Add(ctx, Task{Room: room, User: user, Label: labelOf(room), Content: fmt.Sprint("work ", i), Schedule: minutely, Prompt: "think"})
	}
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "no more are allowed: tell the person") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range DefaultPerPerson {
		expect.Must(work(fmt.Sprint("!", i), "@ann:x", i))(t)
	}
	_, err := work("!new", "@ann:x", 0)
	refused("one more of the person", err)
	reminder := expect.Must(p.store.Add(ctx, Task{Room: "!new", User: "@ann:x", Label: labelOf("!new"), Content: "tea", Schedule: minutely}))(t)
	plan := expect.Must(p.store.Add(ctx, Task{Room: "!new", User: "@ann:x", Label: labelOf("!new"), Content: "plan", Prompt: "think"}))(t)
	prompt := "think"
	_, err = p.store.Update(ctx, trust.Place{Room: "!new"}, reminder.ID, Patch{Prompt: &prompt})
	refused("a reminder that becomes work", err)
	_, err = p.store.Update(ctx, trust.Place{Room: "!new"}, plan.ID, Patch{Schedule: minutely})
	refused("work that gets a time", err)
	mine, err := p.store.List(ctx, trust.Place{Room: "!0"}, "")
	if err != nil || len(mine) != 1 {
		t.Fatal(mine, err)
	}
	if _, err := p.store.Update(ctx, trust.Place{Room: "!0"}, mine[0].ID, Patch{Prompt: &prompt}); err != nil {
		t.Errorf("a change of what counts already: %v", err)
	}
	expect.Must(p.store.Pause(ctx, trust.Place{Room: "!0"}, mine[0].ID))(t)
	if _, err := work("!new", "@ann:x", 0); err != nil {
		t.Errorf("after one was paused: %v", err)
	}
	_, err = p.store.Resume(ctx, trust.Place{Room: "!0"}, mine[0].ID)
	refused("resuming one too many", err)
	expect.Equal(t, expect.Must(p.store.Get(ctx, trust.Place{Room: "!0"}, mine[0].ID))(t).Status, Paused)
}

// TestRunsPerDay: model runs in 24 hours are limited over all rooms and restarts. Further runs are
// postponed; reminders continue.
func TestRunsPerDay(t *testing.T) {
	p := newPost(t)
	db := p.store.db
	p.store.cfg.RunsPerDay = 10
	for _, room := range []string{here, "!there"} {
		add(t, p.store, Task{Room: room, User: "@ann:x", Content: "work", Schedule: every(t, p), Prompt: "think"})
	}
	tea := p.add("tea", "", Schedule{Type: daily, At: "08:30"})
	work := func() (did int) {
		p.look()
		for _, r := range p.inbox {
			did += min(len(r.Task.Prompt), 1)
		}
		p.work()
		return did
	}
	did := 0
	for range 40 {
		p.now = p.now.Add(time.Minute)
		did += work()
	}
	p.restart(db)
	p.store.cfg.RunsPerDay = 10
	for range 20 {
		p.now = p.now.Add(time.Minute)
		did += work()
	}
	expect.Equal(t, did, 10, "times the model worked")
	if got := p.task(tea.ID); got.Runs != 1 {
		t.Errorf("the reminder ran %d times", got.Runs)
	}
	p.now = p.now.Add(24 * time.Hour)
	expect.Equal(t, work(), 2, "a day later runs went on")
}
