package task

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"reverie/internal/store/storetest"
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
	db := must(storetest.Open(t, filepath.Join(t.TempDir(), "bot.db")))(t)
	t.Cleanup(func() { _ = db.Close() })
	return NewStore(db, (&clockwork{at(t)}).now)
}

// must is a value that comes without an error.
func must[T any](v T, err error) func(failer) T {
	return func(t failer) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

// failer is a test, or a part of one that rapid makes.
type failer interface {
	Helper()
	Fatal(...any)
}

// noError ends the test after an error.
func noError(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func add(t testing.TB, s *Store, task Task) Task {
	t.Helper()
	got := must(s.Add(t.Context(), labelled(task)))(t)
	return got
}

func contents(t testing.TB, s *Store, room string, status Status) string {
	t.Helper()
	tasks := must(s.List(t.Context(), in(room), status))(t)
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
		Prompt: "Look\nat it", Background: true, CatchUp: CatchOnce, Created: now, Updated: now,
		Scheduled: now, NextDue: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	listed := must(s.List(t.Context(), in(here), ""))(t)
	if diff := cmp.Diff([]Task{want}, listed); diff != "" {
		t.Error(diff)
	}
	if got, want := got.Line(), "[P2] #"+got.ID+": Fix auth bug [background] [daily at 09:00]"; got != want {
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
		{Task{Content: "x"}, "no room"},
		{Task{Room: here, Content: " \n "}, "content is missing"},
		{Task{Room: here, Content: strings.Repeat("茶", 1001)}, "1001 characters"},
		{Task{Room: here, Content: "a\x00"}, "U+0000"},
		{Task{Room: here, Content: "x", Priority: 11}, "from 1 (most urgent) to 10"},
		{Task{Room: here, Content: "x", Priority: -1}, "from 1 (most urgent) to 10"},
		{Task{Room: here, Content: "x", Schedule: &Schedule{Type: "daily"}}, "at is missing"},
		{Task{Room: here, Content: "x", Schedule: &Schedule{Type: "once", At: "in 20 minutes"}}, "final form"},
		{Task{Room: here, Content: "x", Prompt: strings.Repeat("x", 8001)}, "prompt is 8001"},
	} {
		if _, err := s.Add(t.Context(), labelled(tt.in)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.in, err, tt.want)
		}
	}
	if got := contents(t, s, here, All); got != "" {
		t.Errorf("stored %q", got)
	}
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
		if got := contents(t, s, here, status); got != want {
			t.Errorf("List(%q) = %q, want %q", status, got, want)
		}
	}
	if _, err := s.List(t.Context(), in(here), "open"); err == nil || !strings.Contains(err.Error(), "active, paused, completed or all") {
		t.Errorf("unknown status: %v", err)
	}
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
	got := must(s.Update(ctx, in(here), old.ID, Patch{Content: &content, Priority: &priority, Background: &off, Integrity: trust.User}))(t)
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
		"nothing to update":       {},
		"content is missing":      {Content: &empty},
		"priority 11":             {Priority: &eleven},
		"set and cleared at once": {ClearSchedule: true, Schedule: &Schedule{}},
		"schedule_type":           {Schedule: &Schedule{Type: "hourly"}},
	} {
		if _, err := s.Update(ctx, in(here), old.ID, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	must(s.Complete(ctx, asks(here, ""), old.ID, "done"))(t)
	if _, err := s.Update(ctx, in(here), old.ID, Patch{Content: &content}); err == nil || !strings.Contains(err.Error(), "completed already") {
		t.Errorf("completed task: %v", err)
	}
}
