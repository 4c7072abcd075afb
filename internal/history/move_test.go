package history_test

import (
	"testing"

	"reverie/internal/history"
)

func TestMove(t *testing.T) {
	s, db := open(t)
	say(t, s, here, "earlier")
	must(s.StartNew(t.Context(), here))(t)
	say(t, s, here, "one")
	say(t, s, there, "three") // said before the rest was brought along
	say(t, s, here, "two")
	c := history.Compaction{Room: here, Level: history.Summary, Reason: "full", Summary: "They counted.", At: noon}
	noError(t, s.Compact(t.Context(), &c, nil, nil))
	for range 2 {
		noError(t, s.Move(t.Context(), here, there))
	}
	say(t, s, there, "four")
	if got := texts(t, s, there); got != "one|three|two|four" { // in the order it was said
		t.Errorf("the new room's conversation: %s", got)
	}
	if c, err := s.Compacted(t.Context(), there); err != nil || c.Summary != "They counted." {
		t.Errorf("the summary: %+v, %v", c, err)
	}
	if got := texts(t, s, here); got != "" {
		t.Errorf("the old room's conversation: %s", got)
	}
	say(t, s, here, "afterwards")
	if got := texts(t, s, here); got != "afterwards" {
		t.Errorf("the old room's conversation: %s", got)
	}
	var n int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM message WHERE room = ? AND text = 'earlier' AND conversation = 1`, there).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows of the earlier conversation, %v", n, err)
	}
	for _, pair := range [][2]string{{"!nowhere", there}, {there, there}} {
		if err := s.Move(t.Context(), history.Talk(pair[0]), history.Talk(pair[1])); err != nil {
			t.Error(err)
		}
	}
	if got := texts(t, s, there); got != "one|three|two|four" {
		t.Errorf("after moving nothing: %s", got)
	}
}
