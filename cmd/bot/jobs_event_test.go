package main

import (
	"errors"
	"fmt"
	"testing"

	"reverie/internal/llm"
	"reverie/internal/task"
	"reverie/internal/trust"
)

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

// TestJobMentions: a reminder mentions who asked for it, and nothing else mentions
// anybody.
func TestJobMentions(t *testing.T) {
	b := &bot{cfg: &Config{}, tasks: task.NewStore(nil, nil)}
	reminder := task.Task{Room: "!r", User: "@you:x", Content: "stretch"}
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
		if got := b.jobEvent(t.Context(), r, false); got.Mention != c.want || got.Room != "!r" {
			t.Errorf("%s: %+v, want mention %v", name, got, c.want)
		}
	}
}

// TestJobLabel: what is due carries its task's label, and is for the person who may read it.
func TestJobLabel(t *testing.T) {
	b := &bot{cfg: &Config{}, tasks: task.NewStore(nil, nil)}
	label := trust.Label{Integrity: trust.Guest, Readers: trust.Person("@ann:x")}
	got := b.jobEvent(t.Context(), task.Run{Task: task.Task{Room: "!r", User: "@bob:x", Content: "stretch", Label: label}}, true)
	if got.Label != label || got.Sender != "@ann:x" {
		t.Errorf("%+v", got)
	}
}
