package test

import (
	"database/sql"
	"strings"
	"testing"
	"time"
)

// TestReminder: a task that the model makes of a person's words is due three seconds
// later and comes into the encrypted room, once; also when the bot is killed at the
// very time.
func TestReminder(t *testing.T) {
	t.Parallel()
	bot, you, room, m := newConversation(t)
	for i, c := range []struct {
		name string
		kill time.Duration // behind the time, or before it
	}{{name: "stretch"}, {"drink", -20 * time.Millisecond}, {"rest", 30 * time.Millisecond}} {
		if e := ask(t, you, room, "remind me in 3 seconds to "+c.name); !strings.Contains(e.Body, "I noted the task. Added") {
			t.Fatalf("answer = %q", e.Body)
		}
		calls := m.calls.Load()
		if i > 0 {
			time.Sleep(time.Until(bot.due(t, c.name).Add(c.kill)))
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
	sealed(t, you, room, "Reminder", `"m.room.message"`)
	if e := ask(t, you, room, "what are my tasks?"); !strings.Contains(e.Body, "no such tasks") {
		t.Errorf("what was due once is still open: %q", e.Body)
	}
}

// TestAutonomousTask: a task that the model itself is to work on comes due in an encrypted
// room: the model is asked, and what it says arrives there once; also when the bot is
// killed in the middle of that.
func TestAutonomousTask(t *testing.T) {
	t.Parallel()
	bot, you, room, m := newConversation(t)
	for i, name := range []string{"the ferns", "the roof"} {
		if e := ask(t, you, room, "work on "+name+" in 3 seconds"); !strings.Contains(e.Body, "I will do that. Added") {
			t.Fatalf("answer = %q", e.Body)
		}
		calls := m.calls.Load()
		if i > 0 {
			time.Sleep(time.Until(bot.due(t, name).Add(30 * time.Millisecond)))
			bot.kill()
			bot.start(t, "")
		}
		e := hear(t, you, room)
		if !strings.Contains(e.Body, "I heard “A task of this room is due") || !strings.Contains(e.Body, name) && !strings.Contains(e.Body, strings.ToUpper(name[:1])+name[1:]) || e.ReplyTo != "" {
			t.Errorf("%s: the room read %+v", name, e)
		}
		if n := m.calls.Load() - calls; n < 1 || n > 2 { // once more where the first request was cut off
			t.Errorf("%s: the model was asked %d times", name, n)
		}
		if asked, _ := m.last.Load().(string); !strings.Contains(asked, "system event: scheduled task]") || !strings.Contains(asked, "Do this now: Work on "+name) {
			t.Errorf("%s: the model was asked %s", name, asked)
		}
		if e := ask(t, you, room, "hello"); strings.Contains(e.Body, "is due") {
			t.Errorf("%s: a second time: %q", name, e.Body)
		}
	}
	sealed(t, you, room, "the ferns", `"m.room.message"`)
	if e := ask(t, you, room, "what are my tasks?"); !strings.Contains(e.Body, "no such tasks") {
		t.Errorf("what was due once is still open: %q", e.Body)
	}
}

// due is when the task is due that content names.
func (p *process) due(t *testing.T, content string) time.Time {
	t.Helper()
	db, err := sql.Open("sqlite", p.data("bot.db"))
	must(t, err)
	defer db.Close()
	var at string
	must(t, db.QueryRow(`SELECT json_extract(schedule, '$.at') FROM task WHERE lower(content) = ?`, content).Scan(&at))
	due, err := time.Parse(time.RFC3339, at)
	must(t, err)
	return due
}
