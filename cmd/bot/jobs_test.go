package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reverie/internal/llm"
	"reverie/internal/session"
	"reverie/internal/task"
	"reverie/internal/trust"
)

// board is a transport that keeps what is said.
type board struct {
	mu   sync.Mutex
	said map[string]string // by ID
}

func (b *board) Say(_ context.Context, room string, m session.Outgoing) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !m.Draft {
		b.said[m.ID] = room + ": " + m.Text
	}
	return nil
}
func (b *board) Remove(context.Context, string, string) error    { return nil }
func (b *board) Typing(context.Context, string, bool)            {}
func (b *board) Withdrawn(context.Context, string) (bool, error) { return false, nil }
func (b *board) Handled(context.Context, string) error           { return nil }
func (b *board) all() (texts []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.said {
		texts = append(texts, text)
	}
	return texts
}

// TestJobs: what falls due goes through the whole bot: a reminder is said as it is,
// the model works on what it was asked to do, and says so or keeps it.
func TestJobs(t *testing.T) {
	b := openTest(t, "timezone: UTC\nmemory: {backend: flat_file}\nharvest: {enabled: false}\n"+rehearsing)
	at := time.Now().Add(time.Second).UTC().Truncate(time.Second).Add(time.Second)
	ids := map[string]string{}
	for _, it := range []task.Task{{Content: "stretch"}, {Content: "news", Prompt: "Read the news."}, {Content: "quietly", Prompt: "Tidy up.", Background: true}, {Content: "elsewhere", Room: "!elsewhere"}} {
		if it.Room == "" {
			it.Room = terminalRoom
		}
		it.Label = trust.Label{Integrity: trust.User, Readers: trust.Room(it.Room)}
		it.User, it.Schedule = "@you", &task.Schedule{Type: "once", At: at.Format(time.RFC3339)}
		added, err := b.tasks.Add(t.Context(), it)
		must(t, err)
		ids[it.Content] = added.ID
	}
	out := &board{said: map[string]string{}}
	sessions := b.sessions(out, nil)
	background(t, sessions.Run, b.scheduler.Run)
	until(t, "not all runs are done", func() bool {
		runs, err := b.tasks.AllRuns(t.Context(), "", "", 10)
		must(t, err)
		return len(slices.DeleteFunc(runs, func(r task.Run) bool { return r.State != task.RunDone })) == 3
	})
	said := strings.Join(out.all(), "\n")
	if len(out.all()) != 2 || !strings.Contains(said, "terminal: ⏰ Reminder: stretch") || strings.Contains(said, "elsewhere") {
		t.Errorf("said %q", out.all())
	}
	for content, id := range ids {
		it, err := b.tasks.Find(t.Context(), id)
		must(t, err)
		switch {
		case content == "elsewhere" && (it.Status != task.Active || it.Runs != 0):
			t.Errorf("a room of another program was looked after: %+v", it)
		case content != "elsewhere" && (it.Status != task.Completed || it.Runs != 1 || it.LastResult == ""):
			t.Errorf("%s: %+v", content, it)
		}
	}
}

// TestPrivateJob: what a person asked for in private is not said where somebody else writes now.
// The task is paused, and the operator reads why.
func TestPrivateJob(t *testing.T) {
	b := openTest(t, "timezone: UTC\nmemory: {backend: flat_file}\nharvest: {enabled: false}\n"+rehearsing)
	_, err := b.db.Exec(`INSERT INTO session (room, person, private, heard_at) VALUES (?, '@bob:x', 1, 1)`, terminalRoom)
	must(t, err)
	at := time.Now().Add(time.Second).UTC().Truncate(time.Second).Add(time.Second)
	lawyer := task.Task{Room: terminalRoom, User: "@ann:x", Content: "see the lawyer", Schedule: &task.Schedule{Type: "once", At: at.Format(time.RFC3339)},
		Label: trust.Label{Integrity: trust.User, Readers: trust.Person("@ann:x")}}
	it, err := b.tasks.Add(t.Context(), lawyer)
	must(t, err)
	out := &board{said: map[string]string{}}
	sessions := b.sessions(out, nil)
	background(t, sessions.Run, b.scheduler.Run)
	until(t, "the task is not paused", func() bool {
		if it, err = b.tasks.Find(t.Context(), it.ID); err != nil {
			t.Fatal(err)
		}
		return it.Status != task.Active
	})
	if it.Status != task.Paused || it.Reason.String() != "other people can read this room now" || it.Runs != 0 || len(out.all()) != 0 {
		t.Errorf("%+v; said %q", it, out.all())
	}
}

// TestOutageKinds: an outage is that a model did not answer, and nothing else.
func TestOutageKinds(t *testing.T) {
	want := map[llm.Kind]bool{llm.Unreachable: true, llm.RateLimited: true, llm.TimedOut: true}
	for kind := llm.Failed; kind <= llm.Garbled; kind++ {
		failed := fmt.Errorf("session: %w", &llm.Error{Kind: kind, Model: "m", Err: errors.New("said the server")})
		if got := outage(failed); got != want[kind] {
			t.Errorf("%s: outage %v, want %v", kind, got, want[kind])
		}
	}
	if outage(nil) || outage(errors.New("unreachable")) {
		t.Error("what no model gave is an outage")
	}
}

// TestJobMentions: a reminder mentions who asked for it, and nothing else mentions anybody. What is
// due carries its task's label, and is for the person who may read it.
func TestJobMentions(t *testing.T) {
	b := &bot{cfg: &Config{}, tasks: task.NewStore(nil, nil)}
	label := trust.Label{Integrity: trust.Guest, Readers: trust.Person("@ann:x")}
	reminder := task.Task{Room: "!r", User: "@you:x", Content: "stretch", Label: label}
	for name, c := range map[string]struct {
		run  func(*task.Run)
		want bool
	}{
		"a reminder":         {func(*task.Run) {}, true},
		"of nobody":          {func(r *task.Run) { r.Task.User = "" }, false},
		"a notice":           {func(r *task.Run) { r.Notice = true }, false},
		"a task":             {func(r *task.Run) { r.Task.Prompt = "Read the news." }, false},
		"a silent task":      {func(r *task.Run) { r.Task.Prompt, r.Task.Background = "Read the news.", true }, false},
		"a notice of a task": {func(r *task.Run) { r.Task.Prompt, r.Notice = "Read the news.", true }, false},
	} {
		r := task.Run{Task: reminder}
		c.run(&r)
		if got := b.jobEvent(t.Context(), r, false); got.Mention != c.want || got.Room != "!r" || got.Label != label || got.Sender != "@ann:x" {
			t.Errorf("%s: %+v, want mention %v", name, got, c.want)
		}
	}
}
