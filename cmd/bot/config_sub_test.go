package main

import (
	"strings"
	"testing"
	"time"
)

func TestConfigSubSessions(t *testing.T) {
	c, err := parse(t, "/x", small+"sub_sessions: {parallel: 0, depth: 1, timeout: 90s, rounds: 4}\n")
	if err != nil || c.Subs != (SubConfig{0, 1, 90 * time.Second, 4}) {
		t.Errorf("%+v, %v", c, err)
	}
	_, err = parse(t, "/x", small+"sub_sessions: {parallel: 99, depth: 0, timeout: 1s, rounds: 1}\n")
	for _, want := range []string{"sub_sessions.parallel: write a number from 0 to 16", "sub_sessions.depth", "sub_sessions.timeout", "sub_sessions.rounds"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestConfigTasks(t *testing.T) {
	c, err := parse(t, "/x", small)
	if err != nil || c.Tasks != (TasksConfig{PerRoom: 20, PerPerson: 20, RunsPerDay: 500}) {
		t.Errorf("%+v, %v", c.Tasks, err)
	}
	_, err = parse(t, "/x", small+"tasks: {per_room: 0, per_person: 9999, runs_per_day: 0}\n")
	for _, want := range []string{"tasks.per_room: write a number from 1 to 1000", "tasks.per_person", "tasks.runs_per_day"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}
