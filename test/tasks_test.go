package test

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestReminder: a task that the model makes of a person's words is due three seconds
// later and comes into the encrypted room, once; also when the bot is killed at the
// very time.
func TestReminder(t *testing.T) {
	bot, you, room, m := newConversation(t)
	const wait = 3 * time.Second
	for i, c := range []struct {
		name string
		kill time.Duration // behind the time, or before it
	}{{name: "stretch"}, {"drink", -30 * time.Millisecond}, {"breathe", 20 * time.Millisecond}, {"rest", 80 * time.Millisecond}} {
		asked := time.Now()
		if e := ask(t, you, room, "remind me in 3 seconds to "+c.name); !strings.Contains(e.Body, "I noted the task. Added") {
			t.Fatalf("answer = %q", e.Body)
		}
		calls := m.calls.Load()
		if i > 0 {
			due := asked.Add(wait).Truncate(time.Second) // or a second later: who is killed before is told of it at the start
			time.Sleep(time.Until(due.Add(c.kill)))
			bot.kill()
			bot.start(t, "")
		}
		if e := hear(t, you, room); !strings.HasPrefix(strings.ToLower(e.Body), "⏰ reminder: "+c.name) || e.ReplyTo != "" {
			t.Errorf("%s: the room read %+v", c.name, e)
		}
		if n := m.calls.Load(); n != calls {
			t.Errorf("%s: the model was asked %d times about a reminder", c.name, n-calls)
		}
		if e := ask(t, you, room, "hello"); strings.Contains(e.Body, "⏰") {
			t.Errorf("%s: a second time: %q", c.name, e.Body)
		}
	}
	raw, err := you.RawTimeline(t.Context(), room, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range raw {
		if bytes.Contains(e, []byte("Reminder")) || bytes.Contains(e, []byte(`"m.room.message"`)) {
			t.Errorf("plain text on the server: %s", e)
		}
	}
	if e := ask(t, you, room, "what are my tasks?"); !strings.Contains(e.Body, "no such tasks") {
		t.Errorf("what was due once is still open: %q", e.Body)
	}
}
