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
