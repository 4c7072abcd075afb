package dream

import (
	"strings"
	"testing"
	"time"
)

// TestBudget: what is used up is not asked, of memories, tasks and skills together; what
// waits is asked the next time, and the report says what may be used and what was.
func TestBudget(t *testing.T) {
	for name, b := range map[string]Budget{
		"calls": {Calls: 1, Tokens: 1 << 20, Time: time.Minute}, "tokens": {Calls: 9, Tokens: 300, Time: time.Minute}, "time": {Calls: 9, Tokens: 1 << 20, Time: time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChores(t)
			c.add("Water the plants", nil)
			c.ids = map[string]string{}
			for i, room := range []string{"!a:x", "!b:x"} {
				c.exec(`INSERT INTO task (id, room, user, content, priority, status, created, updated) VALUES (?, ?, 'x', 'Feed the hens', 5, 'active', 1, 1)`, "task_hens000"+string(rune('1'+i)), room)
			}
			c.answer, c.d.cfg.Budget = "[]", b
			r := c.dream(Options{})
			want := 1
			if name == "time" {
				want = 0
			}
			if len(c.asked) != want || r.Cost.Calls != want || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "the tasks wait for the next dream") {
				t.Errorf("%d requests, %+v", len(c.asked), r)
			}
			if text := r.Text(time.UTC); !strings.Contains(text, "A dream may ask ") {
				t.Error(text)
			}
			c.d.cfg.Budget = Budget{Calls: 9, Tokens: 1 << 20, Time: time.Minute}
			if c.dream(Options{}); len(c.asked) != 3 {
				t.Errorf("%d requests in the end", len(c.asked))
			}
		})
	}
}
