package matrix

import (
	"testing"

	"golang.org/x/sync/errgroup"
)

// What was read of a room before it was left may be done: it is entered again only after
// it is read again.
func TestLanesDoNothingTwice(t *testing.T) {
	l, wake := newLanes(), make(chan struct{}, 1)
	var g errgroup.Group
	work := func() bool {
		did := l.work(&g, "a", wake, func() {})
		_ = g.Wait()
		return did
	}
	l.begin()
	if !l.idle() || !work() {
		t.Error("a free room cannot be entered")
	}
	if work() || l.idle() {
		t.Error("entered twice for what was read once")
	}
	<-wake
	done := make(chan struct{})
	l.begin()
	if !l.work(&g, "a", wake, func() { <-done }) {
		t.Error("cannot be entered again")
	}
	l.begin()
	close(done)
	_ = g.Wait()
	if work() || l.idle() {
		t.Error("entered for what was read while it was busy")
	}
	l.begin()
	if !l.idle() || !work() {
		t.Error("a room that was left cannot be entered")
	}
}
