package main

import (
	"errors"
	"fmt"
	"testing"

	"reverie/internal/llm"
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
