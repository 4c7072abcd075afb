package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestTaskCommandRooms: with --room nothing of another room is shown; what is done to
// one task changes no other; and completing one takes a reason that says something,
// refused before anything is written.
func TestTaskCommandRooms(t *testing.T) {
	config := configFile(t, "timezone: UTC\n"+rehearsing)
	run := func(args ...string) (int, string) {
		t.Helper()
		return runBot(t, "", append([]string{"task", "--config", config}, args...)...)
	}
	id := regexp.MustCompile(`task_[a-z2-7]{8}`)
	const canary = "CANARY-4711"
	_, text := run("add", "--room", "!a", "--when", "every day at 9", canary)
	theirs := id.FindString(text)
	_, text = run("add", "--room", "!b", "--when", "every day at 9", "Water the plants")
	mine := id.FindString(text)
	if theirs == "" || mine == "" {
		t.Fatal(text)
	}
	_, before := run("show", theirs, "--json")
	for _, args := range [][]string{{"list", "--room", "!b", "--all"}, {"list", "--room", "!b", "--json"}, {"runs", "--room", "!b", theirs}, {"runs", "--room", "!b", "--json"}} {
		if code, text := run(args...); code != 0 || strings.Contains(text, canary) || strings.Contains(text, theirs) {
			t.Errorf("%q: exit %d, %s", args, code, text)
		}
	}
	_, unchanged := run("show", mine, "--json")
	for _, reason := range []string{"done", "Water the plants: done", "ok"} {
		if code, text := run("complete", mine, reason); code != exitUsage || !strings.Contains(text, "what shows it") {
			t.Errorf("%q: exit %d, %s", reason, code, text)
		}
		if _, now := run("show", mine, "--json"); now != unchanged {
			t.Errorf("%q changed it to %s", reason, now)
		}
	}
	for _, args := range [][]string{{"pause", mine}, {"resume", mine}, {"complete", mine, "Anna", "wrote", "that", "they", "are", "watered"}, {"delete", mine}} {
		if code, text := run(args...); code != 0 || !strings.Contains(text, mine) || strings.Contains(text, canary) {
			t.Errorf("%q: exit %d, %s", args, code, text)
		}
	}
	if _, after := run("show", theirs, "--json"); after != before || !strings.Contains(after, canary) {
		t.Errorf("it was %s and is %s", before, after)
	}
}
