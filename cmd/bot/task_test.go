package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestTaskCommandRooms: with --room nothing of another room is shown, and what is done to one task changes no other.
func TestTaskCommandRooms(t *testing.T) {
	config := configFile(t, "timezone: UTC\n"+rehearsing)
	run := func(args ...string) string {
		t.Helper()
		code, text := runBot(t, "", append([]string{"task", "--config", config}, args...)...)
		if code != 0 {
			t.Errorf("%q: exit %d, %s", args, code, text)
		}
		return text
	}
	id := regexp.MustCompile(`task_[a-z2-7]{8}`)
	const canary = "CANARY-4711"
	theirs := id.FindString(run("add", "--room", "!a", "--when", "every day at 9", canary))
	mine := id.FindString(run("add", "--room", "!b", "--when", "every day at 9", "Water the plants"))
	before := run("show", theirs, "--json")
	for _, args := range [][]string{{"list", "--room", "!b", "--all"}, {"list", "--room", "!b", "--json"}, {"runs", "--room", "!b", theirs}, {"runs", "--room", "!b", "--json"}} {
		if text := run(args...); strings.Contains(text, canary) || strings.Contains(text, theirs) {
			t.Errorf("%q: %s", args, text)
		}
	}
	for _, args := range [][]string{{"pause", mine}, {"resume", mine}, {"complete", mine, "Anna", "wrote", "that", "they", "are", "watered"}, {"delete", mine}} {
		if text := run(args...); !strings.Contains(text, mine) || strings.Contains(text, canary) {
			t.Errorf("%q: %s", args, text)
		}
	}
	if after := run("show", theirs, "--json"); after != before || !strings.Contains(after, canary) {
		t.Errorf("it was %s and is %s", before, after)
	}
}
