package task

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/i18n"
	"reverie/internal/store/storetest"
	"reverie/internal/test/expect"
	"reverie/internal/trust"
)

const here, there = "!here:example.org", "!there:example.org"

type clockwork struct{ t time.Time }

func (c *clockwork) now() time.Time {
	c.t = c.t.Add(time.Second)
	return c.t
}

func newStore(t testing.TB) *Store {
	t.Helper()
	db := expect.Must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	return NewStore(db, Config{Now: (&clockwork{at(t)}).now})
}

func add(t testing.TB, s *Store, task Task) Task {
	t.Helper()
	return expect.Must(s.Add(t.Context(), labelled(task)))(t)
}

func contents(t testing.TB, s *Store, room string, status Status) string {
	t.Helper()
	tasks := expect.Must(s.List(t.Context(), in(room), status))(t)
	var out []string
	for _, task := range tasks {
		out = append(out, task.Content)
	}
	return strings.Join(out, "|")
}

func TestAdd(t *testing.T) {
	s := newStore(t)
	schedule := &Schedule{Type: "daily", At: "09:00"}
	got := add(t, s, Task{Room: here, User: "@me:x", Content: " Fix\n auth  bug ", Priority: 2, Schedule: schedule, Prompt: "Look\nat it", Background: true})
	if !regexp.MustCompile(`^task_[a-z2-7]{8}$`).MatchString(got.ID) {
		t.Errorf("id %q", got.ID)
	}
	now := time.Date(2026, 11, 21, 8, 14, 31, 0, time.UTC)
	want := Task{ID: got.ID, Room: here, User: "@me:x", Label: asks(here, "").Label(), Content: "Fix auth bug", Priority: 2, Status: Active, Schedule: schedule,
		Prompt: "Look\nat it", Background: true, CatchUp: catchOnce, Created: now, Updated: now,
		Scheduled: now, NextDue: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	listed := expect.Must(s.List(t.Context(), in(here), ""))(t)
	if diff := cmp.Diff([]Task{want}, listed); diff != "" {
		t.Error(diff)
	}
	if got, want := got.Line(i18n.English), "[P2] #"+got.ID+": Fix auth bug [background] [daily at 09:00]"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	if plain := add(t, s, Task{Room: here, Content: "x"}); plain.Priority != 5 || plain.Schedule != nil {
		t.Errorf("got %+v", plain)
	}
}

func TestAddRefuses(t *testing.T) {
	s := newStore(t)
	for _, tt := range []struct {
		in   Task
		want string
	}{
		{Task{Room: here, Content: " \n "}, "content is missing"},
		{Task{Room: here, Content: strings.Repeat("茶", 1001)}, "1001 characters"},
		{Task{Room: here, Content: "a\x00"}, "U+0000"},
		{Task{Room: here, Content: "x", Priority: 11}, "from 1 (most urgent) to 10"},
		{Task{Room: here, Content: "x", Priority: -1}, "from 1 (most urgent) to 10"},
		{Task{Room: here, Content: "x", Prompt: strings.Repeat("x", 8001)}, "prompt has 8001"},
	} {
		expect.ErrorContains(t, second(s.Add(t.Context(), labelled(tt.in))), tt.want, "%+v", tt.in)
	}
	expect.Equal(t, contents(t, s, here, All), "", "stored")
	add(t, s, Task{Room: here, Content: strings.Repeat("茶", 1000)})
}

// Holds T6.
func TestListOrderAndStates(t *testing.T) {
	s := newStore(t)
	add(t, s, Task{Room: here, Content: "later", Priority: 7})
	add(t, s, Task{Room: here, Content: "first", Priority: 1})
	paused := add(t, s, Task{Room: here, Content: "second", Priority: 3})
	add(t, s, Task{Room: here, Content: "third", Priority: 3})
	done := add(t, s, Task{Room: here, Content: "done", Priority: 1})
	gone := add(t, s, Task{Room: here, Content: "gone", Priority: 1})
	add(t, s, Task{Room: there, Content: "elsewhere", Priority: 1})
	must := func(_ Task, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.Pause(t.Context(), in(here), paused.ID))
	must(s.Complete(t.Context(), asks(here, ""), done.ID, "it works"))
	must(s.Delete(t.Context(), in(here), gone.ID))
	for status, want := range map[Status]string{
		"": "first|second|third|later", Active: "first|third|later", Paused: "second", Completed: "done", Deleted: "gone",
		All: "first|done|second|third|later",
	} {
		expect.Equal(t, contents(t, s, here, status), want, "List(%q)", status)
	}
	expect.ErrorContains(t, second(s.List(t.Context(), in(here), "open")), "active, paused, completed or all", "unknown status")
}

func TestTransitions(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	task := add(t, s, Task{Room: here, Content: "x"})
	step := func(got Task, err error) func(status Status, wantErr string) {
		return func(status Status, wantErr string) {
			t.Helper()
			switch {
			case wantErr == "" && (err != nil || got.Status != status):
				t.Errorf("got %q, %v; want %q", got.Status, err, status)
			case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
				t.Errorf("error %v, want %q", err, wantErr)
			}
		}
	}
	step(s.Resume(ctx, in(here), task.ID))("", "active already")
	step(s.Pause(ctx, in(here), "#"+task.ID))(Paused, "")
	step(s.Pause(ctx, in(here), task.ID))("", "paused already")
	step(s.Resume(ctx, in(here), " #"+strings.ToUpper(task.ID)+" "))(Active, "")
	step(s.Complete(ctx, asks(here, ""), task.ID, " \n"))("", "with a reason")
	got, err := s.Complete(ctx, asks(here, ""), task.ID, "the user said so")
	step(got, err)(Completed, "")
	if got.Reason != "the user said so" || !got.Completed.Equal(got.Updated) {
		t.Errorf("completed: %+v", got)
	}
	step(s.Complete(ctx, asks(here, ""), task.ID, "again"))("", "completed already (the user said so)")
	step(s.Pause(ctx, in(here), task.ID))("", "completed already")
	step(s.Resume(ctx, in(here), task.ID))("", "completed already")
	step(s.Delete(ctx, in(here), task.ID))(Deleted, "")
	step(s.Delete(ctx, in(here), task.ID))("", "no task #"+task.ID+" in this room")
}

func TestUpdate(t *testing.T) {
	s := newStore(t)
	ctx := t.Context()
	old := add(t, s, Task{Room: here, Content: "old", Schedule: &Schedule{Type: "daily", At: "09:00"}, Prompt: "p", Background: true})
	content, priority, off := "new", 1, false
	got := expect.Must(s.Update(ctx, in(here), old.ID, Patch{Content: &content, Priority: &priority, Background: &off, Integrity: trust.User}))(t)
	want := old
	want.Content, want.Priority, want.Background, want.Updated = "new", 1, false, got.Updated
	if diff := cmp.Diff(want, got); diff != "" || !got.Updated.After(old.Updated) {
		t.Errorf("updated %v\n%s", got.Updated, diff)
	}
	got, err := s.Update(ctx, in(here), old.ID, Patch{Schedule: &Schedule{Type: "weekly", DayOfWeek: "mon", At: "10:00"}})
	if err != nil || got.Schedule.String() != "weekly on Monday at 10:00" || got.Content != "new" {
		t.Errorf("new schedule: %+v, %v", got, err)
	}
	if got, err = s.Update(ctx, in(here), old.ID, Patch{ClearSchedule: true}); err != nil || got.Schedule != nil {
		t.Errorf("cleared schedule: %+v, %v", got, err)
	}
	empty, eleven := " ", 11
	for want, p := range map[string]Patch{
		"nothing to update":  {},
		"content is missing": {Content: &empty},
		"priority 11":        {Priority: &eleven},
	} {
		expect.ErrorContains(t, second(s.Update(ctx, in(here), old.ID, p)), want)
	}
	expect.Must(s.Complete(ctx, asks(here, ""), old.ID, "done"))(t)
	expect.ErrorContains(t, second(s.Update(ctx, in(here), old.ID, Patch{Content: &content})), "completed already", "completed task")
}

// TestEditedInFlight: a schedule changed during a run applies at once. A failure of the old run is
// not retried, does not count, and does not end the new schedule.
func TestEditedInFlight(t *testing.T) {
	for _, c := range []struct {
		name   string
		to     *Schedule
		failed error
		next   string // when it is due then
	}{
		{"told", &Schedule{Type: daily, At: "10:00"}, nil, "21 10:00"},
		{"failed", &Schedule{Type: daily, At: "10:00"}, errors.New("garbled"), "21 10:00"},
		{"no model", &Schedule{Type: once, At: "2026-11-22T07:00:00Z"}, ErrOutage, "22 07:00"},
		{"no schedule any more", nil, errors.New("garbled"), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPost(t)
			call := p.add("call", "", Schedule{Type: once, At: "2026-11-21 09:00"})
			for range maxFailed - 1 { // as if it had failed before
				expect.Must(p.store.db.Exec(`UPDATE task SET failures = failures + 1 WHERE id = ?`, call.ID))(t)
			}
			p.fail = func(r Run) error {
				p.now = p.now.Add(time.Second)
				expect.Must(p.store.Update(t.Context(), in(here), r.Task.ID, Patch{Schedule: c.to, ClearSchedule: c.to == nil}))(t)
				p.fail = nil
				return c.failed
			}
			p.at(21, 9, 0)
			p.at(21, 9, 45)
			if c.failed == nil {
				p.heard("call 21 09:00")
			} else {
				p.heard()
			}
			got := p.task(call.ID)
			if got.Status != Active || got.Failures != 0 {
				t.Errorf("%+v", got)
			}
			if next := got.NextDue; next.IsZero() != (c.next == "") || c.next != "" && next.Format("02 15:04") != c.next {
				t.Errorf("due next: %s, want %s", next, c.next)
			}
			if c.next == "" {
				return
			}
			p.now = got.NextDue
			p.look()
			p.work()
			p.heard("call " + c.next)
		})
	}
}

// TestLeftRoom: nothing runs in a left room, not even claimed runs; its tasks are paused with a reason.
func TestLeftRoom(t *testing.T) {
	const there = "!there:example.org"
	p := newPost(t)
	gone := ""
	p.rooms.left = func(_ context.Context, room string) (bool, error) { return room == gone, nil }
	elsewhere := func(content string, s *Schedule) Task {
		return add(t, p.store, Task{Room: there, User: "@ann:x", Content: content, Schedule: s})
	}
	p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	failing := elsewhere("failing", &Schedule{Type: daily, At: "08:10"})
	p.fail = func(Run) error { return errors.New("it fails") }
	p.at(21, 8, 10) // and is to be tried again
	p.fail = nil
	due, handed := elsewhere("due", &Schedule{Type: daily, At: "09:00"}), elsewhere("handed over", &Schedule{Type: daily, At: "08:30"})
	never := elsewhere("without a time", nil)
	p.now = p.now.Add(20 * time.Minute)
	if p.look(); len(p.inbox) != 2 {
		t.Fatalf("handed over: %+v", p.inbox)
	}
	gone = there
	p.work()
	p.at(21, 9, 0)
	p.heard("tea 21 09:00")
	for _, it := range []Task{due, handed, failing} {
		if got, err := p.store.Find(t.Context(), it.ID); err != nil || got.Status != Paused || got.Reason != leftReason || got.Runs != 0 || !got.NextDue.IsZero() {
			t.Errorf("%s: %+v, %v", it.Content, got, err)
		}
	}
	expect.Equal(t, expect.Must(p.store.Find(t.Context(), never.ID))(t).Status, Active, "a task without a time")
	runs, err := p.store.Runs(t.Context(), there, "", 10)
	if err != nil || len(runs) != 2 || runs[0].State != runSkipped || runs[1].State != runSkipped || runs[0].Result != leftReason {
		t.Errorf("runs %+v, %v", runs, err)
	}
	gone = ""
	expect.Equal(t, expect.Must(p.store.Resume(t.Context(), in(there), due.ID))(t).Reason, "", "resumed")
	p.at(22, 9, 0)
	p.heard("tea 22 09:00", "due 22 09:00")
}

// TestLeftRoomUnknown: an error of Left neither pauses nor runs tasks.
func TestLeftRoomUnknown(t *testing.T) {
	p := newPost(t)
	tea := p.add("tea", "", Schedule{Type: daily, At: "09:00"})
	broken := errors.New("the disk is full")
	p.rooms.left = func(context.Context, string) (bool, error) { return true, broken }
	p.now = p.now.Add(time.Hour)
	if _, err := p.sched.runDue(t.Context(), p.deliver, p.now, false); !errors.Is(err, broken) {
		t.Errorf("err %v, want %v", err, broken)
	}
	if got := p.task(tea.ID); got.Status != Active || len(p.inbox) != 0 {
		t.Errorf("%+v; handed over %+v", got, p.inbox)
	}
	p.rooms.left = nil
	p.at(21, 9, 1)
	p.heard("tea 21 09:00")
}

// TestRedactedMessage: open tasks made for a redacted message are deleted, but not completed ones,
// those changed by others, or those of other rooms.
func TestRedactedMessage(t *testing.T) {
	s := newStore(t)
	add := func(room, content, asked string) Task {
		t.Helper()
		return add(t, s, Task{Room: room, Content: content, SourceEvent: asked})
	}
	gone, paused, done := add("!a", "open", "$1"), add("!a", "paused", "$1"), add("!a", "done", "$1")
	add("!a", "another's", "$2")
	add("!a", "nobody's", "")
	add("!b", "elsewhere", "$1")
	own, others := add("!a", "own change", "$1"), add("!a", "others' change", "$1")
	expect.Must(s.Pause(t.Context(), in("!a"), paused.ID))(t)
	expect.Must(s.Complete(t.Context(), asks("!a", ""), done.ID, "it was done"))(t)
	first := 1
	for _, p := range []struct {
		id, asked string
	}{{own.ID, "$1"}, {others.ID, "$3"}} {
		expect.Must(s.Update(t.Context(), in("!a"), p.id, Patch{Priority: &first, SourceEvent: p.asked}))(t)
	}
	if _, err := s.Update(t.Context(), in("!a"), own.ID, Patch{SourceEvent: "$1"}); err == nil {
		t.Error("a change of nothing is one")
	}
	for _, want := range []int{3, 0} {
		if n, words, err := s.FromMessages(t.Context(), in("!a"), []string{"$0", "$1", ""}); err != nil || n != 3 || len(words) != want {
			t.Errorf("%d tasks were made for it, %q, %v", n, words, err)
		}
		expect.OK(t, s.DeleteFromMessages(t.Context(), "!a", []string{"$0", "$1", ""}))
	}
	for _, id := range []string{gone.ID, paused.ID, own.ID} {
		var status, content string
		if err := s.db.QueryRowContext(t.Context(), `SELECT status, content FROM task WHERE id = ?`, id).Scan(&status, &content); err != nil || status != "deleted" || content != redactedText {
			t.Errorf("%s is %s: %s, %v", id, status, content, err)
		}
	}
	left, err := s.List(t.Context(), in("!a"), "")
	if err != nil || len(left) != 3 {
		t.Errorf("%d tasks are left, %v", len(left), err)
	}
	expect.Equal(t, expect.Must(s.Get(t.Context(), in("!a"), done.ID))(t).Content, "done", "what was done")
	expect.Equal(t, len(expect.Must(s.List(t.Context(), in("!b"), ""))(t)), 1, "elsewhere")
}

// TestRedactedMessageReaders: private tasks of a redacted message are deleted everywhere, but
// counted only where they are readable.
func TestRedactedMessageReaders(t *testing.T) {
	s, ctx, events := newStore(t), t.Context(), []string{"$1"}
	secret := add(t, s, Task{Room: here, Content: "see the lawyer", SourceEvent: "$1", Label: with(here, "@ann:x").Label()})
	for at, want := range map[trust.Place]int{with(here, "@ann:x").Place: 1, in(here): 0, with(here, "@bob:x").Place: 0} {
		if n, words, err := s.FromMessages(ctx, at, events); err != nil || n != want || len(words) != 1 {
			t.Errorf("%+v: %d, %q, %v", at, n, words, err)
		}
	}
	expect.OK(t, s.DeleteFromMessages(ctx, here, events))
	if _, err := s.Get(ctx, with(here, "@ann:x").Place, secret.ID); !errors.Is(err, errNotFound) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestTidy: tasks with a schedule, of other rooms, changed or inactive are left alone. UndoTidy
// restores applied steps exactly, and keeps later changes.
func TestTidy(t *testing.T) {
	s := newStore(t)
	db := s.db
	ctx := t.Context()
	now := time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)
	add := func(content string, schedule bool) Task {
		x := Task{Room: "!a", User: "@me", Content: content}
		if schedule {
			made := expect.Must(Schedule{Type: "daily", At: "09:00"}.Validate(s.now(), time.UTC))(t)
			x.Schedule = &made
		}
		return expect.Must(s.Add(ctx, labelled(x)))(t)
	}
	plain, twin, daily := add("Water the plants", false), add("water the plants", false), add("Feed the cat", true)
	run := func(x Task, step TidyStep) int {
		t.Helper()
		if step.Room == "" {
			step.Room = x.Room
		}
		if step.Updated.IsZero() {
			step.Updated = x.Updated
		}
		step.ID = x.ID
		tx := expect.Must(db.BeginTx(ctx, nil))(t)
		defer func() { _ = tx.Rollback() }()
		before := expect.Must(getReadable(ctx, tx, x.Place(), x.ID))(t)
		done := expect.Must(s.ApplyTidySteps(ctx, tx, now, []TidyStep{step}))(t)
		if len(done) == 0 {
			return 0
		}
		if left, err := s.UndoTidy(ctx, tx, done); err != nil || len(left) > 0 {
			t.Errorf("%s: %q, %v", step.Kind, left, err)
		}
		if diff := cmp.Diff(before, expect.Must(getReadable(ctx, tx, x.Place(), x.ID))(t)); diff != "" {
			t.Errorf("%s: %s", step.Kind, diff)
		}
		return len(done)
	}
	steps := []TidyStep{{Kind: TidyMerge, Into: twin.ID, IntoAt: twin.Updated, Reason: "the same"}, {Kind: TidyPause, Reason: "long ago"}}
	for _, step := range steps {
		expect.Equal(t, run(plain, step), 1, "%s: not done", step.Kind)
		elsewhere, changed := step, step
		elsewhere.Room, changed.Updated = "!0", plain.Updated.Add(-time.Millisecond)
		expect.Equal(t, run(plain, elsewhere)+run(plain, changed), 0, "%s: done in another room, or to what has changed", step.Kind)
		expect.Equal(t, run(daily, step), 0, "%s of a task with a schedule", step.Kind)
	}
	for _, step := range []TidyStep{
		{Kind: TidyMerge, Into: plain.ID, IntoAt: plain.Updated},
		{Kind: TidyMerge, Into: "task_none", IntoAt: plain.Updated}, {Kind: TidyMerge, Into: twin.ID, IntoAt: plain.Updated.Add(time.Hour)},
	} {
		expect.Equal(t, run(plain, step), 0, "%+v: done", step)
	}
	expect.Must(s.Pause(ctx, in("!a"), plain.ID))(t)
	paused := expect.Must(getReadable(ctx, db, in("!a"), plain.ID))(t)
	expect.Equal(t, run(paused, steps[0]), 0, "a paused task was merged")
}

// in is the room with several people.
func in(room string) trust.Place { return trust.Place{Room: room} }

// asks is a trusted user in the room with several people.
func asks(room, user string) trust.Caller {
	return trust.Caller{Place: trust.Place{Room: room, Person: user}, Integrity: trust.User}
}

// labelled returns t with the label of its room if it has none.
func labelled(t Task) Task {
	if t.Label.Readers == "" {
		t.Label = trust.Label{Integrity: trust.User, Readers: trust.RoomReaders(t.Room)}
	}
	return t
}

func second[T any](_ T, err error) error { return err }
