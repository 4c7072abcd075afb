package session

import (
	"context"
	"strings"
	"testing"
)

// !verify reaches the transport with the person who says it, and is no word of
// the conversation with the model.
func TestVerifyCommand(t *testing.T) {
	w := newWorld(t, t.TempDir())
	notice(t, w.say(t, "$1", "!verify yes"), "nothing to verify")
	w.cfg.Verify = func(_ context.Context, person, room, args string) (string, error) {
		return person + " in " + room + " says " + args, nil
	}
	if got := w.say(t, "$2", "!verify yes"); !got.Notice || !strings.Contains(got.Text, " says yes") || !strings.HasPrefix(got.Text, "@") {
		t.Errorf("answered %+v", got)
	}
}
