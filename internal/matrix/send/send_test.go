package send

import (
	"context"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"reverie/internal/delivery"
	"reverie/internal/settings"
)

// TestUnsentInTheLanguage: the notice about a file that was not sent is in the language of the room.
func TestUnsentInTheLanguage(t *testing.T) {
	c := &Sender{Config: Config{Text: func(_ context.Context, _, key string, fill ...string) string {
		return (*settings.Messages)(nil).In("de", key, fill...)
	}}}
	row := delivery.OutboxRow{ID: "a", Room: "!r", File: `{"name":"tee.pdf"}`}
	if got := c.unsentNotice(t.Context(), row, errFileGone).Text; got != "tee.pdf konnte nicht gesendet werden: die Datei ist hier nicht mehr gespeichert." {
		t.Errorf("got %q", got)
	}
	if got := c.unsentNotice(t.Context(), row, context.Canceled).Text; !strings.HasSuffix(got, ": der Homeserver nimmt sie nicht an.") {
		t.Errorf("got %q", got)
	}
}

// After a room is unlocked, its rows may be outdated: it is locked again only in the next pass.
func TestRoomLocksOncePerPass(t *testing.T) {
	l, wake := NewRoomLocks(), make(chan struct{}, 1)
	var g errgroup.Group
	work := func() bool {
		did := l.TryGo(&g, "a", wake, func() {})
		_ = g.Wait()
		return did
	}
	l.Begin()
	if !l.idle() || !work() {
		t.Error("a free room cannot be entered")
	}
	if work() || l.idle() {
		t.Error("entered twice for what was read once")
	}
	<-wake
	done := make(chan struct{})
	l.Begin()
	if !l.TryGo(&g, "a", wake, func() { <-done }) {
		t.Error("cannot be entered again")
	}
	l.Begin()
	close(done)
	_ = g.Wait()
	if work() || l.idle() {
		t.Error("entered for what was read while it was busy")
	}
	l.Begin()
	if !l.idle() || !work() {
		t.Error("a room that was left cannot be entered")
	}
}
